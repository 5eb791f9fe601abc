"""Interactions with biases: 30-digit references, derivatives by differences, invariances, and what biases must not change."""

import json
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp, mpf

from cases import thorough_but
from understudy import activations, gaussian
from understudy.gaussian import BiasedPartials, has_closed_form
from understudy.gaussian.partials import BIASED_TERMS

FILE = Path(__file__).parents[1] / "references" / "biased_interactions.json"
CASES = {(case["activation"], case["activation2"]): case["points"] for case in json.loads(FILE.read_text())["cases"]}
CLOSED = [pair for pair in CASES if has_closed_form(*map(activations.get, pair), biased=True)]


def exact_entries(points, factor, order):
    with mp.workdps(40):
        return [None if p[order] is None else mpf(factor) * mpf(p[order]) for p in points]


@cache
def height(name, order):
    """The largest |s⁽ⁱ⁾(x)|, |x| ≤ 40, or 1: all points have |b| + 9 r below 40, and kinks are densities."""
    x = np.linspace(-40, 40, 16001)
    return max(1.0, float(np.max(np.abs(activations.get(name).derivatives(jnp.asarray(x))[order]))))


def check_entry(pair, points, result, name, term):
    """Within the stated error; closed forms within 1e-13 of their summands, and missing where the reference is."""
    factor, i, j = term
    exact = exact_entries(points, factor, f"{i}{j}")
    ours, error, size = (np.asarray(getattr(part, name)) for part in result)
    polynomial = pair[0].startswith(("hermite", "quadratic", "linear"))
    floor = 1e-30 if polynomial else 1e-300  # sums that cancel exactly are zero to the digits of the reference
    for k, e in enumerate(exact):
        where = f"{pair} {name} at {[points[k][key] for key in ('r1', 'r2', 'u', 'b1', 'b2')]}"
        if e is None:  # two kinks meet at every input, or at none that a float can tell from impossible
            assert np.isnan(ours[k]) or ours[k] == 0, where
            continue
        distance = float(abs(mpf(float(ours[k])) - e))
        assert distance <= error[k] + floor, where
        tail = size[k] < 1e-10  # there the rounding of exponents counts as well
        allowed = (1e-12 if tail else 1e-13) * size[k] + 1e-290
        if pair not in CLOSED:  # and what lies beyond radius 9 of two Gaussians, e^(-81/2) of the functions there
            allowed = 1e-10 * size[k] + 2 * np.exp(-40.5) * height(pair[0], i) * height(pair[1], j)
        assert error[k] <= allowed, where
        if pair in CLOSED:
            assert distance <= 1e-13 * size[k] + floor, where
        if name == "value" and pair in CLOSED and not polynomial:
            assert distance <= 1e-13 * max(abs(float(e)), 1e-3 * size[k]) + 1e-300, where


@pytest.mark.parametrize(("first", "second"), thorough_but(CASES, CLOSED))
def test_references(first, second):
    pair = (first, second)
    points = CASES[pair]
    assert len(points) >= 40
    r1, r2, u, b1, b2 = (np.array([p[key] for p in points]) for key in ("r1", "r2", "u", "b1", "b2"))
    result = gaussian.partials(pair[0], r1, r2, u, pair[1], bias1=b1, bias2=b2)
    for name, term in zip(BiasedPartials._fields, BIASED_TERMS, strict=True):
        check_entry(pair, points, result, name, term)


def test_zero_biases_are_no_biases():
    """With biases of zero the numbers are those without, to the last digit."""
    r1, r2, u = np.array([0.5, 1.0]), np.array([1.0, 2.0]), np.array([0.3, -0.7])
    for name in ("erf", "relu"):
        np.testing.assert_array_equal(
            gaussian.interaction(name, r1, r2, u, bias1=0.0, bias2=np.zeros(2)), gaussian.interaction(name, r1, r2, u)
        )


def test_shapes_broadcast_with_biases():
    values = gaussian.interaction("erf", 1.0, 2.0, 0.5, bias1=np.zeros((2, 1)) + 0.1, bias2=np.arange(3.0))
    assert values.shape == (2, 3)


def test_erf_at_huge_norms():
    """erf becomes a sign: E = (2/π) asin u, whatever the norms."""
    for norm in (1e8, 1e154, 1e200, 1e308):
        assert float(gaussian.interaction("erf", norm, norm, 0.5)) == pytest.approx(1 / 3, rel=1e-14)
    assert float(gaussian.interaction("erf", 1e308, 1.0, 1.0)) == pytest.approx(0.5, rel=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"bias1": float("nan")}, "bias1 must be finite"), ({"bias2": 1e80}, "bias2 is at most 1e.75")],
)
def test_bad_biases_say_what_was_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        gaussian.interaction("relu", 1.0, 1.0, 0.5, **arguments)
