"""G(p, q) = E[σ(p·x) σ*(q·x)] of two neurons, and its derivatives, in balls and in closed form.

For vectors p, q with q11 = p·p, q12 = p·q, q22 = q·q a smooth G(q11, q12, q22) has

    ∂_p = 2 G_11 p + G_12 q,
    ∂_pp = 2 G_11 I + 4 G_11,11 ppᵀ + 2 G_11,12 (pqᵀ + qpᵀ) + G_12,12 qqᵀ,
    ∂_pq = G_12 I + 2 G_11,12 ppᵀ + 4 G_11,22 pqᵀ + G_12,12 qpᵀ + 2 G_12,22 qqᵀ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from understudy.proofs.balls import Ball, Matrix, ball, identity, matrix, power, square_root, within


class KinkError(ValueError):
    """A neuron whose incoming vector may be zero has a kinked activation: there is no gradient."""


class Own(NamedTuple):
    """D(q) = G(q, q, q) of a neuron with itself, D' and D''."""

    value: Ball
    slope: Ball
    bend: Ball


@dataclass(frozen=True)
class SmoothPair:
    """A pair given by the partials of G(q11, q12, q22)."""

    p: Matrix
    q: Matrix
    value: Ball
    g11: Ball
    g12: Ball
    g22: Ball
    g1111: Ball
    g1112: Ball
    g1212: Ball
    g1122: Ball
    g1222: Ball
    g2222: Ball

    def swapped(self) -> SmoothPair:
        """The same pair in the other order."""
        return SmoothPair(self.q, self.p, self.value, self.g22, self.g12, self.g11,
                          self.g2222, self.g1222, self.g1212, self.g1122, self.g1112, self.g1111)  # fmt: skip

    def own_block(self) -> Matrix:
        """∂²G/∂p∂p."""
        return self._block(2 * self.g11, [4 * self.g1111, 2 * self.g1112, 2 * self.g1112, self.g1212])

    def cross_block(self) -> Matrix:
        """∂²G/∂p∂q."""
        return self._block(self.g12, [2 * self.g1112, 4 * self.g1122, self.g1212, 2 * self.g1222])

    def _block(self, along: Ball, middle: list[Ball]) -> Matrix:
        d = self.p.nrows()
        sides = matrix(d, 2, (m[i, 0] for i in range(d) for m in (self.p, self.q)))
        return identity(d) * along + sides * matrix(2, 2, middle) * sides.transpose()


@dataclass(frozen=True)
class KinkedPair:
    """Two neurons slope·x + kink·|x|, at any angle, parallel ones included.

    With q⊥ = q - (q12/q11) p, s = |p||q⊥|, E = q⊥q⊥ᵀ/s and c = 2 kink kink*/π the blocks are

        ∂_pp = c ((s/q11)(I - ppᵀ/q11) + E),
        ∂_pq = G_12 I + c ((s/(q11 q22)) (p q⊥ᵀ + q⊥ pᵀ + (q12/q11) ppᵀ) - (q12/q22) E),

    and |E_ab| ≤ |q⊥|/|p|, which vanishes at parallel vectors: the Hessian is continuous there.
    """

    p: Matrix
    q: Matrix
    value: Ball
    g11: Ball
    g12: Ball
    kinks: Ball
    gram: tuple[Ball, Ball, Ball]

    def swapped(self) -> KinkedPair:
        """The same pair in the other order."""
        q11, q12, q22 = self.gram
        return KinkedPair(self.q, self.p, self.value, self.g11 * q11 / q22, self.g12, self.kinks, (q22, q12, q11))

    def own_block(self) -> Matrix:
        """∂²G/∂p∂p."""
        q11, _, _ = self.gram
        _, across, spread = self._perpendicular()
        across = across / q11
        return ((identity(self.p.nrows()) - self.p * self.p.transpose() * (1 / q11)) * across + spread) * self.kinks

    def cross_block(self) -> Matrix:
        """∂²G/∂p∂q."""
        q11, q12, q22 = self.gram
        beside, across, spread = self._perpendicular()
        mixed = self.p * beside.transpose()
        bend = (mixed + mixed.transpose() + self.p * self.p.transpose() * (q12 / q11)) * (across / (q11 * q22))
        return identity(self.p.nrows()) * self.g12 + (bend - spread * (q12 / q22)) * self.kinks

    def _perpendicular(self) -> tuple[Matrix, Ball, Matrix]:
        """q⊥, s and E."""
        beside, across = _beside(self.p, self.q, *self.gram[:2])
        if across > 0:
            return beside, across, beside * beside.transpose() * (1 / across)
        d, bound = self.p.nrows(), within(across / self.gram[0])
        return beside, across, matrix(d, d, [bound] * (d * d))


