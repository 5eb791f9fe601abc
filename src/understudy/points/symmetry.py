"""Which runs ended in one point, up to the symmetries of students and teacher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Group:
    """Runs that ended in one point, up to symmetry: their positions in the result set, the first standing for all."""

    kind: str
    label: str
    loss: float
    members: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many runs ended here."""
        return len(self.members)


def group_runs(runs: Any, *, tolerance: float = 1e-7) -> list[Group]:
    """Group results by the point they ended in, most frequent first.

    Two results are one if verdict, label, loss and the whole Hessian spectrum agree (relative `tolerance`): all are
    invariant under permutations and signs of students and under every symmetry of the teacher, which moves copies from
    one teacher to another.
    """
    groups: list[list[int]] = []
    for i, run in enumerate(runs):
        for group in groups:
            if _same(run, runs[group[0]], tolerance):
                group.append(i)
                break
        else:
            groups.append([i])
    found = [Group(runs[g[0]].certificate.kind, runs[g[0]].structure.label, runs[g[0]].loss, tuple(g)) for g in groups]
    return sorted(found, key=lambda g: (-g.count, g.loss))


def _same(first: Any, second: Any, tolerance: float) -> bool:
    if first.certificate.kind != second.certificate.kind or first.structure.label != second.structure.label:
        return False
    scale = max(abs(first.loss), abs(second.loss), 1e-9)
    if abs(first.loss - second.loss) > tolerance * scale:
        return False
    if first.certificate.kind not in ("minimum", "strict saddle", "non-strict saddle"):
        return True
    if first.certificate.flat_dimension:
        return True  # along a flat set the spectrum changes; loss and label are what is left
    x, y = first.certificate.eigenvalues, second.certificate.eigenvalues
    return len(x) == len(y) and bool(np.abs(x - y).max() <= 10 * tolerance * max(1.0, np.abs(x).max()))
