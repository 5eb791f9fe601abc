"""Where students stop averaging and start copying: thresholds of n/k, with uncertainty, from counts of outcomes.

For n students and k teachers, seeds of the gradient flow end as n-1 copies and one average, or as n perturbed copies.
Along x = n/k the paper sees three thresholds (Simsek et al. 2023, Figure 4):

- γ1: below it every seed averages;
- γ2: above it every seed copies;
- γ3: above it the perturbed copies have the lower loss.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Cell:
    """Outcomes of all seeds at one (n, k).

    `averaging`, `copying`, `others`: how many seeds ended as (n-1)-copy-1-average, as perturbed-n-copy, otherwise.
    `excess`: least loss of a copying seed minus the loss of the averaging point; NaN if none copies.
    """

    students: int
    teachers: int
    averaging: int
    copying: int
    others: int = 0
    excess: float = math.nan

    @property
    def ratio(self) -> float:
        """x = n/k."""
        return self.students / self.teachers

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return self.averaging + self.copying + self.others

    @property
    def regime(self) -> str:
        """`"averaging"`, `"mixed"`, `"copying"`, or `"copying, better"` if copies have the lower loss."""
        if self.averaging == self.seeds:
            return "averaging"
        if self.copying < self.seeds:
            return "mixed"
        return "copying, better" if self.excess < 0 else "copying"


@dataclass(frozen=True)
class Threshold:
    """A value of n/k with its standard `uncertainty`, and for each width n (value, low, high) of the bracket."""

    value: float
    uncertainty: float
    widths: dict[int, tuple[float, float, float]]

    @property
    def least(self) -> float:
        """The least value of any width."""
        return min(value for value, _, _ in self.widths.values())

    @property
    def largest(self) -> float:
        """The largest value of any width."""
        return max(value for value, _, _ in self.widths.values())


@dataclass(frozen=True)
class Regimes:
    """The three thresholds; None for a threshold that no width brackets."""

    gamma1: Threshold | None
    gamma2: Threshold | None
    gamma3: Threshold | None


def fit_regimes(cells: Iterable[Cell], *, resamples: int = 400, seed: int = 0) -> Regimes:
    """Thresholds from a grid of cells, at least two values of k for some width n.

    For each width the threshold lies between two neighbouring cells, and its value is the middle. Its variance is the
    sum of two terms: that of a uniform distribution on the bracket, and the scatter of the middle when outcomes near
    the threshold are resampled. (The seeds of a cell are drawn from a binomial whose probability comes from the Beta(½,
    ½) posterior of the cell, because twenty seeds that agree do not prove that the twenty-first would.) γ3 is
    interpolated linearly in x where the excess loss changes sign; its bracket is the two cells. The value over all
    widths is the mean. Its variance is that of the mean plus the scatter between widths.
    """
    by_width: dict[int, list[Cell]] = {}
    for cell in cells:
        by_width.setdefault(cell.students, []).append(cell)
    groups = {n: sorted(group, key=lambda c: c.ratio) for n, group in sorted(by_width.items())}
    rng = np.random.default_rng(seed)
    return Regimes(
        _by_counts(groups, _last_averaging, rng, resamples),
        _by_counts(groups, _first_copying, rng, resamples),
        _by_losses(groups),
    )


Bracket = tuple[float, float] | None


def _last_averaging(cells: Sequence[Cell]) -> Bracket:
    """The bracket between the last cell up to which all seeds average, and the next cell."""
    upto = 0
    while upto < len(cells) and cells[upto].averaging == cells[upto].seeds:
        upto += 1
    return None if upto in (0, len(cells)) else (cells[upto - 1].ratio, cells[upto].ratio)


def _first_copying(cells: Sequence[Cell]) -> Bracket:
    """The bracket between the cell from which all seeds copy, and the cell before it."""
    start = len(cells)
    while start > 0 and cells[start - 1].copying == cells[start - 1].seeds:
        start -= 1
    return None if start in (0, len(cells)) else (cells[start - 1].ratio, cells[start].ratio)


def _by_counts(
    groups: dict[int, list[Cell]],
    bracket: Callable[[Sequence[Cell]], Bracket],
    rng: np.random.Generator,
    resamples: int,
) -> Threshold | None:
    widths, variances = {}, []
    for n, cells in groups.items():
        found = bracket(cells)
        if found is None:
            continue
        uncertain = [_uncertain(cells, i) for i in range(len(cells))]
        redrawn = [
            bracket([_redrawn(cell, rng) if open_ else cell for cell, open_ in zip(cells, uncertain, strict=True)])
            for _ in range(resamples)
        ]
        middles = [(low + high) / 2 for low, high in (b for b in redrawn if b is not None)]
        scatter = float(np.var(middles)) if len(middles) > 1 else 0.0
        widths[n] = (sum(found) / 2, *found)
        variances.append((found[1] - found[0]) ** 2 / 12 + scatter)
    return _combined(widths, variances)


def _uncertain(cells: Sequence[Cell], i: int) -> bool:
    """Whether another draw could differ: a mixed cell, or a unanimous one next to a cell that differs.

    Far from a threshold the neighbours agree with a unanimous cell. Many cells lie there, and if they were resampled,
    some of them would disagree by chance in nearly every sample.
    """
    here = cells[i].averaging / cells[i].seeds
    around = [cells[j].averaging / cells[j].seeds for j in (i - 1, i + 1) if 0 <= j < len(cells)]
    return 0 < here < 1 or any(there != here for there in around)


def _redrawn(cell: Cell, rng: np.random.Generator) -> Cell:
    weights = np.array([cell.averaging, cell.copying, cell.others]) + np.array([0.5, 0.5, 0.0])
    weights = np.maximum(weights, 1e-9)
    averaging, copying, others = rng.multinomial(cell.seeds, rng.dirichlet(weights))
    return Cell(cell.students, cell.teachers, int(averaging), int(copying), int(others), cell.excess)


def _by_losses(groups: dict[int, list[Cell]]) -> Threshold | None:
    widths, variances = {}, []
    for n, cells in groups.items():
        known = [cell for cell in cells if not math.isnan(cell.excess)]
        for left, right in itertools.pairwise(known):
            if left.excess > 0 >= right.excess:
                share = left.excess / (left.excess - right.excess)
                widths[n] = (left.ratio + share * (right.ratio - left.ratio), left.ratio, right.ratio)
                # A linear interpolation of a smooth function errs by a fraction of the bracket. A tenth is safe.
                variances.append((0.1 * (right.ratio - left.ratio)) ** 2)
    return _combined(widths, variances)


def _combined(widths: dict[int, tuple[float, float, float]], variances: list[float]) -> Threshold | None:
    if not widths:
        return None
    values = np.array([value for value, _, _ in widths.values()])
    between = float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else 0.0
    return Threshold(float(values.mean()), math.sqrt(sum(variances) / len(values) ** 2 + between), widths)
