"""The flow on the sphere: norms for any length of time, order, agreement with a plain integrator, starts."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import kstest

import understudy as us
from understudy.dynamics import FlowOptions, follow, starts
from understudy.papers.tight_balance import tight_pairs as theory
from understudy.tasks.sphere import Sphere


@pytest.fixture(scope="module")
def task():
    return Sphere(us.Teacher.orthonormal(2, 4, "hermite:4"), 2)


@pytest.mark.thorough
def test_norms_stay_one_for_a_million_time_units(task):
    vectors = task.flatten(starts.uniform_sphere(task, 12))
    options = FlowOptions(max_time=1e6, stop=0.0, polish=False, snapshots=np.logspace(-1, 6, 15).tolist())
    for _, run in follow(task, vectors, options):
        assert run.time >= 1e6
        points = np.concatenate([run.snapshots, run.vector[None]]).reshape(-1, 2, 4)
        assert np.abs(np.linalg.norm(points, axis=2) - 1).max() < 1e-13


@pytest.mark.thorough
def test_against_a_plain_integrator(task):
    """SciPy's DOP853 at 1e-12 on the ambient field; ours at 1e-10 must agree to the tolerance times e^(growth)."""
    start = np.asarray(task.flatten(starts.uniform_sphere(task, [3])))
    times = np.linspace(0.2, 3.0, 15).tolist()
    options = FlowOptions(rtol=1e-10, atol=1e-10, polish=False, snapshots=times, max_time=4.0)
    ((_, run),) = follow(task, start, options, lanes=16)

    def field(_, w):
        rows = w.reshape(2, 4)
        v = np.eye(2, 4)
        gram = rows @ rows.T
        np.fill_diagonal(gram, 0.0)
        pull = 4 * (gram**3 @ rows - (rows @ v.T) ** 3 @ v)
        return -(pull - np.sum(pull * rows, axis=1, keepdims=True) * rows).ravel()

    reference = solve_ivp(field, (0, 3.0), start[0], method="DOP853", rtol=1e-12, atol=1e-13, t_eval=times)
    np.testing.assert_allclose(run.snapshots, reference.y.T, rtol=0, atol=1e-7)


@pytest.mark.thorough
def test_tight_balance_is_not_taken_for_an_end(task):
    """From s = 0.02 the flow stays 39 time units where its speed is 4e-4, and then reaches the copies."""
    rows = np.zeros((1, 2, 4))
    rows[:, :, :2] = theory.slow_curve(np.array([0.02]))
    options = FlowOptions(snapshots=np.logspace(-1, 6, 15).tolist())
    ((_, run),) = follow(task, rows.reshape(1, -1), options, lanes=16)
    assert run.ending == "polished"
    assert run.loss < 1e-14
    assert run.gradient_norm < 1e-13
    assert run.time == pytest.approx(theory.escape_time(0.02), rel=0.2)


def test_uniform_starts_are_uniform_and_belong_to_their_seed():
    task = Sphere(np.eye(2, 3), 2)
    rows = np.asarray(starts.uniform_sphere(task, 400).incoming)
    assert np.abs(np.linalg.norm(rows, axis=2) - 1).max() < 1e-15
    # On the sphere in three dimensions every coordinate is uniform on [-1, 1] (Archimedes).
    assert kstest(rows[:, :, 0].ravel(), "uniform", args=(-1, 2)).pvalue > 1e-4
    np.testing.assert_array_equal(starts.uniform_sphere(task, [7]).incoming[0], rows[7])
