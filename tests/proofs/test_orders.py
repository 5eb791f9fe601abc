"""Which loss is lower, and which points are one."""

import numpy as np
import pytest
from tests.proofs.cases import copies, default_case, proved, tight_balance

import understudy as us
from understudy.proofs import compare, prove, same


def average(partition):
    task, _ = default_case()
    return prove(task, us.theory.copy_average("erf", partition, dim=9))


def test_copies_and_one_average_lie_strictly_below_other_partitions():
    best = proved()
    for partition in ((1, 1, 2, 4), (1, 1, 3, 3), (2, 2, 2, 2)):
        other = average(partition)
        assert compare(best, other).holds
        assert "strictly below" in compare(best, other).statement
        assert not compare(other, best).holds
        assert "above" in compare(other, best).statement
    assert "overlap" in compare(best, best).statement


def test_points_of_different_problems_are_not_compared():
    with pytest.raises(ValueError, match="one problem"):
        compare(proved(), prove(*copies("relu")))


def moved(signs=(1, 1, 1, 1), students=(0, 1, 2, 3), teachers=range(8)):
    task, point = default_case()
    w, a = np.asarray(point.incoming).copy(), np.asarray(point.outgoing)
    w[:, :8] = w[:, list(teachers)]
    return prove(
        task, us.TwoLayer((np.array(signs)[:, None] * w)[list(students)], (np.array(signs) * a)[list(students)])
    )


@pytest.mark.parametrize(
    "change",
    [{"signs": (1, -1, -1, 1)}, {"students": (3, 1, 0, 2)}, {"teachers": [7, 1, 5, 3, 2, 0, 4, 6]},
     {"signs": (-1, 1, 1, -1), "students": (2, 3, 1, 0), "teachers": [1, 0, 3, 2, 5, 4, 7, 6]}],
    ids=str,
)  # fmt: skip
def test_images_under_symmetries_are_one_point(change):
    assert same(proved(), moved(**change)).holds


def test_different_points_are_not_one():
    assert not same(proved(), average((2, 2, 2, 2))).holds
    assert "continuous" in same(prove(*tight_balance(6)), prove(*tight_balance(6))).statement


@pytest.mark.thorough
def test_all_seeds_of_the_default_case_are_one_strict_minimum():
    task, _ = default_case()
    proofs = [prove(task, run.parameters) for run in us.fit(task, seeds=20)]
    assert [p.kind for p in proofs] == 20 * ["strict minimum"]
    assert all(same(proved(), p).holds for p in proofs)
