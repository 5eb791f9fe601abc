"""Points that are one: under permutations, signs and scales, by assignment."""

from dataclasses import dataclass

import numpy as np
import pytest

import understudy as us
from understudy.points import group_runs, point_distance


def random_student(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("activation", "parity"), [("erf", "odd"), ("softplus", None), ("abs", "even"), ("relu", None)]
)
def test_permutations_and_allowed_signs_do_not_count(activation, parity):
    task = us.Population(us.Teacher.orthonormal(3, dim=4, activation=activation), width=5)
    w, a = random_student(5, 4)
    order = [3, 0, 4, 1, 2]
    same = us.TwoLayer(w[order], a[order])
    assert point_distance(task, us.TwoLayer(w, a), same) < 1e-14
    flip = np.array([1.0, -1.0, 1.0, -1.0, -1.0])
    turned = us.TwoLayer(flip[:, None] * w[order], (flip if parity == "odd" else 1.0) * a[order])
    distance = point_distance(task, us.TwoLayer(w, a), turned)
    assert (distance < 1e-14) == (parity is not None)
    assert abs(float(task.loss(turned) - task.loss(same))) < 1e-12 or parity is None


def test_scales_of_relu_neurons_do_not_count():
    task = us.Population(us.Teacher.orthonormal(3, activation="relu"), width=4)
    w, a = random_student(4, 3)
    c = np.array([0.01, 1.0, 7.0, 300.0])
    assert point_distance(task, us.TwoLayer(w, a), us.TwoLayer(c[:, None] * w, a / c)) < 1e-12


def test_assignment_where_sorting_fails():
    """Rounding swaps the order of nearly equal first entries: sorted rows would differ by 2, the points do by 1e-9."""
    task = us.Population(us.Teacher.orthonormal(2), width=2, activation="softplus")
    first = us.TwoLayer([[1.0, 1.0], [1.0 + 1e-9, -1.0]], [1.0, 1.0])
    second = us.TwoLayer([[1.0 + 1e-9, 1.0], [1.0, -1.0]], [1.0, 1.0])
    assert point_distance(task, first, second) < 2e-9


def test_greedy_matching_is_not_enough():
    """0, 2 against 1.1, -5: the nearest partner of both is 1.1; the best pairing gives 0 to -5 and 2 to 1.1."""
    task = us.Population(us.Teacher([[1.0]], [1.0], "softplus"), width=2)
    first, second = us.TwoLayer([[0.0], [2.0]], [1.0, 1.0]), us.TwoLayer([[1.1], [-5.0]], [1.0, 1.0])
    assert point_distance(task, first, second) == pytest.approx(np.hypot(5.0, 0.9))


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
