"""Minima of four students at ρ = 4 that are not copies, without the engine: the gradient by hand, pairs counted."""

import numpy as np
import pytest

from understudy.papers.tight_balance.double_pairs import double_loss, double_pair
from understudy.papers.tight_balance.pairs import count_pairs


def slopes(rows, teachers):
    """The Riemannian gradient of ½ Σ (w·w')⁴ - Σ (w·v)⁴ at unit rows."""
    pull = 4 * (rows @ rows.T) ** 3 @ rows
    pull[:, :teachers] -= 4 * rows[:, :teachers] ** 3
    return pull - np.sum(pull * rows, axis=1, keepdims=True) * rows


@pytest.mark.parametrize("dim", [4, 7])
def test_the_double_pair_is_critical_and_has_the_loss_of_the_closed_form(dim):
    rows = double_pair(dim)
    assert np.abs(slopes(rows, 4)).max() < 1e-14
    loss = np.sum((rows @ rows.T) ** 4) / 2 - np.sum(rows[:, :4] ** 4) + 2
    assert abs(loss - double_loss(4)) < 1e-14


def test_two_decoupled_tight_pairs_are_at_another_angle():
    theta = np.pi / 8
    rows = np.zeros((4, 4))
    rows[[0, 1], 0], rows[[2, 3], 1] = np.cos(theta), np.cos(theta)
    rows[:, 2] = np.sin(theta) * np.array([1, -1, 1, -1])
    assert np.abs(slopes(rows, 4)).max() > 1e-3


def test_pairs_are_counted_and_copies_beside_them_are_seen():
    one = np.eye(5)[:4]
    tight = one.copy()
    tight[0], tight[1] = [np.cos(0.4), 0, 0, 0, np.sin(0.4)], [np.cos(0.4), 0, 0, 0, -np.sin(0.4)]
    turned = tight.copy()
    turned[2] = np.array([0, 0, 0.9, 0.1, 0]) / np.hypot(0.9, 0.1)
    counts, copied = count_pairs(np.stack([one, tight, turned, double_pair(5)]), 5)
    assert counts.tolist() == [0, 1, 1, 2]
    assert copied.tolist() == [True, True, True, True]
    turned[2] = np.array([0, 0, np.cos(0.4), np.sin(0.4), 0])
    assert not count_pairs(turned[None], 5)[1][0]
