"""E[σ(p·x) σ*(q·x)] for softplus, sigmoid and tanh, by the trapezoidal rule with proven error bounds.

With p·x = r1 z1 and q·x = α z1 + β z2 for independent z1, z2 ~ N(0, 1), every partial of G is a sum over a lattice of
step h. If f is analytic in |Im z| < c and ∫|f(x + ib)|dx ≤ M for |b| < c, then
|h Σ f(kh) - ∫f| ≤ 2M/(exp(2πc/h) - 1) (Trefethen and Weideman 2014, Theorem 5.1). The logistic function
s(z) = 1/(1 + exp(-z)) has its poles at ±iπ. For |Im z| ≤ Y, |s| ≤ S = 1/sin Y, and the bounds of all derivatives
follow. Beyond |z| > L the lattice is cut off, which costs at most the integral over the Gaussian tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from understudy.proofs.balls import Ball, Matrix, ball, flint, square_root, within
from understudy.proofs.kernels import KinkError, Own, SmoothPair

HEIGHT = "2.6"
"""Y: how far from the real line the logistic function's argument may be shifted; below π."""
EXPONENT = 58
"""Lattice errors are about exp(-58) = 6e-26."""
CUTOFF = 11
"""L: the Gaussian tail beyond it is below 1e-27."""
LARGEST = 400_000
"""Most nodes for one pair."""

ORDERS = [(0, 0), (2, 0), (1, 1), (0, 2), (4, 0), (3, 1), (2, 2), (1, 3), (0, 4)]


class CostlyError(ValueError):
    """Too many nodes would be needed."""


@dataclass(frozen=True)
class Logistic:
    """σ(x) = outer·s(inner·x) + shift, or (1/inner) log(1 + exp(inner·x)) for softplus."""

    inner: Ball
    outer: Ball
    shift: int
    softplus: bool

    def derivatives(self, x: Ball) -> list[Ball]:
        """σ, σ', …, σ'''' at x."""
        z = self.inner * x
        s = 1 / (1 + (-z).exp())
        p = s * (1 - s)
        bend, q = p * (1 - 2 * s), p * (1 - 6 * p)
        if self.softplus:
            # log(1 + e^z) = max(z, 0) + log(1 + e^-|z|): no cancellation
            value = (1 + z.exp()).log() if z < 0 else z + (1 + (-z).exp()).log()
            chain = [value, s, p, bend, q]
            powers = [1 / self.inner, ball(1), self.inner, self.inner**2, self.inner**3]
        else:
            chain = [s, p, bend, q, bend * (1 - 12 * p)]
            powers = [self.outer * self.inner**m for m in range(5)]
        values = [c * w for c, w in zip(chain, powers, strict=True)]
        values[0] += self.shift
        return values

    def bounds(self) -> list[tuple[Ball, Ball]]:
        """(B0, B1) with |σ^(m)(x + iy)| ≤ B0 + B1|x| for |inner·y| ≤ Y, m = 0 … 4."""
        y = ball(HEIGHT)
        s = 1 / y.sin()
        p = s * s
        bend, q, last = p * (1 + 2 * s), p * (1 + 6 * p), p * (1 + 2 * s) * (1 + 12 * p)
        if self.softplus:
            value = (ball.const_log2() - y.sin().log() + y) / self.inner
            sizes = [s, self.inner * p, self.inner**2 * bend, self.inner**3 * q]
            return [(value, ball(1)), *((b, ball(0)) for b in sizes)]
        sizes = [
            s * self.outer + abs(self.shift),
            *(self.outer * self.inner**m * b for m, b in enumerate((p, bend, q, last), 1)),
        ]
        return [(b, ball(0)) for b in sizes]


def logistic_of(name: str) -> Logistic | None:
    """The function of this name, if it is one of these."""
    kind, _, parameter = name.partition(":")
    beta = ball(float(parameter or 1))
    known = {
        "softplus": lambda: Logistic(beta, ball(1), 0, True),
        "sigmoid": lambda: Logistic(beta, ball(1), 0, False),
        "tanh": lambda: Logistic(2 * beta, ball(2), -1, False),
    }
    return known[kind]() if kind in known else None


