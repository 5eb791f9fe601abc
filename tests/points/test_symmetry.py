"""Runs that ended in one point, up to symmetry, are one group."""

from dataclasses import dataclass

import numpy as np

import understudy as us
from understudy.points import group_runs


@dataclass
class Point:
    certificate: object
    structure: object
    loss: float


def test_runs_group_by_verdict_label_loss_and_spectrum():
    task = us.Population(us.Teacher.orthonormal(3), width=3)
    eye = np.eye(3)
    points = [
        us.TwoLayer(eye, np.ones(3)),
        us.TwoLayer(eye[[2, 0, 1]], np.ones(3)),
        us.TwoLayer(0.5 * eye, np.ones(3)),
        us.TwoLayer(-eye[[1, 0, 2]], -np.ones(3)),
    ]
    runs = [Point(us.certify(task, p), us.points.structure(task, p), float(task.loss(p))) for p in points]
    groups = group_runs(runs)
    assert [(g.count, g.members) for g in groups] == [(3, (0, 1, 3)), (1, (2,))]
    assert (groups[0].kind, groups[0].label) == ("minimum", "3-copy")
    assert groups[1].kind == "unconverged"
