"""E[σ(x) σ*(y)] for softplus, sigmoid and tanh, for the checker, by a product rule on axes between the two vectors.

With cos 2η = correlation, x = r1 (z1 cos η + z2 sin η) and y = r2 (z1 cos η - z2 sin η). Shifting z1 or z2 by ib with
b ≤ c = π/(2·steepest) keeps every argument of the logistic function s within π/2 of the real line, where |s| ≤ 1 and
|1 - 2s| ≤ 1, and multiplies the Gaussian weight by at most exp(c²/2). The product trapezoidal rule of step h then
misses at most twice 2 exp(c²/2)/(exp(2πc/h) - 1) times a Gaussian mean of the bounds (once for each axis), and the
nodes left out beyond |z| > L a Gaussian tail."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from flint import arb, ctx

from understudy.proofs.checker.jets import Ball, Jet

REACH = 11
FAMILY = {"softplus": (1, 1, 0), "sigmoid": (1, 1, 0), "tanh": (2, 2, -1)}
"""inner (times β), outer and shift of outer·s(inner·x) + shift; softplus is the integral of the sigmoid."""


def is_logistic(name: str) -> bool:
    """Whether this module knows the activation."""
    return name.partition(":")[0] in FAMILY


class _Function:
    def __init__(self, name: str):
        kind, _, parameter = name.partition(":")
        inner, outer, self.shift = FAMILY[kind]
        self.inner, self.outer, self.smooth = inner * arb(float(parameter or 1)), arb(outer), kind == "softplus"

    def at(self, x: Ball) -> list[Ball]:
        """Five derivatives from t = tanh(z/2): s = (1 + t)/2, s' = (1 - t²)/4, s'' = -t s', …"""
        z, k = self.inner * x, self.inner
        t = (z / 2).tanh()
        p = (1 - t) * (1 + t) / 4
        tower = [(1 + t) / 2, p, -t * p, p * (1 - 6 * p), -t * p * (1 - 12 * p)]
        if self.smooth:
            value = (z / 2 + (2 * (z / 2).cosh()).log()) / k
            return [value, *(tower[m] * k**m for m in range(4))]
        found = [self.outer * tower[m] * k**m for m in range(5)]
        return [found[0] + self.shift, *found[1:]]

    def bounds(self) -> list[tuple[Ball, Ball]]:
        """(A, B) with |σ^(m)(x + iy)| ≤ A + B|x| where |inner·y| ≤ π/2."""
        k = self.inner
        sizes = [arb(1), arb(1), arb(1), arb(7), arb(13)]
        if self.smooth:  # |log(1 + e^z)| ≤ |Re z| + log 2 + π/2 where Re e^z ≥ 0
            first = ((arb(2).log() + arb.pi() / 2) / k, arb(1))
            return [first, *((sizes[m] * k**m, arb(0)) for m in range(4))]
        found = [(self.outer * sizes[m] * k**m, arb(0)) for m in range(5)]
        return [(found[0][0] + abs(self.shift), arb(0)), *found[1:]]


def gaussian_jet(first: str, second: str, q11: Ball, q12: Ball, q22: Ball) -> Jet:
    """The interaction as a jet: ∂/∂q11 = ½ E[σ''σ*], ∂/∂q12 = E[σ'σ*'], ∂/∂q22 = ½ E[σσ*'']."""
    e = _Moments(_Function(first), _Function(second), q11, q12, q22)
    slopes = [e(2, 0) / 2, e(1, 1), e(0, 2) / 2]
    both = e(2, 2)
    return Jet(e(0, 0), slopes, [e(4, 0) / 4, e(3, 1) / 2, both, both / 4, e(1, 3) / 2, e(0, 4) / 4])


class _Moments:
    ORDERS = ((0, 0), (2, 0), (1, 1), (0, 2), (4, 0), (3, 1), (2, 2), (1, 3), (0, 4))

    def __init__(self, f: _Function, g: _Function, q11: Ball, q12: Ball, q22: Ball):
        r1, r2 = q11.nonnegative_part().sqrt(), q22.nonnegative_part().sqrt()
        length = r1 * r2
        # √((1 ± u)/2) = √((r1 r2 ± q12)/(2 r1 r2))
        plus, minus = (((length + sign * q12) / (2 * length)).nonnegative_part().sqrt() for sign in (1, -1))
        steepest = max(float((f.inner * r1).abs_upper()), float((g.inner * r2).abs_upper()))
        nodes, weights, error, sums = _rule(_rounded_up(steepest), ctx.prec)
        self.values = dict.fromkeys(self.ORDERS, arb(0))
        if q11 is q12 and q12 is q22:  # a neuron with itself
            self._line(f, g, r1, nodes, weights)
        else:
            self._plane(f, g, (r1 * plus, r1 * minus), (r2 * plus, -r2 * minus), nodes, weights)
        for i, j in self.ORDERS:
            (a0, a1), (b0, b1) = f.bounds()[i], g.bounds()[j]
            self.values[i, j] += arb(0, _missed(a0, a1 * r1, b0, b1 * r2, error, sums).abs_upper())

    def __call__(self, i: int, j: int) -> Ball:
        return self.values[i, j]

    def _line(self, f: _Function, g: _Function, r: Ball, nodes: list[Ball], weights: list[Ball]) -> None:
        for z, w in zip(nodes, weights, strict=True):
            left, right = f.at(r * z), g.at(r * z)
            for i, j in self.ORDERS:
                self.values[i, j] += w * left[i] * right[j]

    def _plane(self, f: _Function, g: _Function, x: Any, y: Any, nodes: list[Ball], weights: list[Ball]) -> None:
        for z1, w1 in zip(nodes, weights, strict=True):
            row = dict.fromkeys(self.ORDERS, arb(0))
            for z2, w2 in zip(nodes, weights, strict=True):
                left, right = f.at(x[0] * z1 + x[1] * z2), g.at(y[0] * z1 + y[1] * z2)
                for i, j in self.ORDERS:
                    row[i, j] += w2 * left[i] * right[j]
            for order, value in row.items():
                self.values[order] += w1 * value


def _rounded_up(x: float) -> float:
    """To the next power of 1.05, so that few rules serve many pairs."""
    return float(1.05 ** (math.floor(math.log(max(x, 1e-3)) / math.log(1.05)) + 1.5))


@lru_cache(maxsize=64)
def _rule(steepest: float, bits: int) -> tuple[list[Ball], list[Ball], Ball, tuple[Ball, Ball, Ball]]:
    """Nodes, weights, the relative error along one axis, and Σ w (1, |z|, z²) with the tail."""
    c = arb.pi() / (2 * arb(max(steepest, 0.25)))
    h = arb(int(float((2 * arb.pi() * c / (64 + c * c / 2)).mid()) * 2**16)) / 2**16
    count = int(REACH / float(h)) + 1
    nodes = [k * h for k in range(-count, count + 1)]
    weights = [h * (-z * z / 2).exp() / (2 * arb.pi()).sqrt() for z in nodes]
    error = 2 * (c * c / 2).exp() / ((2 * arb.pi() * c / h).exp() - 1)
    sums = tuple(
        sum((w * abs(z) ** n if n else w for z, w in zip(nodes, weights, strict=True)), arb(0)) for n in range(3)
    )
    return nodes, weights, error, sums  # type: ignore[return-value]


def _missed(a0: Ball, a1: Ball, b0: Ball, b1: Ball, error: Ball, sums: tuple[Ball, Ball, Ball]) -> Ball:
    """What the product rule misses of (a0 + a1|ξ|)(b0 + b1|ζ|), where |ξ|, |ζ| ≤ |z1| + |z2|.

    The product is at most P = Σ c_mn |z1|^m |z2|^n with m + n ≤ 2. Each axis misses `error` times the mean of P, with
    sums or Gaussian means along the other axis, and the nodes left out a tail on one axis times a sum or mean on the
    other.
    """
    constant, linear, square = a0 * b0, a0 * b1 + a1 * b0, a1 * b1
    edge = 2 * (-arb(REACH * REACH) / 2).exp() / (2 * arb.pi()).sqrt()
    tail = (edge / REACH, edge, edge * (REACH + arb(1) / REACH))
    means = (arb(1), (2 / arb.pi()).sqrt(), arb(1))
    most = tuple(m.max(s) + t for m, s, t in zip(means, sums, tail, strict=True))

    def total(one: tuple[Ball, ...], other: tuple[Ball, ...]) -> Ball:
        """Mean of constant + linear (|z1| + |z2|) + square (|z1| + |z2|)²."""
        first = linear * (one[1] * other[0] + one[0] * other[1])
        return (
            constant * one[0] * other[0]
            + first
            + square * (one[2] * other[0] + 2 * one[1] * other[1] + one[0] * other[2])
        )

    return 2 * error * total(means, most) + 2 * total(tail, most)
