"""Plateaus along runs: near which point, and how long."""

import numpy as np
import pytest

import understudy as us
from understudy.dynamics import FlowOptions, follow
from understudy.papers.tight_balance.plateaus import find_plateaus
from understudy.tasks.sphere import Sphere

OPTIONS = FlowOptions(rtol=1e-8, atol=1e-8, snapshots=np.logspace(-2, 5, 141).tolist())


def run_from(*degrees):
    phi = np.radians(degrees)
    rows = np.stack([np.cos(phi), np.sin(phi)], axis=1)
    task = Sphere(np.eye(2), 2)
    ((_, trajectory),) = follow(task, rows.reshape(1, -1), OPTIONS, lanes=16)
    return task, trajectory


@pytest.mark.thorough
def test_a_run_beside_one_teacher_lingers_at_tight_balance():
    task, trajectory = run_from(9.5, -9.0)
    (plateau,) = find_plateaus(task, trajectory)
    rows = plateau.critical.reshape(2, 2)
    assert task.structure(us.TwoLayer(rows, np.ones(2))).label == "1-tight-pair"
    assert plateau.residual < 1e-14
    assert plateau.begin < plateau.time < plateau.end
    assert plateau.loss == pytest.approx(0.75, abs=1e-4)
    assert plateau.distance < 0.02
    # The mean angle s has shrunk before the plateau and is largest at its end: the whole stay is below 1/(64 s²) there.
    mean = abs(np.degrees(np.arctan2(rows[:, 1], rows[:, 0])).sum())
    assert mean < 1e-3
    assert plateau.duration > 10


def test_a_run_to_different_teachers_has_none():
    task, trajectory = run_from(20, 70)
    assert find_plateaus(task, trajectory) == []


def test_too_few_snapshots_give_none():
    task, trajectory = run_from(20, 70)
    short = type(trajectory)(
        **{**trajectory.__dict__, "times": trajectory.times[:2], "snapshots": trajectory.snapshots[:2]}
    )
    assert find_plateaus(task, short) == []
