"""E_ij = E[σ^(i)(m1 + p·x) σ*^(j)(m2 + q·x)] for i + j ≤ 4, in balls: all that a pair of neurons with biases needs.

With q11 = p·p, q12 = p·q, q22 = q·q:

- erf: σ'' = -xσ', and Stein's lemma gives (1 + q11) E_20 + q12 E_11 + m1 E_10 = 0; its derivatives by m1 and m2 give
  the higher orders. E_11 and E_10 are elementary, E_00 is a bivariate normal distribution function.
- slope·x + kink·|x|: σ'' = 2 kink δ, so E_2j is a density times the mean of σ*^(j) on the kink, and
  q11 E_30 + q12 E_21 + m1 E_20 = 0. E_11 is a bivariate normal distribution function, and σ = xσ' gives E_10 and E_00.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from understudy.proofs.balls import Ball, ball
from understudy.proofs.bivariate import mean_sign, mean_signs, normal_density
from understudy.proofs.kernels import KinkError

Expectations = dict[tuple[int, int], Ball]


@dataclass(frozen=True)
class Gram:
    """Inner products and means of two neurons, and the determinant q11 q22 - q12²."""

    q11: Ball
    q12: Ball
    q22: Ball
    m1: Ball
    m2: Ball
    area: Ball

    def swapped(self) -> Gram:
        """The same pair in the other order."""
        return Gram(self.q22, self.q12, self.q11, self.m2, self.m1, self.area)


class BiasedKernel(Protocol):
    """Two named activations."""

    def pair(self, g: Gram) -> Expectations:
        """The expectations of two neurons."""

    def own(self, q: Ball, m: Ball) -> Expectations:
        """Those of a neuron with itself: partials D_ij of D(q, m) = E[σ²] by q (i times) and m (j times), i + j ≤ 2."""

    def single(self, q: Ball, m: Ball) -> list[Ball]:
        """E[σ^(i)], i = 0 … 4, of the first activation."""


def swap(e: Expectations) -> Expectations:
    """E_ji."""
    return {(j, i): x for (i, j), x in e.items()}


class BiasedErf:
    """erf(x/√2) with itself."""

    def pair(self, g: Gram) -> Expectations:
        """See the module."""
        a, b, q12 = 1 + g.q11, 1 + g.q22, g.q12
        gap = 1 + g.q11 + g.q22 + g.area  # (1 + q11)(1 + q22) - q12²
        t1, t2 = (b * g.m1 - q12 * g.m2) / gap, (a * g.m2 - q12 * g.m1) / gap
        e11 = 2 / ball.pi() / gap.sqrt() * (-(g.m1 * t1 + g.m2 * t2) / 2).exp()
        e = {(1, 1): e11, (2, 1): -t1 * e11, (1, 2): -t2 * e11, (2, 2): (t1 * t2 + q12 / gap) * e11,
             (3, 1): (t1 * t1 - b / gap) * e11, (1, 3): (t2 * t2 - a / gap) * e11}  # fmt: skip
        h, k = g.m1 / a.sqrt(), g.m2 / b.sqrt()
        length = (a * b).sqrt()
        e[0, 0] = mean_signs(h, k, q12 / length, gap.sqrt() / length)
        e[1, 0] = 2 * normal_density(h) / a.sqrt() * mean_sign(t2 * (gap / a).sqrt())
        e[0, 1] = 2 * normal_density(k) / b.sqrt() * mean_sign(t1 * (gap / b).sqrt())
        _complete(e, g.m1, q12, a)
        other = swap(e)
        _complete(other, g.m2, q12, b)
        return swap(other)

    def own(self, q: Ball, m: Ball) -> Expectations:
        """The pair with itself: ∂_q = (E_20 + E_02)/2 + E_11, ∂_m = E_10 + E_01."""
        e = self.pair(Gram(q, q, q, m, m, ball(0)))
        return {(0, 0): e[0, 0], (1, 0): e[2, 0] + e[1, 1], (0, 1): 2 * e[1, 0], (0, 2): 2 * e[2, 0] + 2 * e[1, 1],
                (1, 1): e[3, 0] + 3 * e[2, 1], (2, 0): e[4, 0] / 2 + 2 * e[3, 1] + e[2, 2] * 3 / 2}  # fmt: skip

    def single(self, q: Ball, m: Ball) -> list[Ball]:
        """With a = 1 + q: E_1 = 2φ(m/√a)/√a, a E_2 = -m E_1, and so on."""
        a = 1 + q
        h = m / a.sqrt()
        e1 = 2 * normal_density(h) / a.sqrt()
        e2 = -m * e1 / a
        e3 = -(e1 + m * e2) / a
        return [mean_sign(h), e1, e2, e3, -(2 * e2 + m * e3) / a]


def _complete(e: Expectations, m: Ball, q12: Ball, a: Ball) -> None:
    """E_20, E_30 and E_40 of erf by Stein's lemma."""
    e[2, 0] = -(m * e[1, 0] + q12 * e[1, 1]) / a
    e[3, 0] = -(e[1, 0] + m * e[2, 0] + q12 * e[2, 1]) / a
    e[4, 0] = -(2 * e[2, 0] + m * e[3, 0] + q12 * e[3, 1]) / a


