"""Thresholds of n/k as real numbers: the closed limit, and signs at the whole k on both sides."""

import numpy as np
import pytest

import understudy as us
from understudy.branches import ratio
from understudy.branches.copy_groups import CopyGroups


def test_copies_overtake_between_whole_numbers_of_teachers():
    where = 8 * ratio.overtaking_ratio(8)
    assert 10 < where < 11
    for k, better in ((10, True), (11, False)):
        network = CopyGroups([8], [k - 8]).network(ratio.perturbed_copies(8, k / 8))
        task = us.Population(us.Teacher.orthonormal(k), 8)
        assert np.linalg.norm(task.gradient(network)) < 1e-12
        assert (float(task.loss(network)) < us.theory.one_neuron("erf", k - 7).loss) == better


def test_the_ratio_tends_to_the_closed_limit():
    first, second = (ratio.overtaking_ratio(n) for n in (10_000, 100_000))
    extrapolated = (100_000 * second - 10_000 * first) / 90_000
    assert extrapolated == pytest.approx(ratio.OVERTAKING_LIMIT, abs=1e-7)  # neglects 50/n², 5e-8


def test_bad_input_is_explained():
    with pytest.raises(ValueError, match="at least 2"):
        ratio.teachers_per_student(1)
    with pytest.raises(ValueError, match="lies above 1"):
        ratio.perturbed_copies(8, 0.5)
    with pytest.raises(ValueError, match="at least 5"):
        ratio.average_point(4, 1.5)
