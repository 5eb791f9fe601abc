"""Thresholds from outcomes that are made up, so that the truth is known."""

import math

import numpy as np
import pytest

from understudy.theory import fit_regimes
from understudy.theory.regimes import Cell


def cells(widths, gamma1=0.46, gamma2=0.6, gamma3=0.75, seeds=20):
    made = []
    for n in widths:
        for k in range(n + 1, 3 * n):
            x = n / k
            share = float(np.clip((x - gamma1) / (gamma2 - gamma1), 0, 1))
            copying = round(seeds * share) if 0 < share < 1 else int(seeds * share)
            copying = min(max(copying, 1), seeds - 1) if 0 < share < 1 else copying
            made.append(Cell(n, k, seeds - copying, copying, excess=(gamma3 - x) if copying else math.nan))
    return made


def test_thresholds_are_found_within_their_uncertainty():
    found = fit_regimes(cells([16, 24, 32]), resamples=60)
    for threshold, truth in ((found.gamma1, 0.46), (found.gamma2, 0.6)):
        assert abs(threshold.value - truth) < 3 * threshold.uncertainty
        assert threshold.uncertainty < 0.03
    assert found.gamma3.value == pytest.approx(0.75, abs=1e-9)


def test_fewer_seeds_are_less_certain():
    few, many = (fit_regimes(cells([16, 24], seeds=s), resamples=60).gamma1.uncertainty for s in (4, 200))
    assert few > many


def test_what_the_grid_does_not_bracket_is_not_claimed():
    found = fit_regimes([Cell(8, 16, 20, 0), Cell(8, 20, 20, 0)])
    assert (found.gamma1, found.gamma2, found.gamma3) == (None, None, None)


def test_regimes_are_named():
    assert Cell(8, 20, 20, 0).regime == "averaging"
    assert Cell(8, 15, 10, 10, excess=0.1).regime == "mixed"
    assert Cell(8, 12, 0, 20, excess=0.1).regime == "copying"
    assert Cell(8, 9, 0, 20, excess=-0.1).regime == "copying, better"
    assert Cell(8, 9, 0, 19, 1, excess=-0.1).regime == "mixed"
