"""Meeting tight balance: distances over all symmetries, counts and intervals."""

import numpy as np
import pytest

from understudy.papers.tight_balance import tight_pairs as theory
from understudy.papers.tight_balance.meeting import Meeting, distance_to_tight_balance, meet


def test_distance_to_tight_balance():
    rows = theory.tight_pairs(2, 2, 3, 4)
    moves = [
        rows,
        rows[::-1],
        -rows,
        rows * np.array([1.0, -1.0, 1.0]),
        rows[:, [1, 0, 2]],
        rows * np.array([[1.0], [-1.0]]),
    ]
    np.testing.assert_allclose(distance_to_tight_balance(np.stack(moves), 4), 0, atol=3e-8)  # √ of rounding
    copies = np.eye(2, 3)
    brute = min(
        np.linalg.norm(copies - signs * option)
        for option in (rows, rows[::-1], rows[:, [1, 0, 2]], rows[::-1][:, [1, 0, 2]])
        for signs in ([[1], [1]], [[1], [-1]], [[-1], [1]], [[-1], [-1]])
    )
    assert distance_to_tight_balance(copies, 4) == pytest.approx(brute, abs=1e-12)


def test_meeting_counts_and_interval():
    found = meet(2, 40, snapshots=141)  # as in test_plateaus: one program for both
    assert found.runs == 40
    assert 0 < found.met[0] <= found.met[1] <= found.met[2] < 40
    low, high = Meeting(2, 1000, (0, 132, 0), 0, 0).interval()
    # Clopper and Pearson 1934, by the Beta quantiles.
    from scipy.stats import beta

    assert (low, high) == pytest.approx((beta.ppf(0.025, 132, 869), beta.ppf(0.975, 133, 868)), abs=1e-9)
