"""Functions of a few variables with their first and second derivatives, by rules of calculus on balls."""

from __future__ import annotations

from functools import cache
from typing import Any

from flint import arb, arb_mat

Ball = Any


@cache
def pairs(count: int) -> list[tuple[int, int]]:
    """The entries (i, j), j ≤ i, of a symmetric matrix."""
    return [(i, j) for i in range(count) for j in range(i + 1)]


class Jet:
    """Value, gradient and Hessian (entries (i, j) with j ≤ i) of a function, by default of (q11, q12, q22)."""

    def __init__(self, value: Ball, first: list[Ball], second: list[Ball]):
        self.value, self.first, self.second = value, first, second

    @staticmethod
    def variable(value: Ball, which: int, count: int = 3) -> Jet:
        """One of the variables."""
        return Jet(value, [arb(int(i == which)) for i in range(count)], [arb(0)] * len(pairs(count)))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Positions of the entries of `second`."""
        return pairs(len(self.first))

    def __add__(self, other: Jet | Ball | int) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.first, self.second)
        first = [a + b for a, b in zip(self.first, other.first, strict=True)]
        return Jet(self.value + other.value, first, [a + b for a, b in zip(self.second, other.second, strict=True)])

    def __mul__(self, other: Jet | Ball | int) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value * other, [a * other for a in self.first], [a * other for a in self.second])
        f, g = self, other
        first = [a * g.value + f.value * b for a, b in zip(f.first, g.first, strict=True)]
        second = [
            f.second[n] * g.value + f.value * g.second[n] + f.first[i] * g.first[j] + f.first[j] * g.first[i]
            for n, (i, j) in enumerate(self.pairs)
        ]
        return Jet(f.value * g.value, first, second)

    __radd__, __rmul__ = __add__, __mul__

    def then(self, value: Ball, slope: Ball, bend: Ball) -> Jet:
        """h(f), for the value and two derivatives of h at f's value."""
        first = [slope * a for a in self.first]
        second = [slope * self.second[n] + bend * self.first[i] * self.first[j] for n, (i, j) in enumerate(self.pairs)]
        return Jet(value, first, second)

    def to_the(self, exponent: int) -> Jet:
        """A whole power ≥ 0."""
        result = Jet(arb(1), [arb(0)] * len(self.first), [arb(0)] * len(self.second))
        for _ in range(exponent):
            result = result * self
        return result

    def inverse_root(self) -> Jet:
        """f^(-1/2) of a positive f."""
        r = self.value.rsqrt()
        return self.then(r, -r * r * r / 2, 3 * r * r * r * r * r / 4)

    def arcsine(self) -> Jet:
        """Arc sine f for |f| < 1."""
        r = (1 - self.value * self.value).rsqrt()
        return self.then(self.value.asin(), r, self.value * r * r * r)

    def hessian(self) -> Any:
        """The second derivatives as a matrix."""
        table, count = dict(zip(self.pairs, self.second, strict=True)), len(self.first)
        return arb_mat(count, count, [table[max(i, j), min(i, j)] for i in range(count) for j in range(count)])


def composed(inner: list[Jet], value: Ball, first: list[Ball], second: list[list[Ball]]) -> Jet:
    """h(f_1, …, f_m), for the value, gradient and Hessian of h at the values of the f."""
    count = len(inner[0].first)
    slopes = [sum((a * f.first[i] for a, f in zip(first, inner, strict=True)), arb(0)) for i in range(count)]
    bends = []
    for n, (i, j) in enumerate(inner[0].pairs):
        total = sum((a * f.second[n] for a, f in zip(first, inner, strict=True)), arb(0))
        for row, f in zip(second, inner, strict=True):
            total += f.first[i] * sum((b * g.first[j] for b, g in zip(row, inner, strict=True)), arb(0))
        bends.append(total)
    return Jet(value, slopes, bends)


def variables(q11: Ball, q12: Ball, q22: Ball) -> tuple[Jet, Jet, Jet]:
    """The three variables at once."""
    return Jet.variable(q11, 0), Jet.variable(q12, 1), Jet.variable(q22, 2)
