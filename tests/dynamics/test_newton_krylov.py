"""Compiled multistep runs without Hessians, beside SciPy's Radau and the batched flow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import understudy as us
from understudy.dynamics import FlowOptions, follow, large, newton_krylov, starts
from understudy.dynamics.multistep import _interpolation

TIMES = np.array([0.0, 0.5, 3.0, 3.1, 30.0])


@pytest.fixture(scope="module")
def task():
    return us.Population(us.Teacher.orthonormal(5, dim=6), width=4)


@pytest.fixture(scope="module")
def begin(task):
    return np.asarray(task.flatten(starts.gaussian(task, 2, 0.3)))


@pytest.fixture(scope="module")
def exact(task, begin):
    evaluate = jax.jit(lambda x: task.evaluate(x)[1:])
    solved = solve_ivp(
        lambda _, x: -np.asarray(evaluate(x)[0]), (0, 30), begin[0], "Radau", TIMES,
        jac=lambda _, x: -np.asarray(evaluate(x)[1]), rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    return solved.y.T


def run(task, begin, **options):
    return next(large.follow(task, begin[:1], FlowOptions(snapshots=TIMES, **options), None))[1]


def test_snapshots_are_those_of_the_flow(task, begin, exact):
    """Errors of steps add up to some tens of tolerances, and shrink with them."""
    errors = []
    for tolerance in (1e-4, 1e-6):
        found = run(task, begin, rtol=tolerance, atol=tolerance, max_time=30.0, polish=False)
        assert found.ending == "time limit"
        assert found.time == 30.0
        assert np.array_equal(found.times, TIMES)
        np.testing.assert_allclose(found.vector, found.snapshots[-1], atol=1e-13)
        errors.append(np.abs(found.snapshots - exact).max(axis=1))
    assert errors[1].max() < 1e-4
    assert errors[1].max() < 0.2 * errors[0].max()


def test_runs_end_where_batched_runs_end(task, begin):
    batched = dict(follow(task, begin, FlowOptions(snapshots=0), lanes=2))
    for index, alone in large.follow(task, begin, FlowOptions(snapshots=0), None):
        assert alone.ending == batched[index].ending == "polished"
        np.testing.assert_allclose(alone.vector, batched[index].vector, atol=1e-9)


def test_limits_are_kept(task, begin):
    found = run(task, begin, max_steps=7)
    assert found.ending == "step limit"
    assert found.steps + found.rejected == 7


@pytest.mark.parametrize("order", [1, 3, 5])
def test_differences_are_rescaled_as_in_the_plain_method(order):
    plain = (_interpolation(order, 0.7) @ _interpolation(order, 1.0)).T
    masked = np.asarray(newton_krylov._rescaling(jnp.asarray(order), jnp.asarray(0.7)))
    np.testing.assert_allclose(masked[: order + 1, : order + 1], plain, atol=1e-14)
    np.testing.assert_array_equal(masked[order + 1 :], np.eye(len(masked))[order + 1 :])


def test_middle_sizes_are_followed_without_hessians():
    middle = us.Population(us.Teacher.orthonormal(16), width=8)
    assert large.least_size(middle) < middle.size < large.LARGE
    assert large.least_size(us.Population(us.Teacher.orthonormal(3), width=2, bias="trained")) == large.LARGE
