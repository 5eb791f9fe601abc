"""Starts inside cones, and the search for those that leave them."""

import numpy as np
import pytest
from scipy.stats import kstest

from understudy.papers.tight_balance import cone_starts
from understudy.papers.tight_balance.cone_geometry import leaving_threshold
from understudy.tasks.sphere import Sphere


def test_into_cones_keeps_rows_unit_and_inside():
    rows = np.random.default_rng(0).normal(size=(50, 3, 3))
    moved = cone_starts.into_cones(rows, np.full(50, 0.72))
    assert np.abs(np.linalg.norm(moved, axis=2) - 1).max() < 1e-14
    assert np.diagonal(moved, axis1=1, axis2=2).min() >= 0.72


def test_the_search_finds_failing_starts_below_the_threshold_and_none_for_two_students():
    task = Sphere(np.eye(3), 3, activation="hermite:4", repulsion=1 / 3)
    found = cone_starts.failing_epsilon(task, rounds=2, batch=32)
    assert 0.3 * leaving_threshold(4, 1 / 3) < found < leaving_threshold(4, 1 / 3)
    two = Sphere(np.eye(2), 2, activation="hermite:6", repulsion=0.5)
    assert cone_starts.failing_epsilon(two, rounds=2, batch=32) == 0.0


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_split_cone_starts_are_uniform_in_their_cones(dim):
    task = Sphere(np.eye(2, dim), 2)
    rows = np.asarray(cone_starts.uniform_in_cones(task, 300, 0.75).incoming)
    own = rows[:, [0, 1], [0, 1]]
    assert own.min() > 0.75
    assert np.abs(np.linalg.norm(rows, axis=2) - 1).max() < 1e-14
    if dim == 3:
        assert kstest(own.ravel(), "uniform", args=(0.75, 0.25)).pvalue > 1e-4


def test_bad_split_cones_are_explained():
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        cone_starts.uniform_in_cones(Sphere(np.eye(2), 2), 1, 1.0)
    with pytest.raises(ValueError, match="cannot split"):
        cone_starts.uniform_in_cones(Sphere(np.eye(2), 3), 1, 0.5)
