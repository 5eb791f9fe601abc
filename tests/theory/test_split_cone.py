"""Split cones: velocities on their edge by two routes, starts inside, and the lemma's counterexample."""

import numpy as np
import pytest

from understudy.tasks.sphere import Sphere
from understudy.theory import split_cone


@pytest.mark.parametrize(("degree", "n", "k"), [(4, 3, 3), (6, 6, 6), (8, 5, 6)])
def test_velocity_on_the_edge_of_a_cone(degree, n, k):
    """Against the task's own gradient, and zero at the threshold, where pushes and attraction balance."""
    rows = split_cone.worst_start(degree, n, k, 0.01)
    task = Sphere(np.eye(k), n, activation=f"hermite:{degree}", repulsion=1 / n)
    slope = np.asarray(task.gradient(rows)).reshape(n, k)[0, 0]
    assert split_cone.velocity(rows, degree) == pytest.approx(-slope / degree, abs=1e-15)
    assert np.abs(np.linalg.norm(rows, axis=1) - 1).max() < 1e-15
    share = (n - 2 if k == n else n - 1) / n
    balanced = split_cone.worst_start(degree, n, k, split_cone.leaving_threshold(degree, share))
    assert abs(split_cone.velocity(balanced, degree)) < 1e-15


def test_into_cones_keeps_rows_unit_and_inside():
    rows = np.random.default_rng(0).normal(size=(50, 3, 3))
    moved = split_cone.into_cones(rows, np.full(50, 0.72))
    assert np.abs(np.linalg.norm(moved, axis=2) - 1).max() < 1e-14
    assert np.diagonal(moved, axis1=1, axis2=2).min() >= 0.72


def test_the_search_finds_failing_starts_below_the_threshold_and_none_for_two_students():
    task = Sphere(np.eye(3), 3, activation="hermite:4", repulsion=1 / 3)
    found = split_cone.failing_epsilon(task, rounds=2, batch=32)
    assert 0.3 * split_cone.leaving_threshold(4, 1 / 3) < found < split_cone.leaving_threshold(4, 1 / 3)
    two = Sphere(np.eye(2), 2, activation="hermite:6", repulsion=0.5)
    assert split_cone.failing_epsilon(two, rounds=2, batch=32) == 0.0
