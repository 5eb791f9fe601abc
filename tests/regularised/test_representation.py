"""Representations: maps, inequality, projections, ridge, direct optimisation."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.papers.attraction_repulsion.descents import projected_gradient, random_representations
from understudy.papers.attraction_repulsion.problems import small_problem
from understudy.regularised import representation as r
from understudy.regularised.frank_wolfe import minimise_globally
from understudy.tasks.regularised import Regularised

RNG = np.random.default_rng(0)


def problem(hidden=(3,), samples=5, bias=1.0, activation="relu"):
    rng = np.random.default_rng(1)
    return Regularised(
        rng.normal(size=(samples, 2)),
        rng.normal(size=(samples, 1)),
        hidden,
        penalty=0.05,
        bias=bias,
        activation=activation,
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_maps_and_the_inequality(bias, activation):
    task = problem((4, 3), bias=bias, activation=activation)
    vector = RNG.normal(size=task.size)
    layers = r.to_representations(task, vector)
    least = task.flatten(r.to_weights(task, layers))
    assert r.infeasibility(task, layers) <= 1e-12
    for a, b in zip(layers, r.to_representations(task, least), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)
    useless = task.penalty * float(np.sum((vector - np.asarray(least)) ** 2))
    assert float(task.loss(vector)) == pytest.approx(r.representation_loss(task, layers) + useless, rel=1e-10)
    assert float(task.loss(least)) == pytest.approx(r.representation_loss(task, layers), rel=1e-10)


def test_projection_is_feasible_and_idempotent_and_infeasible_is_infinite():
    task = problem((2, 2))
    wild = [RNG.normal(size=(n, task.samples)) for n in task.widths[1:]]
    assert r.representation_loss(task, wild) == np.inf
    once = r.project(task, wild)
    assert r.infeasibility(task, once) <= 1e-12
    for a, b in zip(once, r.project(task, once), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_ridge_is_a_lower_bound_that_closes_and_its_gradient_is_right():
    task = problem((4,))
    layers = r.to_representations(task, RNG.normal(size=task.size))
    exact = r.representation_loss(task, layers)
    values = []
    for ridge in (1e-1, 1e-3, 1e-9):
        space = r.Representations(task, jnp.asarray(ridge))
        values.append(float(space.loss(space.flatten(layers))))
    assert values == sorted(values)
    assert values[-1] <= exact * (1 + 1e-12)
    assert values[-1] == pytest.approx(exact, rel=1e-6)
    space = r.Representations(task, jnp.asarray(1e-2))
    vector = np.asarray(space.flatten(layers))
    direction = RNG.normal(size=len(vector))
    h = 1e-6
    slope = (float(space.loss(vector + h * direction)) - float(space.loss(vector - h * direction))) / (2 * h)
    assert float(space.gradient(vector) @ direction) == pytest.approx(slope, rel=1e-6)


@pytest.mark.thorough
def test_direct_optimisation_finds_the_certified_minimum():
    task = small_problem(0)  # nearly all starts lead to its global minimum
    found = min(r.optimise(task, z).upper for z in random_representations(task, range(16), steps=2000, best=2))
    assert found == pytest.approx(minimise_globally(task, tolerance=2e-7).value, rel=1e-6)
    end, losses = projected_gradient(task, r.to_representations(task, task.starts([0])[0]), steps=5)
    assert np.all(np.diff(losses) < 0)
    assert r.infeasibility(task, end) <= 1e-9
