"""E[σ(p·x) σ*(q·x)] with derivatives by the vectors p and q, for the checker.

Smooth interactions are jets in (p·p, p·q, q·q), carried over to the vectors by the chain rule. Kinked ones
(slope x + kink |x|) are jets too, unless the vectors are parallel to the precision at hand. There, with
δ = q/|q| ∓ p/|p|, sin θ ≤ |δ| and θ ≤ (π/2)|δ|:

    |∂_pp| ≤ 2c (|q|/|p|)|δ|,  |∂_pq - slope' I| ≤ 4c |δ|,  slope' = slope slope* ± c (π/2 - θ),  c = 2 kink kink*/π.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from flint import arb, arb_mat

from understudy.proofs.checker.gaussian import gaussian_jet, is_logistic
from understudy.proofs.checker.jets import Ball, Jet, variables

Matrix = Any
Formula = Callable[[Jet, Jet, Jet], Jet]
LINES = {"relu": (arb(1) / 2, arb(1) / 2), "abs": (arb(0), arb(1)), "linear": (arb(1), arb(0))}
"""Slope and kink."""


class Refused(Exception):
    """The file does not prove its statement. The message says why."""


class Interaction(NamedTuple):
    """Value, gradients (columns) and blocks of second derivatives."""

    value: Ball
    p: Matrix
    q: Matrix
    pp: Matrix
    pq: Matrix
    qq: Matrix


def interaction(loss: str, first: str, second: str, p: Matrix, q: Matrix) -> Interaction:
    """The interaction of two neurons with incoming columns p and q."""
    gram = dot(p, p), dot(p, q), dot(q, q)
    if loss == "population" and first in LINES and second in LINES:
        (slope1, kink1), (slope2, kink2) = LINES[first], LINES[second]
        linear, c = slope1 * slope2, kink1 * kink2 * 2 / arb.pi()
        if kink1 * kink2 != 0:
            if not (gram[0] > 0 and gram[2] > 0):
                raise Refused("a neuron with a kinked activation may have a zero incoming vector")
            area = gram[0] * gram[2] - gram[1] * gram[1]
            if not (area > 0 and area.rel_accuracy_bits() > 20):
                return _parallel(p, q, gram, linear, c)
        return _by_chain_rule(_lines(linear, c), p, q, gram)
    return _by_chain_rule(_formula(loss, first, second), p, q, gram)


def own_interaction(loss: str, name: str, p: Matrix) -> Interaction:
    """The interaction of a neuron with itself, as a pair with equal vectors; kinked: E[σ²] = (slope² + kink²)|p|²."""
    if loss == "population" and name in LINES:
        slope, kink = LINES[name]
        weight, n = slope * slope + kink * kink, p.nrows()
        zero = arb_mat(n, n, [0] * n * n)
        return Interaction(weight * dot(p, p), p * weight, p * weight, zero, unit(n) * weight, zero)
    square = dot(p, p)
    return _by_chain_rule(_formula(loss, name, name), p, p, (square, square, square))


def _by_chain_rule(formula: Formula, p: Matrix, q: Matrix, gram: tuple[Ball, Ball, Ball]) -> Interaction:
    jet, n = formula(*variables(*gram)), p.nrows()
    by_p = arb_mat([[2 * p[i, 0], q[i, 0], 0] for i in range(n)])
    by_q = arb_mat([[0, p[i, 0], 2 * q[i, 0]] for i in range(n)])
    slopes, bends = arb_mat(3, 1, jet.first), jet.hessian()
    pp = by_p * bends * by_p.transpose() + unit(n) * (2 * jet.first[0])
    qq = by_q * bends * by_q.transpose() + unit(n) * (2 * jet.first[2])
    pq = by_p * bends * by_q.transpose() + unit(n) * jet.first[1]
    return Interaction(jet.value, by_p * slopes, by_q * slopes, pp, pq, qq)


def _formula(loss: str, first: str, second: str) -> Formula:
    if loss == "sphere" and first == second and first.startswith("hermite:"):
        degree = int(first.split(":")[1])
        return lambda a, b, c: (b * (a * c).inverse_root()).to_the(degree)
    if loss == "population" and first == second == "erf":
        return lambda a, b, c: (b * ((a + 1) * (c + 1)).inverse_root()).arcsine() * (2 / arb.pi())
    if loss == "population" and _is_power(first) and _is_power(second):
        return lambda a, b, c: _wick(first, second, a, b, c)
    if loss == "population" and is_logistic(first) and is_logistic(second):
        return lambda a, b, c: gaussian_jet(first, second, a.value, b.value, c.value)
    raise Refused(f"no formula for the loss {loss!r} of {first!r} with {second!r}")


def _lines(linear: Ball, c: Ball) -> Formula:
    """linear·q12 + c (√D + q12 asin u), D = q11 q22 - q12²."""
    if c == 0:
        return lambda q11, q12, q22: q12 * linear

    def formula(q11: Jet, q12: Jet, q22: Jet) -> Jet:
        area = q11 * q22 + q12 * q12 * -1
        lean = (q12 * (q11 * q22).inverse_root()).arcsine()
        return q12 * linear + (area * area.inverse_root() + q12 * lean) * c

    return formula


def _parallel(p: Matrix, q: Matrix, gram: tuple[Ball, Ball, Ball], linear: Ball, c: Ball) -> Interaction:
    n = p.nrows()
    long, other = gram[0].sqrt(), gram[2].sqrt()
    if not (gram[1] > 0 or gram[1] < 0):
        raise Refused("two kinked neurons are too close to zero to tell their angle")
    side = 1 if gram[1] > 0 else -1
    delta = q * (1 / other) - p * (side / long)
    gap = _root(dot(delta, delta)).abs_upper()
    angle = arb(0).union(gap * arb.pi() / 2)
    sine = arb(0).union(gap)
    lean = side * (arb.pi() / 2 - angle)
    value = linear * gram[1] + c * (long * other * sine + gram[1] * lean)
    slope, ratio = linear + c * lean, other / long

    def wide(bound: Ball) -> Matrix:
        return arb_mat(n, n, [arb(0, bound.abs_upper())] * (n * n))

    return Interaction(
        value,
        p * (c * ratio * sine) + q * slope,
        q * (c / ratio * sine) + p * slope,
        wide(2 * c * ratio * gap),
        unit(n) * slope + wide(4 * c * gap),
        wide(2 * c / ratio * gap),
    )


def _is_power(name: str) -> bool:
    return name == "quadratic" or name.startswith("hermite:")


def _wick(first: str, second: str, q11: Jet, q12: Jet, q22: Jet) -> Jet:
    """Coefficient of s^m t^n in exp(s²(q11 - 1)/2 + t²(q22 - 1)/2 + st q12), times m! n!, for two Hermite polynomials.

    x² = H_2·√2 + 1 is the generating function without the subtracted 1.
    """
    m, n = (2 if name == "quadratic" else int(name.split(":")[1]) for name in (first, second))
    left, right = (q + (0 if name == "quadratic" else -1) for q, name in ((q11, first), (q22, second)))
    total = Jet(arb(0), [arb(0)] * 3, [arb(0)] * 6)
    for joint in range(min(m, n) + 1):
        if (m - joint) % 2 or (n - joint) % 2:
            continue
        i, j = (m - joint) // 2, (n - joint) // 2
        weight = arb(math.factorial(m) * math.factorial(n)) / (
            math.factorial(joint) * math.factorial(i) * math.factorial(j) * 2 ** (i + j)
        )
        total = total + q12.to_the(joint) * left.to_the(i) * right.to_the(j) * weight
    for name, degree in ((first, m), (second, n)):
        if name != "quadratic":
            total = total * arb(math.factorial(degree)).rsqrt()
    return total


def dot(p: Matrix, q: Matrix) -> Ball:
    """Inner product of columns."""
    return (p.transpose() * q)[0, 0]


def unit(n: int) -> Matrix:
    """The identity."""
    return arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])


def _root(x: Ball) -> Ball:
    return x.nonnegative_part().sqrt()
