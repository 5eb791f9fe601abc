"""Forces against derivatives of the loss, balance at a minimum; plateau detection."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cases import thorough_but
from understudy.papers.attraction_repulsion.training import train_regularised
from understudy.regularised import balancing_gates, detect_plateau, forces
from understudy.regularised.representation import Representations, to_representations, to_weights
from understudy.tasks.regularised import Regularised


def problem(hidden, activation="relu", samples=4, outputs=1):
    rng = np.random.default_rng(1)
    return Regularised(
        rng.normal(size=(samples, 2)), rng.normal(size=(samples, outputs)), hidden, penalty=0.02, activation=activation
    )


@pytest.mark.thorough
@pytest.mark.parametrize("outputs", thorough_but([1, 2], [1]))
def test_forces_are_derivatives_where_ranks_are_full(outputs):
    task = problem((6, 6), "tanh", 3, outputs)  # 3 rows at the entry, 3 inputs: all ranks are 3
    vector = task.flatten(to_weights(task, to_representations(task, np.random.default_rng(0).normal(size=task.size))))
    layers = [jnp.asarray(z) for z in to_representations(task, vector)]
    space = Representations(task, jnp.asarray(0.0))

    def term(which, z, i):
        before = task.entry if which == 0 else task.activate(layers[which - 1] if which - 1 != i else z)
        own = z if which == i else layers[which]
        return task.penalty * jnp.sum(own * jnp.linalg.solve(before.T @ before, own.T).T)

    slope = jax.jit(jax.grad(term, argnums=1), static_argnums=(0, 2))
    assert float(space.loss(space.flatten(tuple(layers)))) == pytest.approx(float(task.loss(vector)), rel=1e-9)
    for found in forces(task, vector):
        i = found.layer - 1
        np.testing.assert_allclose(found.attraction, slope(i, layers[i], i), atol=1e-8)
        np.testing.assert_allclose(found.local_repulsion, slope(i + 1, layers[i], i), atol=1e-8)


CASES = [((6,), 1), ((4, 4), 1), ((6,), 2), ((4, 4), 2)]


@pytest.mark.parametrize(("hidden", "outputs"), thorough_but(CASES, CASES[:1]))
def test_balance_to_the_gradient_norm(hidden, outputs):
    task = problem(hidden, outputs=outputs)
    runs = [run for run in train_regularised(task, range(4), steps=1000) if run.residual < 1e-10]
    assert runs
    for run in runs:
        for found in forces(task, run.vector, gates=run.gates):
            assert found.residual <= 2 * found.conditioning * run.residual + 1e-14
            assert np.linalg.norm(found.attraction) > 1e-3
        if run.pinned.any():  # slopes at kinks are found from the network alone
            gates = balancing_gates(task, run.vector)
            assert all(f.residual < 1e-8 * f.conditioning for f in forces(task, run.vector, gates=gates))
            assert max(f.residual for f in forces(task, run.vector)) > 1e-4
    assert any(run.pinned.any() for run in runs)


def test_smooth_activations_have_no_kinks_and_a_dead_neuron_is_at_rest():
    smooth = problem((3,), "tanh")
    assert balancing_gates(smooth, np.ones(smooth.size)) is None
    task = problem((3,))
    first = np.array([[0.0, 0.0, 0.0], [1.0, 0.5, 0.1], [0.2, -1.0, 0.3]])
    weights = (first, np.array([[0.0, 1.0, 1.0, 0.5]]))
    gates = balancing_gates(task, weights).reshape(3, -1)
    np.testing.assert_array_equal(gates[1:], np.sign(first[1:] @ np.asarray(task.entry)))
    found = forces(task, weights, gates=gates.ravel())[0]
    np.testing.assert_array_equal(found.repulsion[0], 0.0)


def test_plateau_rule():
    widths = [1, 2, 4, 8, 16]
    clean = np.array([[4.0, 5.0], [2.0, 2.0], [1.0, 1.3], [1.0, 1.0], [1.005, 1.2]])
    found = detect_plateau(widths, clean, resamples=400)
    assert (found.start, found.bracket) == (4, (3, 4))
    assert found.interval[0] == 4
    assert (
        found.interval[1] == 16
    )  # a quarter of the draws misses the good seed at width 4, and two widths are no plateau
    assert np.all(np.diff(found.least) <= 0)
    assert (
        detect_plateau(widths, clean[::-1][:, ::-1] * 0 + np.array([[5.0], [4.0], [3.0], [2.0], [1.0]])).start is None
    )
    with pytest.raises(ValueError, match="widths \\[2\\]"):
        detect_plateau([1, 2], np.array([[1.0], [np.nan]]))
    with pytest.raises(ValueError, match="positive"):
        detect_plateau([1, 2], np.array([[1.0], [0.0]]))