Pair = SmoothPair | KinkedPair


class Kernel(Protocol):
    """The interaction of two named activations."""

    def own(self, q: Ball) -> Own:
        """A neuron with itself; both activations are the same."""

    def pair(self, p: Matrix, q: Matrix, q11: Ball, q12: Ball, q22: Ball) -> Pair:
        """Two neurons with incoming vectors p and q, as columns."""


class Erf:
    """erf(x/√2) with itself: G = (2/π) asin(q12/√((1+q11)(1+q22))); every partial exists everywhere."""

    def own(self, q: Ball) -> Own:
        """D = (2/π) atan(q/√(1+2q))."""
        root, c = (1 + 2 * q).sqrt(), 2 / ball.pi()
        slope = c / ((1 + q) * root)
        bend = -c * (2 + 3 * q) / ((1 + q) * (1 + q) * root * root * root)
        return Own(c * (q / root).atan(), slope, bend)

    def pair(self, p: Matrix, q: Matrix, q11: Ball, q12: Ball, q22: Ball) -> SmoothPair:
        """With a = 1 + q11, b = 1 + q22 and D = ab - q12²: G_12 = (2/π) D^(-½), and the rest follows."""
        a, b, c = 1 + q11, 1 + q22, 2 / ball.pi()
        gap = a * b - q12 * q12
        root = gap.sqrt()
        cubed = gap * root
        curved = c * q12 * (2 * gap + a * b) / (4 * cubed)
        return SmoothPair(
            p, q,
            value=c * (q12 / root).atan(),
            g11=-c * q12 / (2 * a * root), g12=c / root, g22=-c * q12 / (2 * b * root),
            g1111=curved / (a * a), g1112=-c * b / (2 * cubed), g1212=c * q12 / cubed,
            g1122=c * q12 / (4 * cubed), g1222=-c * a / (2 * cubed), g2222=curved / (b * b),
        )  # fmt: skip


@dataclass(frozen=True)
class Cosine:
    """cos^ρ of the angle between two vectors: Hermite polynomials on the sphere (Mehler's formula)."""

    degree: int

    def own(self, q: Ball) -> Own:
        """A vector has the angle 0 with itself, whatever its norm."""
        return Own(ball(1), ball(0), ball(0))

    def pair(self, p: Matrix, q: Matrix, q11: Ball, q12: Ball, q22: Ball) -> SmoothPair:
        """G = q12^ρ (q11 q22)^(-ρ/2)."""
        if not (q11 > 0 and q22 > 0):
            raise KinkError("a vector on the sphere cannot be zero")
        n, length = self.degree, (q11 * q22).sqrt()
        u = q12 / length
        value, first = power(u, n), n * power(u, n - 1) / length
        second = n * (n - 1) * power(u, max(n - 2, 0)) / (length * length)
        half = ball(n) / 2
        return SmoothPair(
            p, q, value,
            g11=-half * value / q11, g12=first, g22=-half * value / q22,
            g1111=half * (half + 1) * value / (q11 * q11), g1112=-half * first / q11, g1212=second,
            g1122=half * half * value / (q11 * q22), g1222=-half * first / q22,
            g2222=half * (half + 1) * value / (q22 * q22),
        )  # fmt: skip


