"""Slopes of the loss along one direction at many distances."""

from dataclasses import dataclass

import numpy as np

CLEAR = 8.0
"""How many times its rounding a slope must be to count."""

_ENOUGH = 3
"""Neighbouring radii on which a slope must be clear to count."""

_LOWER = 0.5
"""Difference of exponents above which a term is of lower order than another."""

_OCTAVES_OF_POWER = 9
"""Radii whose slopes give the exponent that is reported."""


@dataclass(frozen=True)
class Scan:
    """Slopes dψ/dr along one direction, from the smallest distance outward; NaN where y(z) was not found.

    `noise`: the rounding of the slopes.
    """

    direction: np.ndarray
    radii: np.ndarray
    slopes: np.ndarray
    noise: np.ndarray

    @property
    def clear(self) -> np.ndarray:
        """The sign (-1 or 1) of each slope that can be distinguished from rounding; 0 for the others."""
        told = np.isfinite(self.slopes) & (np.abs(self.slopes) > CLEAR * self.noise)
        return np.where(told, np.sign(np.nan_to_num(self.slopes)), 0).astype(int)

    @property
    def start(self) -> int | None:
        """Position of the smallest radius at which three consecutive slopes are clear and have the same sign."""
        signs = self.clear
        for i in range(len(signs) - _ENOUGH + 1):
            if signs[i] and np.all(signs[i : i + _ENOUGH] == signs[i]):
                return i
        return None

    @property
    def resolved(self) -> float:
        """The radius at `start`, or inf."""
        return float("inf") if self.start is None else float(self.radii[self.start])

    @property
    def sign(self) -> int:
        """The sign of the slope at the smallest distances, 0 if nothing is clear."""
        return 0 if self.start is None else int(self.clear[self.start])

    @property
    def order(self) -> float:
        """Exponent of ψ in the distance, where its slope begins to be clear (3 for a cubic descent)."""
        if self.start is None:
            return float("nan")
        part = slice(self.start, self.start + _ENOUGH)
        return 1 + float(np.polyfit(np.log(self.radii[part]), np.log(np.abs(self.slopes[part])), 1)[0])

    @property
    def power(self) -> float:
        """The same exponent as the median over up to eight octaves, which is less affected by rounding."""
        if self.start is None:
            return float("nan")
        signs = self.clear[self.start : self.start + _OCTAVES_OF_POWER]
        length = int(np.argmax(signs != signs[0])) if np.any(signs != signs[0]) else len(signs)
        part = slice(self.start, self.start + length)
        return 1 + float(np.median(np.diff(np.log(np.abs(self.slopes[part]))) / np.diff(np.log(self.radii[part]))))

    @property
    def steady(self) -> bool:
        """Whether the exponent there is stable: it does not grow towards smaller distances."""
        if self.start is None:
            return False
        part = slice(self.start, self.start + _ENOUGH)
        powers = np.diff(np.log(np.abs(self.slopes[part]))) / np.diff(np.log(self.radii[part]))
        return bool(powers[0] <= powers[1] + 0.3)


def lower_term(scan: Scan, opposite: Scan, even: bool) -> int:
    """The sign of a term of lower order than the one that dominates, in ψ along a line; 0 if none is clear.

    Along u and -u the slopes are dψ/dr = Σ k c_k r^(k-1) and Σ k c_k (-1)^k r^(k-1): half their sum has the even terms,
    half their difference the odd ones. What is smaller where slopes begin to be clear, but falls off more slowly
    towards smaller distances, decides close by.

    - `even`: look for even terms below odd ones, or for odd ones below even ones.
    """
    sums, differences = (scan.slopes + opposite.slopes) / 2, (scan.slopes - opposite.slopes) / 2
    part, rest = (sums, differences) if even else (differences, sums)
    limit = CLEAR * (scan.noise + opposite.noise) / 2
    with np.errstate(invalid="ignore"):
        told = (np.abs(part) > limit) & (np.abs(rest) > limit)
    for i in range(len(told) - _ENOUGH + 1):
        where = slice(i, i + _ENOUGH)
        if np.all(told[where]) and len(np.unique(np.sign(part[where]))) == 1:
            powers = [np.polyfit(np.log(scan.radii[where]), np.log(np.abs(x[where])), 1)[0] for x in (part, rest)]
            return int(np.sign(part[i])) if powers[0] < powers[1] - _LOWER else 0
    return 0
