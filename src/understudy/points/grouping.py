"""Which runs ended at the same point, up to the symmetries of students and teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Group:
    """Runs that ended at the same point, up to symmetry, by their positions; the first represents all of them."""

    kind: str
    label: str
    loss: float
    members: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many runs ended here."""
        return len(self.members)


def group_runs(runs: Any) -> list[Group]:
    """Group results by the point at which they ended, most frequent first; see `group_ends`."""
    certificates = [run.certificate for run in runs]
    groups = group_ends(
        [c.kind for c in certificates],
        [run.structure.label for run in runs],
        [run.loss for run in runs],
        [c.flat_dimension for c in certificates],
        [c.eigenvalues for c in certificates],
    )
    return [Group(runs[g[0]].certificate.kind, runs[g[0]].structure.label, runs[g[0]].loss, tuple(g)) for g in groups]


def group_ends(
    kinds: Sequence[str],
    labels: Sequence[str],
    losses: Sequence[float],
    flat_dimensions: Sequence[int],
    spectra: Sequence[np.ndarray],
    *,
    tolerance: float = 1e-7,
) -> list[list[int]]:
    """Groups of positions whose ends are the same point, most frequent first.

    Two ends are the same if verdict, label, loss and the whole Hessian spectrum agree (relative `tolerance`). All four
    are invariant under permutations and signs of students. They are also invariant under every symmetry of the teacher,
    which moves copies from one teacher to another. Along a flat set the spectrum changes. There, and where there is no
    critical point, only verdict, label and loss are compared. Spectra may be padded with NaN.

    Losses that differ only by rounding are equal. The limit is 16 roundings of the largest eigenvalue, which has the
    size of the terms in the loss.
    """
    largest = [float(np.nanmax(np.abs(x), initial=0.0)) for x in spectra]
    rounding = [16 * float(np.finfo(float).eps) * x for x in largest]

    def same(i: int, j: int) -> bool:
        if kinds[i] != kinds[j] or labels[i] != labels[j]:
            return False
        if not abs(losses[i] - losses[j]) <= max(
            tolerance * max(abs(losses[i]), abs(losses[j])), rounding[i], rounding[j]
        ):
            return False
        if flat_dimensions[i] or kinds[i] not in ("minimum", "strict saddle", "non-strict saddle"):
            return True
        x, y = (spectra[k][np.isfinite(spectra[k])] for k in (i, j))
        return len(x) == len(y) and bool(np.abs(x - y).max() <= 10 * tolerance * np.abs(x).max())

    groups: list[list[int]] = []
    for i in range(len(kinds)):
        for group in groups:
            if same(i, group[0]):
                group.append(i)
                break
        else:
            groups.append([i])
    return sorted(groups, key=lambda group: (-len(group), losses[group[0]]))
