"""What is proved, and what is refused with which reason."""

import time

import numpy as np
import pytest
from tests.proofs.cases import (
    beside_the_teacher,
    copies,
    default_case,
    dependent_teachers,
    one_average,
    one_relu,
    shared,
    tight_balance,
)

import understudy as us
from understudy.points import certify
from understudy.proofs import prove, verify


def test_the_default_case_is_a_strict_minimum():
    task, point = default_case()
    proof = prove(task, point)
    assert proof.holds
    assert (proof.kind, proof.index, proof.zeros, proof.positives) == ("strict minimum", 0, 0, 40)
    assert float(proof.error) < 1e-29
    assert float(proof.upper) - float(proof.lower) <= 1e-15
    assert abs(proof.loss - float(task.loss(point))) < 1e-14
    assert "strict minimum" in proof.statement


def test_sixteen_teachers_and_eight_students_within_two_minutes():
    task = us.Population(us.Teacher.orthonormal(16, 17, "erf"), 8)
    point = us.theory.copy_average("erf", (1,) * 7 + (9,), dim=17)
    begun = time.process_time()
    proof = prove(task, point)
    assert proof.kind == "strict minimum"
    assert proof.positives == task.size
    assert time.process_time() - begun < 120


@pytest.mark.parametrize("degree", [6, 8, 10])
@pytest.mark.parametrize("dim", [2, 3, 5])
def test_tight_balance_is_a_strict_minimum_from_degree_6_on(degree, dim):
    proof = prove(*tight_balance(degree, dim))
    assert proof.kind == "strict minimum"
    assert proof.positives == 2 * (dim - 1)


def test_tight_balance_of_degree_4_is_degenerate():
    proof = prove(*tight_balance(4))
    assert not proof.holds
    assert "degenerate" in proof.reason


@pytest.mark.parametrize(
    ("partition", "dim"), [((3,), 3), ((2, 2), 6), ((1, 3), 4), ((1, 1, 1, 5), 9), ((2, 2, 2, 2), 9), ((4, 4, 1), 9)]
)
def test_the_inertia_of_copy_average_points_is_the_certificates(partition, dim):
    point = us.theory.copy_average("erf", partition, dim=dim)
    task = us.Population(us.Teacher.orthonormal(sum(partition), dim, "erf"), len(partition))
    seen, proof = certify(task, point), prove(task, point)
    assert (proof.index, proof.zeros, proof.positives) == (seen.index, seen.zeros, seen.positives)


def test_a_saddle_is_proved_with_its_index():
    task = us.Sphere(np.eye(2, 3), 2, activation="hermite:6")
    proof = prove(task, np.pad(np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2), ((0, 0), (0, 1))))
    assert (proof.kind, proof.index, proof.positives) == ("strict saddle", 2, 2)
    assert "index 2" in proof.statement


@pytest.mark.parametrize(("students", "dim", "inertia"), [(1, 4, (1, 2, 0)), (2, 5, (2, 5, 1)), (2, 3, (2, 1, 1))])
def test_students_beyond_the_teachers_span_have_rotations(students, dim, inertia):
    # Toward the teacher the loss falls, toward another student it rises, and rotations about the teacher leave it as it is.
    task, point = beside_the_teacher(students, dim)
    proof, seen = prove(task, point), certify(task, point)
    assert proof.frame.extra == students
    assert (proof.index, proof.zeros, proof.positives) == inertia == (seen.index, seen.zeros, seen.positives)


def test_zeros_of_rescalings_and_kinks_at_parallel_neurons():
    proof = prove(*copies("relu"))
    assert (proof.kind, proof.zeros, proof.positives) == ("strict minimum", 2, 8)
    assert float(proof.lower) <= 0 <= float(proof.upper)


@pytest.mark.parametrize(
    ("share", "kind", "index"), [(0.3, "strict saddle", 2), (1.5, "minimum", 0), (-0.5, "minimum", 0)]
)
def test_shared_neurons_are_a_minimum_or_a_saddle_by_the_sign_of_their_shares(share, kind, index):
    task, point = shared(share)
    proof, seen = prove(task, point), certify(task, point)
    assert (proof.kind, proof.index) == (kind, index)
    assert (proof.index, proof.zeros, proof.positives) == (seen.index, seen.zeros, seen.positives)