@dataclass(frozen=True)
class Polynomials:
    """Two polynomials Σ_m c_m He_m, He_m orthogonal under N(0, variance): G = Σ_m q12^m/m! A_m(q11) B_m(q22).

    A_m(q) = E[σ^(m)(√q z)], where E[He_j(√q z)] = (j-1)!! (q - variance)^(j/2) for even j, and 0 for odd j.
    """

    first: tuple[tuple[Ball, ...], int]
    second: tuple[tuple[Ball, ...], int]

    def own(self, q: Ball) -> Own:
        """From the pair with p = q: D' = G_11 + G_12 + G_22, D'' along (1, 1, 1)."""
        zero = matrix(1, 1, [0])
        g = self.pair(zero, zero, q, q, q)
        bend = g.g1111 + g.g2222 + 2 * (g.g1112 + g.g1222) + g.g1212 + 2 * g.g1122
        return Own(g.value, g.g11 + g.g12 + g.g22, bend)

    def pair(self, p: Matrix, q: Matrix, q11: Ball, q12: Ball, q22: Ball) -> SmoothPair:
        """∂/∂q11 is half a second derivative of the first σ, ∂/∂q12 one of each (Price's theorem)."""
        terms = min(len(self.first[0]), len(self.second[0]))
        a = _smoothed(*self.first, q11, terms + 4)
        b = _smoothed(*self.second, q22, terms + 4)
        powers = [power(q12, m) / math.factorial(m) for m in range(terms)]

        def e(i: int, j: int) -> Ball:
            return sum((x * a[m + i] * b[m + j] for m, x in enumerate(powers)), ball(0))

        return SmoothPair(p, q, e(0, 0), e(2, 0) / 2, e(1, 1), e(0, 2) / 2, e(4, 0) / 4, e(3, 1) / 2,
                          e(2, 2), e(2, 2) / 4, e(1, 3) / 2, e(0, 4) / 4)  # fmt: skip


def _smoothed(coefficients: tuple[Ball, ...], variance: int, q: Ball, count: int) -> list[Ball]:
    gap, result = q - variance, []
    for m in range(count):
        terms = (
            c * math.perm(degree, m) * math.prod(range(degree - m - 1, 0, -2)) * power(gap, (degree - m) // 2)
            for degree, c in enumerate(coefficients)
            if not c.is_zero() and degree >= m and (degree - m) % 2 == 0
        )
        result.append(sum(terms, ball(0)))
    return result


@dataclass(frozen=True)
class PiecewiseLinear:
    """slope·x + kink·|x| with slope*·x + kink*·|x|."""

    first: tuple[Ball, Ball]
    second: tuple[Ball, Ball]

    def own(self, q: Ball) -> Own:
        """D = (slope² + kink²) q."""
        weight = self.first[0] * self.first[0] + self.first[1] * self.first[1]
        return Own(weight * q, weight, ball(0))

    def pair(self, p: Matrix, q: Matrix, q11: Ball, q12: Ball, q22: Ball) -> Pair:
        """G = slope slope* q12 + kink kink* (2/π)(s + q12 asin(u)), with u = cos of the angle."""
        linear, kinks = self.first[0] * self.second[0], self.first[1] * self.second[1] * 2 / ball.pi()
        if kinks.is_zero():
            return SmoothPair(p, q, linear * q12, ball(0), linear, *[ball(0)] * 7)
        if not (q11 > 0 and q22 > 0):
            raise KinkError("a neuron with a kinked activation has a zero incoming vector")
        _, across = _beside(p, q, q11, q12)
        lean = _lean(q12, across)
        value = linear * q12 + kinks * (across + q12 * lean)
        return KinkedPair(p, q, value, kinks * across / (2 * q11), linear + kinks * lean, kinks, (q11, q12, q22))


def _beside(p: Matrix, q: Matrix, q11: Ball, q12: Ball) -> tuple[Matrix, Ball]:
    """q⊥ = q - (q12/q11) p and s = |p||q⊥|, from the vectors: √(q11 q22 - q12²) loses half of the digits."""
    beside = q - p * (q12 / q11)
    return beside, square_root(q11 * (beside.transpose() * beside)[0, 0])


def _lean(q12: Ball, across: Ball) -> Ball:
    """asin(u) from q12 = r1 r2 u and s = r1 r2 √(1 - u²) ≥ 0."""
    if across > 0:
        return (q12 / across).atan()
    if q12 > 0:
        return ball.pi() / 2 - (across / q12).atan()
    return -ball.pi() / 2 + (across / -q12).atan()
