"""Warm starts: exact where the theory is, sensible elsewhere."""

import numpy as np
import pytest

import understudy as us
from understudy.surgery.warm_start import _View, warm_start
from understudy.theory import copy_average_loss, one_neuron


@pytest.fixture(scope="module")
def rotated():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 7)))[0][:6]
    return us.Teacher(basis, np.ones(6), "erf")


def test_for_the_unit_orthonormal_teacher_it_is_the_copy_average_point(rotated):
    task = us.Population(rotated, width=3)
    average, copies = warm_start(task, "copy-average"), warm_start(task, "copy")
    assert float(task.loss(average)) == pytest.approx(one_neuron("erf", 4).loss, abs=1e-13)
    assert np.linalg.norm(task.gradient(average)) < 1e-12
    assert float(task.loss(copies)) == pytest.approx(copy_average_loss("erf", (1, 1, 1), 6), abs=1e-13)


def test_auto_follows_the_compression(rotated):
    low, high = us.Population(rotated, width=5), us.Population(rotated, width=4)
    assert np.array_equal(warm_start(low).incoming, warm_start(low, "copy").incoming)
    assert np.array_equal(warm_start(high).incoming, warm_start(high, "copy-average").incoming)


def test_the_heuristic_finds_the_same_without_knowing(rotated):
    view = _View(us.Population(rotated, width=3).imitation())
    group = view.group(4)
    assert view.best_average(group, passes=3)[0] == pytest.approx(one_neuron("erf", 4).loss, rel=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["copy-average", "copy"])
@pytest.mark.parametrize("case", ["non-orthogonal", "unequal", "non-isotropic", "relu"])
def test_other_tasks_get_starts_with_the_best_outgoing_weights(case, kind):
    teacher = {
        "non-orthogonal": us.Teacher.random(5, 8, "erf", seed=1),
        "unequal": us.Teacher.orthonormal(5, outgoing=[2.0, 1.0, 0.3, -0.5, 0.2]),
        "non-isotropic": us.Teacher.orthonormal(5),
        "relu": us.Teacher.orthonormal(5, activation="relu", outgoing=[2.0, 1.0, 0.5, 0.5, 0.2]),
    }[case]
    covariance = np.diag([0.3, 0.5, 1.0, 1.5, 2.0]) if case == "non-isotropic" else None
    task = us.Population(teacher, width=3, covariance=covariance)
    start = warm_start(task, kind)
    slopes = np.asarray(task.gradient(start)).reshape(3, -1)[:, -1]
    assert np.abs(slopes).max() < 1e-8
    assert float(task.loss(start)) < float(task.constant)


@pytest.mark.thorough
def test_strong_teachers_are_copied_and_weak_ones_averaged():
    task = us.Population(us.Teacher.orthonormal(4, outgoing=[0.1, 3.0, 0.1, 0.1]), width=2)
    start = warm_start(task, "copy-average")
    assert np.argmax(np.abs(start.incoming[0])) == 1
    assert abs(float(start.incoming[1][1])) < 1e-12
    assert np.argmax(np.abs(warm_start(task, "copy").incoming), axis=1).tolist().count(1) == 1


def test_what_it_cannot_do_is_refused():
    task = us.Population(us.Teacher.orthonormal(4), width=4)
    with pytest.raises(ValueError, match="received 4 students and 4 neurons"):
        warm_start(task)
    with pytest.raises(ValueError, match="kind is"):
        warm_start(task, "average")