@dataclass(frozen=True)
class BiasedLines:
    """slope·x + kink·|x| with slope*·x + kink*·|x|."""

    first: tuple[Ball, Ball]
    second: tuple[Ball, Ball]

    def pair(self, g: Gram) -> Expectations:
        """See the module."""
        if not (g.q11 > 0 and g.q22 > 0 and g.area > 0):
            raise KinkError("two neurons with kinked activations and biases have parallel or zero incoming vectors")
        e = _at_kink(self.first[1], self.second, g)
        e.update(swap(_at_kink(self.second[1], self.first, g.swapped())))
        (s1, k1), (s2, k2) = self.first, self.second
        h, k, length = g.m1 / g.q11.sqrt(), g.m2 / g.q22.sqrt(), (g.q11 * g.q22).sqrt()
        both = mean_signs(h, k, g.q12 / length, g.area.sqrt() / length) if not (k1 * k2).is_zero() else ball(0)
        e[1, 1] = s1 * s2 + s1 * k2 * mean_sign(k) + k1 * s2 * mean_sign(h) + k1 * k2 * both
        e[1, 0] = g.m2 * e[1, 1] + g.q12 * e[2, 1] + g.q22 * e[1, 2]
        e[0, 1] = g.m1 * e[1, 1] + g.q12 * e[1, 2] + g.q11 * e[2, 1]
        e[0, 0] = g.m1 * e[1, 0] + g.q11 * e[2, 0] + g.q12 * e[1, 1]
        return e

    def own(self, q: Ball, m: Ball) -> Expectations:
        """D = (s² + k²)(q + m²) + 2sk E[x|x|], and ∂_q = ½ ∂_mm."""
        if not q > 0:
            raise KinkError("a neuron with a kinked activation has a zero incoming vector")
        slope, kink = self.first
        square, cross = slope * slope + kink * kink, slope * kink
        h, sign = m / q.sqrt(), mean_sign(m / q.sqrt())
        point = 2 * normal_density(h) / q.sqrt()
        value = square * (q + m * m) + 2 * cross * ((q + m * m) * sign + m * q * point)
        first = 2 * square * m + 4 * cross * (m * sign + q * point)
        second, third, fourth = 2 * square + 4 * cross * sign, 4 * cross * point, -4 * cross * point * m / q
        return {(0, 0): value, (0, 1): first, (0, 2): second, (1, 0): second / 2, (1, 1): third / 2, (2, 0): fourth / 4}

    def single(self, q: Ball, m: Ball) -> list[Ball]:
        """E[|m + √q z|] = m S + q p, with p twice the density at the kink."""
        slope, kink = self.first
        if kink.is_zero():
            return [slope * m, slope, ball(0), ball(0), ball(0)]
        if not q > 0:
            raise KinkError("a neuron with a kinked activation has a zero incoming vector")
        h = m / q.sqrt()
        point = 2 * normal_density(h) / q.sqrt()
        value = slope * m + kink * (m * mean_sign(h) + q * point)
        bend = kink * point
        third = -m * bend / q
        return [value, slope + kink * mean_sign(h), bend, third, -(bend + m * third) / q]


def _at_kink(kink: Ball, second: tuple[Ball, Ball], g: Gram) -> Expectations:
    """E_2j … E_40 where the first neuron is on its kink: y there has the mean c and the standard deviation s."""
    if kink.is_zero():
        return {order: ball(0) for order in ((2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (4, 0))}
    point = 2 * kink * normal_density(g.m1 / g.q11.sqrt()) / g.q11.sqrt()
    c, s = g.m2 - g.q12 * g.m1 / g.q11, (g.area / g.q11).sqrt()
    slope, bend = second
    sign, near = mean_sign(c / s), 2 * normal_density(c / s)
    e = {(2, 0): point * (slope * c + bend * (c * sign + s * near)), (2, 1): point * (slope + bend * sign),
         (2, 2): point * bend * near / s}  # fmt: skip
    e[3, 0] = -(g.m1 * e[2, 0] + g.q12 * e[2, 1]) / g.q11
    e[3, 1] = -(g.m1 * e[2, 1] + g.q12 * e[2, 2]) / g.q11
    e[4, 0] = -(e[2, 0] + g.m1 * e[3, 0] + g.q12 * e[3, 1]) / g.q11
    return e
