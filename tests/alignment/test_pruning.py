"""Pruned students: nothing changes where theory says so, and the report is of what was done."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.alignment.pruning import group_sums, prune_unaligned
from understudy.networks import Deep

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
TEACHER = Deep.glorot([5, 3, 2], seed=0, bias=0.3)


def student(leak=0.0):
    """The teacher's nodes (the first twice, split), a pair of equal strangers that cancel, and one with outgoing weights of that size."""
    w, b, v = (np.asarray(a) for a in (TEACHER.weights[0], TEACHER.biases[0], TEACHER.weights[1]))
    rng = np.random.default_rng(1)
    strange = rng.normal(size=(2, 5))
    rows = np.concatenate([2 * w[:1], 0.5 * w[:1], w[1:], strange[:1], 3 * strange[:1], strange[1:]])
    bias = np.concatenate([2 * b[:1], 0.5 * b[:1], b[1:], [0.1, 0.3, -0.2]])
    push = rng.normal(size=(2, 1))
    out = np.concatenate([0.25 * v[:, :1], v[:, :1], v[:, 1:], 3 * push, -push, leak * push], axis=1)
    return Deep((jnp.asarray(rows), jnp.asarray(out)), (jnp.asarray(bias), TEACHER.biases[1]))


@pytest.mark.thorough
def test_unaligned_nodes_that_contribute_nothing_go_without_a_trace():
    found = prune_unaligned(student(), TEACHER, X, tolerance=1e-9)
    assert found.removed == (4, 5, 6)
    assert found.groups == ((0, 1),)
    assert found.network.weights[0].shape == (3, 5)
    assert found.report.relative_change < 1e-13
    assert found.loss_before < 1e-25
    assert found.loss_after < 1e-25
    assert (found.report.before, found.report.after) == (7, 3)


def test_what_a_leak_changes_is_reported():
    small, large = (prune_unaligned(student(leak), TEACHER, X).report.relative_change for leak in (1e-4, 1e-3))
    assert small > 1e-6
    assert large == pytest.approx(10 * small, rel=1e-2)  # relative to outputs that hold the leak


def test_sums_over_colinear_groups_vanish_for_strangers_that_cancel():
    sums = dict(group_sums(student(), tolerance=1e-9))
    assert sums[(5, 4)] < 1e-14
    assert (0, 1) in sums
    total = np.asarray(TEACHER.weights[1])[:, 0] * np.linalg.norm(
        [*np.asarray(TEACHER.weights[0])[0], TEACHER.biases[0][0]]
    )
    assert sums[(0, 1)] == pytest.approx(np.linalg.norm(total), rel=1e-12)
    assert sorted(i for group in sums for i in group) == list(range(7))


def test_a_student_that_knows_nothing_cannot_be_pruned():
    with pytest.raises(ValueError, match="All 4 nodes"):
        prune_unaligned(Deep.glorot([5, 4, 2], seed=9), TEACHER, X, threshold=0.999)


def test_a_node_that_is_constant_on_the_data_goes_into_the_bias():
    w, b = TEACHER.weights, TEACHER.biases
    constant = Deep(
        (jnp.concatenate([w[0], 1e-9 * jnp.ones((1, 5))]), jnp.concatenate([w[1], jnp.ones((2, 1))], axis=1)),
        (jnp.concatenate([b[0], jnp.asarray([2.0])]), b[1] - 2.0),
    )
    folded, plain = (prune_unaligned(constant, TEACHER, X, fold=fold, largest_change=10.0) for fold in (True, False))
    assert folded.removed == plain.removed == (3,)
    assert folded.report.relative_change < 1e-8
    assert plain.report.largest_change == pytest.approx(2, rel=1e-6)


def test_opposite_nodes_are_one_group():
    pair = Deep((jnp.asarray([[1.0, 0.0], [-2.0, 0.0]]), jnp.asarray([[1.0, -0.5]])), (jnp.zeros(2), jnp.zeros(1)))
    assert group_sums(pair, tolerance=1e-9) == [((1, 0), 0.0)]


def opposite_student():
    """σ(u) = σ(-u) + σ(a) - σ(-a) + σ(u-a) - σ(a-u), and an exact copy of the other teacher."""
    u, a, other = np.eye(5)[0], np.array([0.3, 0.8, 0.1, 0.0, -0.4]), np.eye(5)[3]
    teacher = Deep((jnp.asarray([u, other]), jnp.ones((1, 2))), (jnp.zeros(2), jnp.zeros(1)))
    rows = jnp.asarray([-u, a, -a, u - a, a - u, other])
    return Deep((rows, jnp.asarray([[1.0, 1, -1, 1, -1, 1]])), (jnp.zeros(6), jnp.zeros(1))), teacher


def test_an_opposite_node_is_kept_and_the_linear_remainder_of_pairs_absorbed():
    """By correlations alone five of six nodes would go, and the loss would rise from 5e-32 to about 0.8."""
    student, teacher = opposite_student()
    found = prune_unaligned(student, teacher, X)
    assert found.opposite == (0,)
    assert found.removed == (1, 2, 3, 4)
    assert found.added == 1
    assert found.network.weights[0].shape == (3, 5)
    assert found.expected_change < 1e-13
    assert found.loss_before < 1e-28
    assert found.loss_after < 1e-24


def test_pruning_that_would_change_the_function_is_refused():
    with pytest.raises(ValueError, match="the student is not where the theorem applies"):
        prune_unaligned(student(leak=3.0), TEACHER, X)
    found = prune_unaligned(student(leak=3.0), TEACHER, X, largest_change=np.inf)
    assert found.expected_change > 0.05


def test_the_expected_change_is_the_change():
    found = prune_unaligned(student(leak=0.05), TEACHER, X)
    assert 0.5 < found.report.relative_change / found.expected_change < 2
