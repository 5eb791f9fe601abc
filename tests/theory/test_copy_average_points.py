"""Copy-average points: losses, criticality, counting and order."""

import math

import numpy as np
import pytest

import understudy as us
from understudy.papers.copy_average.counting import enumerate_points
from understudy.theory import copy_average, copy_average_loss, count, one_neuron, rank
from understudy.theory.copy_average import partitions, unmatched_force

CASES = [((1,), 1), ((1, 1, 3), 5), ((2, 3), 5), ((1, 2), 5), ((1, 1), 4)]


@pytest.mark.few(3)
@pytest.mark.parametrize(("sizes", "k"), CASES)
@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_the_loss_is_the_task_loss(activation, sizes, k):
    task = us.Population(us.Teacher.orthonormal(k, activation=activation), width=len(sizes))
    point = copy_average(activation, sizes, teachers=k)
    assert copy_average_loss(activation, sizes, teachers=k) == pytest.approx(float(task.loss(point)), abs=1e-13)


@pytest.mark.parametrize(("sizes", "k"), CASES)
def test_with_erf_exactly_the_complete_ones_are_critical(sizes, k):
    task = us.Population(us.Teacher.orthonormal(k), width=len(sizes))
    norm = np.linalg.norm(task.gradient(copy_average("erf", sizes, teachers=k)))
    assert norm == pytest.approx(unmatched_force("erf", sizes, k), abs=1e-12)
    assert (norm < 1e-12) == (sum(sizes) == k)


@pytest.mark.parametrize(("sizes", "k"), [((1, 2), 3), ((2, 2), 4), ((1, 1, 2), 4), ((1, 1), 4)])
def test_counting_agrees_with_enumeration(sizes, k):
    seen = {np.asarray(task_vector(p)).round(9).tobytes() for p in enumerate_points("erf", sizes, k)}
    assert len(seen) == count(sizes, teachers=k).total


def task_vector(point):
    return np.concatenate([np.asarray(point.incoming).ravel(), np.asarray(point.outgoing)])


def test_the_best_partition_has_one_average():
    for k in range(2, 12):
        for n in range(1, k):
            ranking = rank("erf", n, k, incomplete=True)
            assert ranking.best == (1,) * (n - 1) + (k - n + 1,)
            assert ranking.losses[0] == pytest.approx(one_neuron("erf", k - n + 1).loss, abs=1e-14)


def test_partitions_are_all_and_distinct():
    found = list(partitions(12, 4))
    assert len(found) == len(set(found)) == 15  # p(12, 4)
    assert all(sum(p) == 12 and sorted(p) == list(p) for p in found)


@pytest.mark.parametrize("bad", [(), (0, 2), (3, 3)])
def test_bad_partitions_are_refused(bad):
    with pytest.raises(ValueError, match=r"partition|need"):
        copy_average("erf", bad, teachers=4)


def test_growth_with_the_number_of_teachers():
    assert one_neuron("erf", 10_000).loss / 10_000 == pytest.approx(1 / 3 - 1 / math.pi, abs=1e-5)
