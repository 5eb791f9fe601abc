"""Asymptotic errors over (η, students): against closed forms of linear students, long runs, and bad input."""

import numpy as np
import pytest

import understudy as us
from understudy.online import asymptotic_phases


def test_linear_students_in_closed_form():
    """E(f - f*)² = ησ²K/(2 - ηK), stable for ηK < 2: K linear students are one, trained K times as fast."""
    rates, widths = [0.1, 0.3, 0.9], [2, 3]
    found = asymptotic_phases(us.Teacher.orthonormal(2, activation="linear"), widths, rates, noise=0.2)
    total = np.outer(rates, widths)
    with np.errstate(divide="ignore"):
        wanted = np.where(total < 2, 0.2**2 * total / (2 - total), np.nan)
    np.testing.assert_allclose(found.errors, wanted, rtol=1e-9)
    np.testing.assert_array_equal(found.growth_rates > 1e-9, total > 2)


def test_unstable_cells_leave_the_perfect_student():
    """On both sides of the boundary, a run without noise from beside the perfect student goes where the diagram says."""
    teacher, rates = us.Teacher.orthonormal(2), [2.0, 3.0]
    found = asymptotic_phases(teacher, [2], rates, noise=0.1)
    assert np.isnan(found.errors[:, 0]).tolist() == [False, True]
    task = us.Population(teacher, 2, outgoing=1.0)
    beside = us.online.Overlaps(np.eye(2) * 1.001, np.eye(2), np.ones(2))
    ends = [us.Online(task, rate).run(beside, [0.0, 100.0]).loss for rate in rates]
    assert ends[0][-1] < 0.1 * ends[0][0]
    assert ends[1][-1] > 10 * ends[1][0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"widths": [1]}, "none below the 2 teachers"),
        ({"rates": [0.0]}, "positive learning rates"),
        ({"rates": []}, "positive learning rates"),
        ({"noise": 0.0}, "noise must be positive"),
        ({"teacher": us.Teacher.orthonormal(2, activation="relu")}, "smooth activation"),
        ({"teacher": us.Teacher.orthonormal(2, activation="softplus")}, "smooth activation"),
        ({"teacher": us.Teacher(np.eye(2), [1.0, 2.0], "erf")}, "outgoing weights 1"),
    ],
)
def test_bad_input(changes, words):
    arguments = {"teacher": us.Teacher.orthonormal(2), "widths": [2], "rates": [0.1], "noise": 0.1}
    with pytest.raises(ValueError, match=words):
        asymptotic_phases(**(arguments | changes))
