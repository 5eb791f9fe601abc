"""Covariances: the loss, the oracle against brute force, membership, the certified global minimum, blocks."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy import activations
from understudy.oracles.cone_oracle import ConeOracle
from understudy.papers.attraction_repulsion.training import train_regularised
from understudy.regularised.covariance import covariance_loss, covariances, in_cone
from understudy.regularised.frank_wolfe import block_gap, inner_minimum, minimise_globally
from understudy.regularised.representation import representation_loss, to_representations
from understudy.tasks.regularised import Regularised

RELU = activations.get("relu")


def problem(samples=4, outputs=1, hidden=(6,), **options):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(samples, 2)), rng.normal(size=(samples, outputs))
    return Regularised(x, y, hidden, penalty=0.02, **options)


def test_loss_is_that_of_representations_and_infinite_outside():
    task = problem(hidden=(5, 4))
    vector = np.random.default_rng(0).normal(size=task.size)
    pairs, output = covariances(task, vector)
    reference = representation_loss(task, to_representations(task, vector))
    assert covariance_loss(task, pairs, output) == pytest.approx(reference, rel=1e-9)
    assert covariance_loss(problem(samples=5), [(np.eye(5), np.eye(5))], np.ones((1, 5))) == np.inf


@pytest.mark.parametrize("activation", ["relu", "abs", "linear"])
@pytest.mark.parametrize("dim", [2, 3])
def test_oracle_against_a_fine_search(activation, dim):
    rng = np.random.default_rng(dim)
    basis = rng.normal(size=(dim, 4))
    sigma = activations.get(activation)
    plain, active = (m + m.T for m in rng.normal(size=(2, 4, 4)))
    found = ConeOracle(basis, sigma).maximise(plain, active)

    def value(w):
        z = w @ basis
        a = np.asarray(sigma(z))
        return np.einsum("ki,ij,kj->k", z, plain, z) + np.einsum("ki,ij,kj->k", a, active, a)

    w = rng.normal(size=(200_000, dim))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    best = value(w).max()
    assert best <= found.upper * (1 + 1e-12)
    assert best >= found.value - 1e-2 * np.abs(found.value)  # the search's own resolution
    assert value(found.direction[None])[0] == pytest.approx(found.value, rel=1e-9)


def test_oracle_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="received tanh"):
        ConeOracle(np.eye(2), activations.get("tanh"))
    with pytest.raises(ValueError, match="received N = 12"):
        ConeOracle(np.eye(12), RELU)


def test_membership_both_ways():
    z = np.random.default_rng(0).normal(size=(6, 2))
    active = np.maximum(z, 0)
    found = in_cone((z.T @ z, active.T @ active + 1), bias=1.0, activation=RELU)
    assert found.verdict == "inside"
    g = found.generators
    np.testing.assert_allclose(g.T @ g, z.T @ z, atol=1e-4)
    outside = in_cone((np.eye(2), 1.1 * np.eye(2)), bias=0.0, activation=RELU)
    assert outside.verdict == "outside"
    assert outside.separation > 0
    assert in_cone((np.zeros((2, 2)), np.ones((2, 2))), bias=1.0, activation=RELU).verdict == "inside"
    assert in_cone((np.zeros((2, 2)), np.eye(2)), bias=0.0, activation=RELU).verdict == "outside"


@pytest.mark.parametrize(("samples", "neurons"), [(5, 3), (5, 12), (6, 6)])
def test_a_network_of_few_neurons_is_inside(samples, neurons):
    """Its covariances lie on the boundary of the cone, and have a low rank."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(neurons, 2)) @ rng.normal(size=(2, samples)) + rng.normal(size=(neurons, 1))
    active = np.maximum(z, 0)
    found = in_cone((z.T @ z, active.T @ active + 1), bias=1.0, activation=RELU)
    assert found.verdict == "inside"
    bent = np.maximum(found.generators, 0)
    np.testing.assert_allclose(bent.T @ bent, active.T @ active, atol=2e-6 * np.linalg.norm(z.T @ z))


@pytest.mark.parametrize("cost", ["squared", "cross-entropy"])
def test_inner_minimum_is_stationary(cost):
    targets = np.eye(2)[[0, 1, 1]] if cost == "cross-entropy" else np.random.default_rng(2).normal(size=(3, 2))
    task = Regularised(np.eye(3), targets, (2,), penalty=0.1, cost=cost, weights=[0.2, 0.3, 0.5])
    gram = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 0.7]])
    value, dual = inner_minimum(task, gram, np.zeros((2, 3)))

    def loss(v):
        return float(task.output_cost(jnp.asarray(v @ gram))) + task.penalty * float(np.sum((v @ gram) * v))

    assert loss(np.asarray(dual)) == pytest.approx(value, rel=1e-12)
    rng = np.random.default_rng(1)
    assert all(loss(np.asarray(dual) + 1e-3 * rng.normal(size=(2, 3))) > value for _ in range(20))


@pytest.mark.thorough
def test_global_minimum_bounds_every_width_and_is_reached():
    task = problem()
    found = minimise_globally(task, tolerance=1e-6)
    assert found.converged
    wide = problem(hidden=(len(found.weights),))
    assert float(wide.loss(found.network)) == pytest.approx(found.value, rel=1e-10)
    runs = train_regularised(task, range(4), steps=1000)
    best = min(runs, key=lambda run: run.loss)
    assert best.loss == pytest.approx(found.value, rel=2e-6)
    assert best.loss >= (found.value - found.gap) * (1 - 1e-12)
    gap, response = block_gap(task, best.vector, 1)
    assert gap <= 1e-8  # at depth two the block is the whole problem: a trained network is its own certificate
    assert response == pytest.approx(1, abs=1e-8)
    with pytest.raises(ValueError, match="depth 3"):
        minimise_globally(problem(hidden=(2, 2)))
