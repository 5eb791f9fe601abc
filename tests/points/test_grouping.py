"""Runs that ended in one point, up to symmetry, are one group."""

from dataclasses import dataclass

import numpy as np

import understudy as us
from understudy.points import group_runs
from understudy.points.grouping import group_ends


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


def test_equal_losses_with_other_spectra_are_two_points_unless_the_set_is_flat():
    spectra = [np.array([1.0, 2.0, np.nan]), np.array([1.0, 2.0]), np.array([1.0, 2.1, np.nan])]
    kinds, labels, losses = ["minimum"] * 3, ["1-copy"] * 3, [0.5, 0.5 + 1e-9, 0.5]
    assert group_ends(kinds, labels, losses, [0, 0, 0], spectra) == [[0, 1], [2]]
    assert group_ends(kinds, labels, losses, [1, 1, 1], spectra) == [[0, 1, 2]]
    assert group_ends(kinds, labels, [0.5, 0.5, 0.6], [1, 1, 1], spectra) == [[0, 1], [2]]
