"""Fates of split-cone starts: the same as the stiff flow's, decided only where nothing can change."""

import numpy as np
import pytest

from understudy.dynamics import FlowOptions, follow
from understudy.papers.tight_balance.cone_geometry import worst_start
from understudy.papers.tight_balance.cone_starts import into_cones
from understudy.papers.tight_balance.fates import reach_own_teachers, safe_overlap
from understudy.tasks.sphere import Sphere


@pytest.fixture(scope="module")
def task():
    return Sphere(np.eye(3), 3, activation="hermite:4", repulsion=1 / 3)


@pytest.mark.thorough
def test_the_same_as_the_stiff_flow(task):
    rng = np.random.default_rng(0)
    edge = np.stack([worst_start(4, 3, 3, e) for e in np.linspace(0.0, 0.02, 12)])
    rows = np.concatenate([into_cones(rng.normal(size=(12, 3, 3)), np.full(12, 0.6)), edge])
    reached, undecided = reach_own_teachers(task, rows)
    assert not undecided.any()
    assert 0 < reached.sum() < len(rows)
    options = FlowOptions(polish=False, stop=1e-7, max_time=1e5, snapshots=0, rtol=1e-7, atol=1e-8)
    ends = dict(follow(task, rows.reshape(len(rows), -1), options))
    own = [np.abs(np.diagonal(ends[i].vector.reshape(3, 3))).min() > 1 - 1e-6 for i in range(len(rows))]
    assert reached.tolist() == own


def test_from_the_safe_overlap_no_own_overlap_falls(task):
    safe = safe_overlap(task)
    rows = into_cones(np.random.default_rng(1).normal(size=(500, 3, 3)), np.full(500, safe))
    slopes = np.asarray(task.gradient(rows)).reshape(rows.shape)
    own = np.diagonal(rows, axis1=1, axis2=2)
    growth = -np.diagonal(slopes, axis1=1, axis2=2)
    assert growth[own < safe + 1e-12].min() > 0


def test_a_run_out_of_time_is_undecided_and_other_tasks_are_refused(task):
    rows = worst_start(4, 3, 3, 0.05)[None]
    reached, undecided = reach_own_teachers(task, rows, longest=1e-3)
    assert (reached.tolist(), undecided.tolist()) == ([False], [True])
    with pytest.raises(ValueError, match="even degrees"):
        reach_own_teachers(Sphere(np.eye(3), 3, activation="hermite:5"), rows)
