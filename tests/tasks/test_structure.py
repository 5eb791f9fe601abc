"""Labels of constructed students, as "3-copy-1-average" and "perturbed-8-copy"."""

import numpy as np
import pytest

import understudy as us
from understudy.points import structure
from understudy.theory import copy_average, predicted_loss

ERF = us.Teacher.orthonormal(8, dim=9)


def label(task, incoming, outgoing):
    return structure(task, us.TwoLayer(incoming, outgoing)).label


def permuted(point, seed=0):
    """The same student with neurons in another order and half of the signs turned (erf is odd)."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(point.width)
    signs = np.where(np.arange(point.width) % 2 == 0, -1.0, 1.0)
    return us.TwoLayer(signs[:, None] * np.asarray(point.incoming)[order], signs * np.asarray(point.outgoing)[order])


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        ((1, 1, 1, 5), "3-copy-1-average"),
        ((1, 2, 5), "(1,2,5)-copy-average"),
        ((8,), "1-average"),
        ((2, 2, 2, 2), "(2,2,2,2)-copy-average"),
        ((1,) * 8, "8-copy"),
        ((1, 1, 1, 1, 1, 1, 2), "6-copy-1-average"),
    ],
)
def test_copy_average_points_get_their_names(partition, expected):
    task = us.Population(ERF, width=len(partition))
    point = copy_average("erf", partition=partition, dim=9)
    for student in (point, permuted(point)):
        found = structure(task, student)
        assert found.label == expected
        assert found.distance < 1e-10
        groups = sorted(n.teachers for n in found.neurons)
        assert sorted(j for g in groups for j in g) == list(range(8))
    assert {n.sign for n in structure(task, permuted(point)).neurons} == ({-1} if len(partition) == 1 else {-1, 1})


def test_perturbed_copies():
    task = us.Population(ERF, width=8)
    w = np.eye(8, 9) + 0.05 * np.random.default_rng(0).normal(size=(8, 9))
    found = structure(task, us.TwoLayer(w, np.full(8, 1.1)))
    assert found.label == "perturbed-8-copy"
    assert {n.role for n in found.neurons} == {"perturbed copy"}
    assert found.distance > 1e-2
    assert [n.teachers for n in found.neurons] == [(j,) for j in range(8)]


def test_copies_with_a_near_average_are_perturbed():
    task = us.Population(ERF, width=4)
    point = copy_average("erf", partition=(1, 1, 1, 5), dim=9)
    w = np.asarray(point.incoming).copy()
    w[3, 5] += 0.02
    assert label(task, w, point.outgoing) == "perturbed-3-copy-1-average"


def test_a_little_off_is_still_exact_and_more_is_not():
    task = us.Population(ERF, width=4)
    point = copy_average("erf", partition=(1, 1, 1, 5), dim=9)
    w = np.asarray(point.incoming)
    assert label(task, w + 1e-9, point.outgoing) == "3-copy-1-average"
    assert label(task, w + 1e-4, point.outgoing) == "perturbed-3-copy-1-average"


def test_relu_copies_at_any_scale_and_not_mirrored():
    task = us.Population(us.Teacher.orthonormal(3, activation="relu"), width=3)
    w, scales = np.eye(3)[[2, 0, 1]], np.array([0.1, 1.0, 30.0])
    found = structure(task, us.TwoLayer(scales[:, None] * w, 1 / scales))
    assert found.label == "3-copy"
    assert [n.teachers for n in found.neurons] == [(2,), (0,), (1,)]
    assert label(task, -w, np.ones(3)) != "3-copy"


def test_duplicates_share_a_role_and_the_sum_of_their_weights():
    task = us.Population(us.Teacher.orthonormal(2), width=3)
    found = structure(task, us.TwoLayer([[1, 0], [0, 1], [0, -1]], [1.0, 0.25, -0.75]))
    assert found.label == "2-copy-1-duplicate"
    assert found.neurons[2].partner == 1
    relu = us.Population(us.Teacher.orthonormal(2, activation="relu"), width=3)
    assert label(relu, [[1, 0], [0, 1], [0, 3]], [1.0, 0.25, 0.25]) == "2-copy-1-duplicate"


@pytest.mark.parametrize("dead", [([0.3, 0.4], 0.0), ([0.0, 0.0], 0.7), ([0.0, 0.0], 0.0)])
def test_dead_neurons_are_counted_apart(dead):
    task = us.Population(us.Teacher.orthonormal(2), width=3)
    w, a = dead
    found = structure(task, us.TwoLayer([[1, 0], w, [0, 1]], [1.0, a, 1.0]))
    assert found.label == "2-copy-1-dead"
    assert found.neurons[1].role == "dead"


def test_nothing_but_dead_neurons():
    task = us.Population(us.Teacher.orthonormal(2), width=2)
    assert label(task, np.zeros((2, 2)), np.zeros(2)) == "2-dead"


def test_two_students_at_one_teacher_are_no_copies_of_it():
    task = us.Population(us.Teacher.orthonormal(2), width=2)
    assert label(task, [[1, 0.1], [1, -0.1]], [0.5, 0.5]) == "other"


def test_teachers_of_both_signs():
    """Outgoing weights ±1: an average of such a pair is along v_1 - v_2."""
    teacher = us.Teacher.orthonormal(4, outgoing=[1.0, 1.0, 1.0, -1.0])
    task = us.Population(teacher, width=3)
    w = np.zeros((3, 4))
    w[0, 0] = w[1, 1] = 1.0
    w[2, 2:] = [0.4, -0.4]
    assert label(task, w, [1.0, 1.0, 2.0]) == "2-copy-1-average"


def test_a_huge_dimension_costs_nothing():
    task = us.Population(us.Teacher.orthonormal(8, dim=100_000), width=4)
    assert structure(task, copy_average("erf", partition=(1, 1, 1, 5), dim=100_000)).label == "3-copy-1-average"


@pytest.mark.parametrize("turn", range(3))
def test_labels_do_not_depend_on_how_teachers_are_numbered(turn):
    """A near average that leans away from one of the teachers, whichever number that one has."""
    order = np.roll(np.arange(3), turn)
    task = us.Population(us.Teacher.orthonormal(3), width=1)
    found = structure(task, us.TwoLayer(np.array([[-0.5, 0.7, 0.7]])[:, order], [1.0]))
    assert found.label == "perturbed-1-average"
    assert found.neurons[0].sign == 1
    assert sorted(order[list(found.neurons[0].teachers)]) == [1, 2]


@pytest.mark.parametrize("partition", [(1, 1, 1, 5), (1, 2, 5), (8,), (1,) * 8])
def test_a_structure_carries_its_partition_and_its_predicted_loss(partition):
    task = us.Population(ERF, width=len(partition))
    point = permuted(copy_average("erf", partition=partition, dim=9))
    found = structure(task, point)
    assert found.partition == tuple(sorted(partition))
    assert predicted_loss(found) == pytest.approx(float(task.loss(point)), abs=1e-12)


def test_partitions_that_no_theory_covers():
    task = us.Population(ERF, width=2)
    two_copies = structure(task, us.TwoLayer(np.eye(2, 9), [1.0, 1.0]))
    assert two_copies.partition == (1, 1)
    assert predicted_loss(two_copies) is None  # six teachers belong to no student
    assert structure(task, us.TwoLayer(np.eye(2, 9) + 0.1, [1.0, 1.0])).partition is None
    relu = us.Population(us.Teacher.orthonormal(2, activation="relu"), width=2)
    assert predicted_loss(structure(relu, us.TwoLayer(np.eye(2), [1.0, 1.0]))) is None
    turned = us.Population(us.Teacher(np.eye(2), [1.0, 2.0], "erf"), width=2)
    assert structure(turned, us.TwoLayer(np.eye(2), [1.0, 2.0])).setting is None


def test_tasks_without_a_known_structure_say_so():
    task = us.Empirical(us.TwoLayer([[0.0]], [0.0]), [[1.0]], [1.0], activation="tanh")
    assert structure(task, us.TwoLayer([[1.0]], [1.0])).label == ""


def test_teachers_that_do_nothing_are_not_copied():
    """Outgoing weights of zero: no division by zero, and nothing is a copy."""
    task = us.Population(us.Teacher(np.eye(2), [0.0, 0.0], "erf"), 1)
    found = task.structure(us.TwoLayer([[1.0, 0.0]], [1.0]))
    assert (found.label, found.neurons[0].role) == ("other", "other")
