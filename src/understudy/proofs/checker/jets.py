"""Functions of three variables with their first and second derivatives, by rules of calculus on balls."""

from __future__ import annotations

from typing import Any

from flint import arb, arb_mat

Ball = Any
PAIRS = [(i, j) for i in range(3) for j in range(i + 1)]


class Jet:
    """Value, gradient (3 numbers) and Hessian (6: entries (i, j) with j ≤ i) of a function of (q11, q12, q22)."""

    def __init__(self, value: Ball, first: list[Ball], second: list[Ball]):
        self.value, self.first, self.second = value, first, second

    @staticmethod
    def variable(value: Ball, which: int) -> Jet:
        """One of the three variables."""
        return Jet(value, [arb(int(i == which)) for i in range(3)], [arb(0)] * 6)

    def __add__(self, other: Jet | Ball | int) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.first, self.second)
        first = [a + b for a, b in zip(self.first, other.first, strict=True)]
        return Jet(self.value + other.value, first, [a + b for a, b in zip(self.second, other.second, strict=True)])

    def __mul__(self, other: Jet | Ball | int) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value * other, [a * other for a in self.first], [a * other for a in self.second])
        f, g = self, other
        first = [f.first[i] * g.value + f.value * g.first[i] for i in range(3)]
        second = [
            f.second[n] * g.value + f.value * g.second[n] + f.first[i] * g.first[j] + f.first[j] * g.first[i]
            for n, (i, j) in enumerate(PAIRS)
        ]
        return Jet(f.value * g.value, first, second)

    __radd__, __rmul__ = __add__, __mul__

    def then(self, value: Ball, slope: Ball, bend: Ball) -> Jet:
        """h(f), for the value and two derivatives of h at f's value."""
        first = [slope * a for a in self.first]
        second = [slope * self.second[n] + bend * self.first[i] * self.first[j] for n, (i, j) in enumerate(PAIRS)]
        return Jet(value, first, second)

    def to_the(self, exponent: int) -> Jet:
        """A whole power ≥ 0."""
        result = Jet(arb(1), [arb(0)] * 3, [arb(0)] * 6)
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
        """The second derivatives as a 3 × 3 matrix."""
        table = {pair: self.second[n] for n, pair in enumerate(PAIRS)}
        return arb_mat(3, 3, [table[max(i, j), min(i, j)] for i in range(3) for j in range(3)])


def variables(q11: Ball, q12: Ball, q22: Ball) -> tuple[Jet, Jet, Jet]:
    """The three variables at once."""
    return Jet.variable(q11, 0), Jet.variable(q12, 1), Jet.variable(q22, 2)
