"""The result of a continuation: branches of critical points and the special points on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.files import jsonable

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Side:
    """A branch next to a special point: a certified point at `parameter`.

    `eigenvalue` is the one that vanishes at the special point, `kind` and `index` are those of `us.certify`.
    """

    parameter: float
    eigenvalue: float
    index: int
    kind: str


@dataclass(frozen=True)
class SpecialPoint:
    """A point where the number of negative eigenvalues changes along a branch.

    - `kind`: `"fold"`, `"pitchfork"`, `"transcritical"`, `"multiple"` (several eigenvalues vanish together), or
      `"undecided"` (only known to lie within `error`).
    - `parameter`, `error`: where it is, and how far off that can be by rounding.
    - `point`, `loss`: the critical point there; `null` (m, P): its null vectors, `multiplicity` of them.
    - `before`, `after`: the branch on both sides; None if no certified points were found there.
    - `branches`: numbers of the branches that pass through it, end in it, or leave it.
    """

    kind: str
    parameter: float
    error: float
    point: np.ndarray = field(repr=False)
    loss: float
    null: np.ndarray = field(repr=False)
    before: Side | None
    after: Side | None
    branches: tuple[int, ...]

    @property
    def multiplicity(self) -> int:
        """Number of eigenvalues that vanish."""
        return len(self.null)

    @property
    def certified(self) -> bool:
        """Whether certified points on both sides show the eigenvalue with opposite signs."""
        if self.before is None or self.after is None:
            return False
        return abs(self.before.index - self.after.index) == self.multiplicity and (
            self.before.eigenvalue * self.after.eigenvalue < 0
        )


@dataclass(frozen=True)
class Branch:
    """A branch: one row per point, in the order in which they were found.

    `index`: number of negative eigenvalues (0 for minima); `least_eigenvalue`: the least one, without those of
    continuous symmetries. `leaves`: the number of the special point at which the branch begins, or None. `twins`: how
    many other branches leave that point that are copies of this one by symmetry; they were not followed. `ending`: why
    it stops."""

    parameters: np.ndarray
    points: np.ndarray = field(repr=False)
    losses: np.ndarray
    index: np.ndarray
    least_eigenvalue: np.ndarray
    leaves: int | None
    twins: int
    ending: str

    def __len__(self) -> int:
        return len(self.parameters)


@dataclass(frozen=True)
class Found:
    """A critical point at a given parameter: on which branch, the point, its loss, index and eigenvalues."""

    branch: int
    parameter: float
    point: np.ndarray = field(repr=False)
    loss: float
    index: int
    eigenvalues: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class Continuation:
    """Branches of critical points of a family, and the special points on them. It prints as two tables.

    - `branches`: the first is the one that was asked for, the others leave it (or one another) at special points.
    - `special_points`: folds, pitchforks and transcritical points, each certified on both sides.
    - `parameter`: the name of the family's parameter; `interval`: where it was followed.
    - `slope`: how the derivative by the parameter was computed; `slope_error`: its distance from central differences.
    """

    branches: tuple[Branch, ...]
    special_points: tuple[SpecialPoint, ...]
    parameter: str
    interval: tuple[float, float]
    slope: str
    slope_error: float
    solve: Callable[[float], list[Found]] | None = field(default=None, repr=False, compare=False)

    def at(self, parameter: float) -> list[Found]:
        """Every critical point on the branches at one parameter, by Newton's method from the neighbours."""
        if self.solve is None:
            raise ValueError("A stored continuation does not know its family: run us.continuation again to use at().")
        low, high = self.interval
        if not low <= parameter <= high:
            raise ValueError(f"The branches were followed from {low:g} to {high:g}; received parameter={parameter!r}.")
        return self.solve(float(parameter))

    def __repr__(self) -> str:
        from understudy.branches.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from understudy.branches.table import as_html

        return as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types, as `understudy branch --json` prints it."""
        return {
            "parameter": self.parameter,
            "interval": list(self.interval),
            "slope": self.slope,
            "slope_error": self.slope_error if np.isfinite(self.slope_error) else None,
            "branches": [_branch_record(branch) for branch in self.branches],
            "special_points": [_special_record(special) for special in self.special_points],
        }

    def to_dataset(self) -> "xr.Dataset":
        """All points of all branches, one row each, and the special points."""
        from understudy.branches.stored import to_dataset

        return to_dataset(self)

    def save(self, path: str | Path) -> Path:
        """Write everything to one file, atomically; `understudy.open(path)` reads it. `.nc` is added if it is
        missing."""
        from understudy.branches.stored import KIND
        from understudy.store import write_result

        return write_result(path, {"kind": KIND, "parameter": self.parameter}, self.to_dataset())


def _branch_record(branch: Branch) -> dict[str, Any]:
    names = ("parameters", "losses", "index", "least_eigenvalue", "points", "leaves", "twins", "ending")
    return {name: jsonable(getattr(branch, name)) for name in names}


def _special_record(special: SpecialPoint) -> dict[str, Any]:
    sides = {
        name: None if side is None else dict(vars(side))
        for name, side in (("before", special.before), ("after", special.after))
    }
    names: Sequence[str] = (
        "kind",
        "parameter",
        "error",
        "loss",
        "multiplicity",
        "certified",
        "branches",
        "point",
        "null",
    )
    return {name: jsonable(getattr(special, name)) for name in names} | sides