@dataclass(frozen=True)
class Quadrature:
    """Two functions of the logistic family."""

    first: Logistic
    second: Logistic

    def own(self, q: Ball) -> Own:
        """D = E[σ(√q z)²]; D' and D'' from the same partials as for a pair."""
        e = self._moments(square_root(q), square_root(q), ball(0), alone=True)
        slope = (e[2, 0] + e[0, 2]) / 2 + e[1, 1]
        bend = (e[4, 0] + e[0, 4]) / 4 + e[3, 1] + e[1, 3] + e[2, 2] * 3 / 2
        return Own(e[0, 0], slope, bend)

    def pair(self, p: Matrix, q: Matrix, q11: Ball, q12: Ball, q22: Ball) -> SmoothPair:
        """∂/∂q11 is half a second derivative of the first σ, ∂/∂q12 one of each (Price's theorem)."""
        if not q11 > 0:
            if q22 > 0:
                return Quadrature(self.second, self.first).pair(q, p, q22, q12, q11).swapped()
            raise KinkError("two incoming vectors vanish")
        along = q12 / q11.sqrt()
        beside = q - p * (q12 / q11)
        e = self._moments(q11.sqrt(), along, square_root((beside.transpose() * beside)[0, 0]), alone=False)
        return SmoothPair(p, q, e[0, 0], e[2, 0] / 2, e[1, 1], e[0, 2] / 2, e[4, 0] / 4, e[3, 1] / 2,
                          e[2, 2], e[2, 2] / 4, e[1, 3] / 2, e[0, 4] / 4)  # fmt: skip

    def _moments(self, r1: Ball, along: Ball, across: Ball, *, alone: bool) -> dict[tuple[int, int], Ball]:
        """E[σ^(i)(r1 z1) σ*^(j)(along z1 + across z2)] for all orders; `alone`: there is no z2."""
        steep = [abs(r1) * self.first.inner, abs(along) * self.second.inner]
        outer = lattice(max(float(x.abs_upper()) for x in steep))
        inner = None if alone else lattice(float((across * self.second.inner).abs_upper()))
        if len(outer.nodes) * (1 if inner is None else len(inner.nodes)) > LARGEST:
            raise CostlyError(
                f"too costly: incoming vectors of norm {float(r1.mid()):.3g} need more than {LARGEST} quadrature nodes"
            )
        bounds1, bounds2 = self.first.bounds(), self.second.bounds()
        e = {order: ball(0) for order in ORDERS}
        for node, weight in zip(outer.nodes, outer.weights, strict=True):
            left = self.first.derivatives(r1 * node)
            right = self._inner(along * node, across, inner, bounds2)
            for i, j in ORDERS:
                e[i, j] += weight * left[i] * right[j]
        for i, j in ORDERS:
            e[i, j] += within(_size(outer, bounds1[i], bounds2[j], r1, along, across))
        return e

    def _inner(self, x: Ball, across: Ball, inner: Lattice | None, bounds: list[tuple[Ball, Ball]]) -> list[Ball]:
        """E over z2 of the second function's derivatives at x + across z2, enclosed."""
        if inner is None:
            return self.second.derivatives(x)
        sums = [ball(0)] * 5
        for node, weight in zip(inner.nodes, inner.weights, strict=True):
            for m, value in enumerate(self.second.derivatives(x + across * node)):
                sums[m] += weight * value
        return [
            total + within(inner.error(b0 + b1 * abs(x), b1 * abs(across), ball(0)))
            for total, (b0, b1) in zip(sums, bounds, strict=True)
        ]


@dataclass(frozen=True)
class Lattice:
    """Nodes kh up to the cutoff, weights hφ(kh), and what the rule misses."""

    nodes: list[Ball]
    weights: list[Ball]
    lattice_error: Ball

    def error(self, constant: Ball, linear: Ball, square: Ball) -> Ball:
        """Bound of the rule's error for a function with |f(x + ib)| ≤ constant + linear|x| + square x² in its strip."""
        mean = (2 / ball.pi()).sqrt()
        edge = (-(ball(CUTOFF) ** 2) / 2).exp() / (2 * ball.pi()).sqrt()
        tail = 2 * edge * (constant / CUTOFF + linear + square * (CUTOFF + ball(1) / CUTOFF))
        return self.lattice_error * (constant + linear * mean + square) + tail


def lattice(steepness: float) -> Lattice:
    """For functions whose argument grows by at most `steepness` (rounded up) for each unit of z."""
    rounded = 1.05 ** (math.floor(math.log(max(steepness, 0.3)) / math.log(1.05)) + 1.5)  # few rules serve many pairs
    return _lattice(rounded, flint.ctx.prec)


@lru_cache(maxsize=256)
def _lattice(steepness: float, bits: int) -> Lattice:
    """h = 2πc/(EXPONENT + c²/2) for the strip c = Y/steepness; a multiple of 2^-20, so that nodes are exact."""
    c = ball(HEIGHT) / ball(steepness)
    wanted = float((2 * ball.pi() * c / (EXPONENT + c * c / 2)).mid())
    step = ball(int(wanted * 2**20)) / 2**20
    count = int(CUTOFF / float(step)) + 1
    nodes = [k * step for k in range(-count, count + 1)]
    scale = step / (2 * ball.pi()).sqrt()
    weights = [scale * (-x * x / 2).exp() for x in nodes]
    error = 2 * (c * c / 2).exp() / ((2 * ball.pi() * c / step).exp() - 1)
    return Lattice(nodes, weights, error)


def _size(
    outer: Lattice, first: tuple[Ball, Ball], second: tuple[Ball, Ball], r1: Ball, along: Ball, across: Ball
) -> Ball:
    """The outer rule's error for A(r1 z1) E[B(along z1 + across z2)], |A| ≤ A0 + A1 r1|z1|, |B| ≤ B0 + B1|…|."""
    (a0, a1), (b0, b1) = first, second
    b0 = b0 + b1 * abs(across) * (2 / ball.pi()).sqrt()
    a1, b1 = a1 * abs(r1), b1 * abs(along)
    return outer.error(a0 * b0, a0 * b1 + a1 * b0, a1 * b1)
