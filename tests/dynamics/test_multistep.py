import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import understudy as us
from understudy.dynamics import FlowOptions, follow, large, starts
from understudy.dynamics.multistep import Multistep
from understudy.dynamics.systems import Systems


def advance(stepper, until):
    while stepper.time < until:
        stepper.step(until)
    return stepper


def quadratic(curvatures):
    """L = ½ Σ λ_i x_i², whose flow is x_i exp(-λ_i t)."""
    return lambda x: (curvatures * x, np.diag(curvatures)), lambda x: curvatures * x


@pytest.fixture(scope="module")
def task():
    return us.Population(us.Teacher.orthonormal(5, dim=6), width=4)


@pytest.fixture
def large_methods(monkeypatch):
    """Every problem is followed as a large one."""
    monkeypatch.setattr(large, "least_size", lambda task: 0)


BY_METHOD = pytest.mark.parametrize("bias", ["none", "trained"], ids=["matrix-free", "dense"])
"""Only tasks without biases know blocks of their Hessian, which the matrix-free steps need."""


def functions(task):
    evaluate = jax.jit(lambda x: task.evaluate(x)[1:])
    return lambda x: tuple(map(np.asarray, evaluate(x))), lambda x: np.asarray(evaluate(x)[0])


@pytest.mark.parametrize("curvatures", [[1.0, 1e3, 1e-3], [-0.1, 2.0, 0.0]])
def test_a_quadratic_loss_decays_and_grows_exponentially(curvatures):
    """Stiff, unstable and flat directions; a thousand steps' worth of rtol is allowed for what errors add up to."""
    curvatures, start = np.array(curvatures), np.array([1.0, 1.0, 1.0])
    stepper = advance(Multistep(Systems(*quadratic(curvatures)), start, 1e-7, 1e-9, 1e-3), 20.0)
    assert stepper.time == 20.0
    np.testing.assert_allclose(stepper.vector, np.exp(-20 * curvatures), rtol=1e-4, atol=1e-7)


@pytest.mark.thorough
def test_errors_shrink_with_the_tolerance(task):
    start = np.asarray(task.flatten(starts.gaussian(task, [0], 0.3)))[0]
    evaluate, gradient = functions(task)
    exact = solve_ivp(
        lambda _, x: -gradient(x), (0, 30), start, "Radau", jac=lambda _, x: -evaluate(x)[1], rtol=1e-11, atol=1e-12
    ).y[:, -1]
    systems = Systems(evaluate, gradient)
    errors = [
        np.linalg.norm(advance(Multistep(systems, start, tol, tol, 1e-2), 30.0).vector - exact) for tol in (1e-4, 1e-6)
    ]
    assert errors[0] < 1e-1
    assert errors[1] < 1e-3
    assert errors[1] < 0.2 * errors[0]


def test_between_steps_the_polynomial_is_as_good_as_the_steps(task):
    start = np.asarray(task.flatten(starts.gaussian(task, [1], 0.3)))[0]
    evaluate, gradient = functions(task)
    stepper = advance(Multistep(Systems(evaluate, gradient), start, 1e-7, 1e-7, 1e-2), 3.0)
    before = stepper.vector.copy(), stepper.time
    while not stepper.step():
        pass
    middle = 0.5 * (before[1] + stepper.time)
    exact = solve_ivp(lambda _, x: -gradient(x), (before[1], middle), before[0], "DOP853", rtol=1e-11, atol=1e-13).y[
        :, -1
    ]
    ends = stepper.between(np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(ends[0], before[0], atol=1e-5)
    np.testing.assert_allclose(ends[1], exact, atol=1e-5)
    np.testing.assert_allclose(ends[2], stepper.vector, atol=1e-13)


def test_a_saved_state_is_taken_again(task):
    start = np.asarray(task.flatten(starts.gaussian(task, [2], 0.3)))[0]
    stepper = advance(Multistep(Systems(*functions(task)), start, 1e-6, 1e-6, 1e-2), 1.0)
    state = stepper.save()
    stepper.step()
    first = stepper.vector.copy()
    stepper.restore(state)
    stepper.step()
    np.testing.assert_allclose(stepper.vector, first, atol=1e-8)


@pytest.mark.thorough
@BY_METHOD
def test_runs_end_where_batched_steps_end(bias, request):
    task = us.Population(us.Teacher.orthonormal(5, dim=6), width=4, bias=bias)
    begin, options = np.asarray(task.flatten(starts.gaussian(task, 6, 0.1))), FlowOptions(rtol=1e-8, atol=1e-8)
    batched = dict(follow(task, begin, options))
    request.getfixturevalue("large_methods")
    for seed, run in follow(task, begin, options):
        assert run.ending == "polished"
        assert run.factorisations < 0.5 * (run.steps + run.rejected)
        np.testing.assert_allclose(run.vector, batched[seed].vector, atol=1e-9)
        # Leaving the saddles on the way magnifies errors of 1e-8 ten-thousandfold and more, before they shrink again.
        both = min(len(run.times), len(batched[seed].times))
        np.testing.assert_allclose(run.snapshots[:both], batched[seed].snapshots[:both], atol=1e-3)
        assert np.all(np.isfinite(run.snapshots))


@pytest.mark.thorough
@pytest.mark.usefixtures("large_methods")
def test_quadrature_follows_growing_norms():
    """A run from small weights whose norms outgrow the first choice of nodes."""
    task = us.Population(us.Teacher([[4.0, 0.0], [0.0, 4.0]], [1.0, 1.0], "tanh"), width=2)
    run = next(follow(task, np.array([[0.3, 0.05, 0.2, 0.02, 0.3, 0.2]]), FlowOptions(max_time=1e6)))[1]
    assert run.ending == "polished"
    assert run.loss == pytest.approx(0.0, abs=1e-12)


@pytest.mark.usefixtures("large_methods")
@BY_METHOD
def test_limits_are_kept(bias):
    task = us.Population(us.Teacher.orthonormal(5, dim=6), width=4, bias=bias)
    begin = np.asarray(task.flatten(starts.gaussian(task, 1, 0.1)))
    timed = next(follow(task, begin, FlowOptions(max_time=2.5)))[1]
    assert (timed.ending, timed.time) == ("time limit", 2.5)
    stepped = next(follow(task, begin, FlowOptions(max_steps=7)))[1]
    assert stepped.ending == "step limit"
    assert stepped.steps + stepped.rejected == 7
