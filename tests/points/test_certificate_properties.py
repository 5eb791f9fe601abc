"""What holds of a certificate at every critical point: symmetric points have the same one, and it counts every direction."""

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

import understudy as us
from examples import arrays, few_or_many, for_all, rotations
from understudy.papers.few_neurons.tailored import critical_teacher
from understudy.surgery import split
from understudy.theory import copy_average

TEACHERS, N = 4, 3


def inertia(found):
    return found.kind, found.index, found.zeros, found.positives, found.explained


@few_or_many
@pytest.mark.parametrize("dim", [TEACHERS, pytest.param(9, marks=pytest.mark.thorough)])
def test_symmetric_points_have_the_same_certificate(dim, examples):
    """Copy-average points and splits of such, turned with their teachers, in any order and with any signs."""
    straight = us.Population(us.Teacher.orthonormal(TEACHERS, dim=dim), N)
    known = [copy_average("erf", (1, 1, 2), dim=dim)]
    known += [split(copy_average("erf", (2, 2), dim=dim), {1: [mu, 1 - mu]}) for mu in (0.3, -0.4)]
    expected = [inertia(us.certify(straight, point)) for point in known]
    assert {kind for kind, *_ in expected} == {"minimum", "strict saddle"}

    @for_all(st.integers(0, len(known) - 1), rotations(dim), st.permutations(range(N)), arrays(N), examples=examples)
    def check(index, rotation, order, signs):
        order = list(order)
        signs = np.where(signs < 0, -1.0, 1.0)
        task = us.Population(us.Teacher(np.asarray(straight.teacher.incoming) @ rotation, np.ones(TEACHERS), "erf"), N)
        w, a = np.asarray(known[index].incoming)[order] @ rotation, np.asarray(known[index].outgoing)[order]
        found = us.certify(task, us.TwoLayer(signs[:, None] * w, signs * a))
        assert inertia(found) == expected[index]
        assert found.index + found.zeros + found.positives == task.size


@few_or_many
def test_the_inertia_counts_every_direction_and_is_that_of_the_hessian(examples):
    """Random students made critical by their teacher."""
    teachers = np.random.default_rng(0).normal(size=(8, 2))

    @for_all(arrays(2, 2), arrays(2), examples=examples)
    def check(w, a):
        assume(np.linalg.norm(w, axis=1).min() > 0.1)
        assume(np.abs(a).min() > 0.1)
        assume(np.linalg.norm(w[0] - w[1]) > 0.1)
        assume(np.linalg.norm(w[0] + w[1]) > 0.1)
        task = critical_teacher(us.TwoLayer(w, a), teachers, activation="erf")
        assume(np.abs(np.asarray(task.teacher.outgoing)).max() < 100)
        found = us.certify(task, us.TwoLayer(w, a))
        assert found.index + found.zeros + found.positives == task.size
        values = np.linalg.eigvalsh(np.asarray(task.hessian(us.TwoLayer(w, a))))
        sizes = np.abs(values) / np.abs(values).max()
        assume(not np.any((sizes > 1e-12) & (sizes < 1e-6)))
        assert found.index == int(np.sum(values[sizes > 1e-9] < 0))
        assert (found.kind == "strict saddle") == (found.index > 0)