def test_mirrored_neurons_of_an_even_activation_are_shared():
    w = np.array([[0.8212116703588632, 0.7216176304476986, 0.3146314622519864]])
    point = us.TwoLayer(np.concatenate([w, -w]), np.array([1.5, -0.5]) * 1.1356892964389906)
    assert prove(dependent_teachers(2, "abs"), point).kind == "minimum"


def test_shared_erf_neurons_are_degenerate():
    # E[r σ''(w·x) (w·x) x] vanishes with the gradient for erf: along w the two neurons part at higher order.
    task, point = one_average("erf", 3, 1, 3)
    both = us.TwoLayer(
        np.repeat(np.asarray(point.incoming), 2, axis=0), np.array([0.3, 0.7]) * np.asarray(point.outgoing)
    )
    assert "degenerate" in prove(us.Population(task.teacher, 2), both).reason


@pytest.mark.parametrize(
    ("move", "word"), [(1e-2, "no critical point"), (1e-6, None)], ids=["not critical", "beside a critical point"]
)
def test_a_point_that_is_not_critical_is_not_proved(move, word):
    task, point = default_case()
    vector = np.asarray(task.flatten(point)) + move * np.cos(np.arange(task.size))
    proof = prove(task, vector)
    assert proof.holds == (word is None)
    assert word is None or word in proof.reason


@pytest.mark.parametrize(
    ("task", "point", "word"),
    [
        (us.Population(us.Teacher.orthonormal(2, 2, "relu"), 1), us.TwoLayer([[0.0, 0.0]], [1.0]), "zero incoming vector"),
        (us.Population(us.Teacher.orthonormal(2, 2, "quadratic"), 2), us.TwoLayer(np.eye(2), np.ones(2)), "degenerate"),
        (us.Population(us.Teacher.orthonormal(1, 2, "erf"), 2), us.TwoLayer(np.eye(2), [1.0, 0.0]), "degenerate"),
        (us.Population(us.Teacher.orthonormal(2, 2, "gelu"), 1), us.TwoLayer([[1.0, 0.0]], [1.0]), "no enclosure"),
        (us.Empirical(us.TwoLayer(np.eye(2), np.ones(2)), np.eye(2), np.ones(2), activation="erf"),
         us.TwoLayer(np.eye(2), np.ones(2)), "no exact form"),
    ],
    ids=["kink", "flat", "dead neuron", "no enclosure", "data"],
)  # fmt: skip
def test_refusals_give_the_reason(task, point, word):
    proof = prove(task, point)
    assert not proof.holds
    assert word in proof.reason
    assert proof.statement.startswith("Not proved: ")


def test_dependent_teachers_need_gram_schmidt():
    task, point = one_relu()
    proof, seen = prove(task, point), certify(task, point)
    assert proof.frame.basis == "gram-schmidt"
    assert (proof.frame.rank, proof.frame.outside) == (2, 1)
    assert (proof.index, proof.zeros, proof.positives) == (seen.index, seen.zeros, seen.positives)
    assert abs(proof.loss - seen.loss) < 1e-14


def test_a_batch_is_refused():
    task, _ = default_case()
    with pytest.raises(ValueError, match="one point at a time"):
        prove(task, np.zeros((2, task.size)))


class _Shifted(us.Population):
    """A task whose exact form misses a part of its loss."""

    def value(self, vector):
        return super().value(vector) + 1e-3


def test_an_exact_form_that_does_not_fit_its_task_proves_nothing():
    task, point = default_case()
    proof = prove(_Shifted(task.teacher, task.width), point)
    assert "not the same problem" in proof.reason


@pytest.mark.parametrize("outgoing", [1e-12, 1e-6, 1e9])
@pytest.mark.parametrize("incoming", [1e-9, 1.0, 1e6])
def test_a_problem_in_other_units_is_proved_as_well(incoming, outgoing, tmp_path):
    _, point = one_relu()
    plain = dependent_teachers(1).teacher
    teacher = us.Teacher(incoming * np.asarray(plain.incoming), outgoing * np.asarray(plain.outgoing), "relu")
    scaled = us.TwoLayer(incoming * np.asarray(point.incoming), outgoing * np.asarray(point.outgoing))
    proof = prove(us.Population(teacher, 1), scaled)
    assert (proof.kind, proof.zeros, proof.positives) == ("strict minimum", 1, 3)
    assert verify(proof.save(tmp_path / "proof.json")).accepted
