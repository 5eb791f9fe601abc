"""Covariances with a way down have a representation that is not a minimum."""

import numpy as np
import pytest

from understudy.papers.attraction_repulsion import fibres
from understudy.papers.claim import Progress


def test_the_corner_of_a_fibre_decides_on_both_sides_of_the_threshold():
    found = fibres._on_two_points({"penalties": [0.2], "factors": [0.5, 2.0], "widths": [2]}, Progress())
    assert found["slope"] == pytest.approx(found["predicted"], abs=1e-4)
    assert found["down"] == [False, True]
    assert [kinds == ["minimum"] for kinds in found["corners"]] == [True, False]
    assert set(found["inside"]) == {"minimum"}


def test_a_neuron_of_a_minimum_has_the_response_one():
    """One input, one neuron: a = b = √(y - λ) with the mean of one sample, and no other direction responds more."""
    from understudy.tasks.regularised import Regularised

    task = Regularised([[1.0, 0.0]], [[1.0]], (1,), penalty=0.1, bias=0.0)
    a = np.sqrt(0.9)
    assert fibres._response(task, ([[a, 0.0]], [[a]])) == pytest.approx(1.0, abs=1e-12)
    assert fibres._response(task, ([[0.0, 0.0]], [[0.0]])) == pytest.approx(10.0)
