"""Ball arithmetic: numbers with proven error bounds, by python-flint (Arb).

A ball m ± r stands for every real number within r of m, and each operation returns a ball that contains all results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from understudy.extras import need

need("proofs")
import flint  # noqa: E402

Ball = Any
"""A `flint.arb`."""
Matrix = Any
"""A `flint.arb_mat`."""

ball = flint.arb


def precision(bits: int) -> Any:
    """A context in which the midpoints of balls have this many bits."""
    return flint.ctx.workprec(bits)


def matrix(rows: int, columns: int, entries: Iterable[Ball]) -> Matrix:
    """A matrix from its entries, row by row."""
    return flint.arb_mat(rows, columns, list(entries))


def from_floats(array: np.ndarray) -> Matrix:
    """The exact values of a float64 matrix."""
    return matrix(array.shape[0], array.shape[1], (ball(float(x)) for x in array.ravel()))


def to_floats(m: Matrix) -> np.ndarray:
    """Midpoints, rounded."""
    return np.array([float(x.mid()) for x in m.entries()]).reshape(m.nrows(), m.ncols())


def column(entries: Sequence[Ball]) -> Matrix:
    """A column vector."""
    return matrix(len(entries), 1, entries)


def identity(size: int) -> Matrix:
    """The identity matrix."""
    return matrix(size, size, (ball(int(i == j)) for i in range(size) for j in range(size)))


def dot(p: Matrix, q: Matrix) -> Ball:
    """p·q of two columns."""
    return (p.transpose() * q)[0, 0]


def dots(a: Sequence[Ball], b: Sequence[Ball]) -> Ball:
    """a·b of two lists."""
    return sum((x * y for x, y in zip(a, b, strict=True)), ball(0))


def power(x: Ball, exponent: int) -> Ball:
    """x^exponent for a whole exponent ≥ 0. It also works for balls around 0, for which `**` fails."""
    result = ball(1)
    for _ in range(exponent):
        result = result * x
    return result


def square_root(x: Ball) -> Ball:
    """√x of a number that is known to be ≥ 0, even if its ball contains negative numbers."""
    return x.nonnegative_part().sqrt()


def within(bound: Ball) -> Ball:
    """The ball [-bound, bound]."""
    return ball(0, bound.abs_upper())


def largest(balls: Iterable[Ball]) -> Ball:
    """An upper bound of |x| for all x in the balls."""
    bound = ball(0)
    for x in balls:
        bound = bound.max(x.abs_upper())
    return bound.abs_upper()


def is_contraction(m: Matrix) -> bool:
    """Whether ‖I - m‖ < 1 in the maximum norm, so that m and its factors are invertible."""
    rest = identity(m.nrows()) - m
    return all(sum((abs(x) for x in row), ball(0)) < 1 for row in rest.tolist())


def decimal(x: Ball, digits: int) -> str:
    """The midpoint, rounded to this many digits after the point, as text."""
    scaled = (x.mid() * ball(10) ** digits + ball("0.5")).mid().floor().unique_fmpz()
    if scaled is None:
        raise ValueError("A coordinate is too large for the precision of the proof.")
    number = int(scaled)
    text = str(abs(number)).rjust(digits + 1, "0")
    whole, fraction = text[:-digits], text[-digits:].rstrip("0")
    return ("-" if number < 0 else "") + whole + ("." + fraction if fraction else "")
