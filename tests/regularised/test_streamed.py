"""Sums over chunks of inputs, against the same quantities from arrays over all inputs."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.dynamics.settle import gated_gradient
from understudy.regularised import balancing_gates, forces, representation_loss, to_representations
from understudy.regularised.streamed import Chunks, sum_over

RNG = np.random.default_rng(3)
INPUTS = RNG.normal(size=(40, 3))
TARGETS = RNG.normal(size=(40, 2))


def network(kinks):
    weights = [RNG.normal(size=shape) for shape in ((5, 4), (4, 6), (2, 5))]
    if kinks:
        weights[0][0, :3] -= (weights[0][0] @ [*INPUTS[11], 1.0]) * INPUTS[11] / (INPUTS[11] @ INPUTS[11])
        weights[0][1] = 0.0  # zero on all inputs, and read by the next layer
        weights[0][2] = -np.abs(weights[0][2])  # zero on some inputs only after the activation
    return tuple(weights)


@pytest.mark.parametrize("size", [7, 40, 100])
@pytest.mark.parametrize(("activation", "kinks"), [("relu", True), ("relu", False), ("abs", True), ("tanh", False)])
def test_chunks_give_what_all_inputs_give(size, activation, kinks):
    weights = network(kinks)
    chunks = Chunks(INPUTS, TARGETS, (5, 4), size=size, penalty=0.02, bias=1.0, activation=activation)
    task = chunks.take(slice(None))
    sums = sum_over(chunks, weights)
    gates = balancing_gates(task, weights)
    expected = forces(task, weights, gates=gates)
    layers = to_representations(task, weights)
    for found, layer, sum_of in zip(expected, layers, sums.layers, strict=False):
        attraction, repulsion = sum_of.forces(task.penalty)
        rows = sum_of.representation()
        np.testing.assert_allclose(rows @ rows.T, layer @ layer.T, atol=1e-12 * np.abs(layer @ layer.T).max())
        for one, other in ((attraction, found.attraction), (repulsion, found.repulsion)):
            np.testing.assert_allclose(np.linalg.norm(one), np.linalg.norm(other), rtol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(attraction + repulsion), found.residual, rtol=1e-9)
        before = np.concatenate([INPUTS.T, np.ones((1, 40))]) if layer is layers[0] else None
        if before is not None:
            np.testing.assert_allclose(sum_of.onto_inputs(repulsion, before), found.repulsion, atol=1e-11)
    gradient = np.concatenate([(s.gradient + 2 * task.penalty * s.weights).ravel() for s in sums.layers])
    vector = task.flatten(weights)
    exact = task.gradient(vector) if gates is None else gated_gradient(task, vector, jnp.asarray(gates))
    np.testing.assert_allclose(gradient, exact, atol=1e-12)
    loss = sums.cost + task.penalty * sum(np.sum(w**2) for w in weights)
    assert loss == pytest.approx(float(task.loss(weights)), rel=1e-13)
    useless = sum(np.sum((s.weights - s.least_weights()) ** 2) for s in sums.layers)
    assert useless == pytest.approx((loss - representation_loss(task, layers)) / task.penalty, abs=1e-9)
    assert list(sums.kinked) == ([11] if kinks else [])


def test_a_neuron_that_is_always_zero_has_the_least_gradient():
    """With σ' = 0 the gradient of its weights is 2λw; one-sided slopes give more."""
    weights = network(True)
    chunks = Chunks(INPUTS, TARGETS, (5, 4), size=16, penalty=0.02, bias=1.0, activation="relu")
    assert np.all(sum_over(chunks, weights).layers[0].gradient[1] == 0.0)
