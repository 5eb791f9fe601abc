"""Runs to infinity are named with their last state kept; runs that saturate or stall are not."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from toys import Toy
from understudy.dynamics import FlowOptions, follow
from understudy.dynamics.divergence import find_divergence


def end(task, start, **options):
    _, trajectory = next(follow(task, np.asarray(start, float)[None], FlowOptions(**options)))
    return trajectory


@pytest.mark.thorough
def test_a_neuron_that_becomes_a_line_diverges_like_the_sixth_root():
    """Erf against a linear teacher: w → 0 with aw fixed, the excess loss is ~ a⁻⁴, so a' ~ a⁻⁵ and a ~ t^(1/6)."""
    task = us.Population(us.Teacher([[1.0, 0.0]], [1.0], "linear"), width=1, activation="erf")
    trajectory = end(task, [0.3, 0.1, 0.5])
    found = find_divergence(trajectory)
    assert found is not None
    assert found.exponent == pytest.approx(1 / 6, abs=0.01)
    assert found.growing == (2,)
    assert np.all(np.isfinite(trajectory.vector))
    assert us.certify(task, trajectory.vector, diverging=found.describe()).kind == "diverging"
    assert "grow like t^0.1" in found.describe()


@pytest.mark.thorough
def test_two_neurons_that_become_a_derivative_diverge():
    """x σ'(x) is the limit of (σ((1 + ε)x) - σ(x))/ε: outgoing weights grow with opposite signs."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    target = nodes * np.sqrt(2 / np.pi) * np.exp(-(nodes**2) / 2)
    task = us.Empirical(
        us.TwoLayer([[0.0], [0.0]], [0.0, 0.0]),
        nodes[:, None],
        target,
        activation="erf",
        weights=weights / weights.sum(),
    )
    runs = us.fit(task, [0], init=np.array([[0.8, 1.3, -0.6, 0.7]]), options=FlowOptions(max_time=1e9))
    assert runs[0].certificate.kind == "diverging"
    assert "opposite" in runs[0].certificate.evidence[0] or "grow like" in runs[0].certificate.evidence[0]
    outgoing = np.asarray(runs[0].parameters.outgoing)
    assert outgoing[0] * outgoing[1] < 0
    assert np.abs(outgoing).min() > 5


@pytest.mark.thorough
def test_separable_data_under_a_logistic_cost_diverge_like_a_logarithm():
    x = np.array([[1.0], [2.0], [-1.0], [-1.5]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    task = us.Empirical(
        us.TwoLayer([[0.0]], [0.0]), x, y, activation="linear", cost=lambda f, t: jax.nn.softplus(-f * t)
    )
    trajectory = end(task, [0.5, 0.4])
    found = find_divergence(trajectory)
    assert found is not None
    assert 0 < found.exponent < 0.05
    assert us.certify(task, trajectory.vector).kind == "unconverged"


def test_a_noisy_last_gradient_does_not_hide_a_flight_if_the_task_is_known():
    """At loose tolerances the gradient at the end is the integrator's error; the loss of the kept points tells."""
    task = Toy(lambda x: jnp.sum(1 / (1 + x**2)), 1)
    trajectory = end(task, [1.0])
    noisy = dataclasses.replace(trajectory, gradient_norm=1.0)
    assert find_divergence(noisy) is None
    assert find_divergence(noisy, task).exponent == pytest.approx(find_divergence(trajectory).exponent)


def test_snapshots_are_not_needed():
    assert find_divergence(end(Toy(lambda x: jnp.sum(1 / (1 + x**2)), 1), [1.0], snapshots=0)) is not None


@pytest.mark.parametrize("order", [4, 6])
def test_slow_algebraic_convergence_is_not_divergence(order):
    """x^m falls to zero like t^(-1/(m-2)); around 1 + x the norm grows to its limit that slowly."""
    trajectory = end(Toy(lambda x: jnp.sum((x - 2) ** order), 1), [1.0], polish=False)
    assert find_divergence(trajectory) is None
    assert abs(trajectory.vector[0] - 2) < 0.01
