"""The start of the plateau of the regularised loss against the hidden width (Jacot et al. 2022, Prop. 6, 7, Fig. 2).

The rule is as follows. Let b(n) be the best loss of the runs at width n. A narrower network is a wider one with dead
neurons (Prop. 6). So m(n) = min of b over widths ≤ n bounds the least loss from above and falls with n. The level is m
at the widest network n_max. The plateau starts at the least width from which the loss is within a share τ of the
level:

  m(n) ≤ (1 + τ) m(n_max).

The level counts as a plateau only if at least `needed` widths lie at or beyond the start. Otherwise the widths did not
reach far enough, and there is no start.

There are two uncertainties. No width was run between the start and the width before it (`bracket`). And other seeds
might have found other losses (`interval`: the 5th to 95th percentile of the start when the seeds of every width are
resampled with replacement).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class WidthPlateau:
    """The start of the plateau and its uncertainty; `start` is None if the rule finds no plateau."""

    start: int | None
    bracket: tuple[int, int] | None
    interval: tuple[int, int] | None
    level: float
    widths: np.ndarray
    least: np.ndarray
    share: float


def detect_plateau(
    widths: Sequence[int],
    losses: np.ndarray,
    *,
    share: float = 0.1,
    needed: int = 3,
    resamples: int = 2000,
    seed: int = 0,
) -> WidthPlateau:
    """Apply the rule to `losses` (widths × runs, NaN where a run is missing); `share` is τ.

    >>> losses = np.array([[3.0, 3.1], [1.0, 2.0], [1.0, 1.0], [1.2, 1.0]])
    >>> detect_plateau([1, 2, 4, 8], losses).start
    2
    """
    order = np.argsort(widths)
    n, table = np.asarray(widths, int)[order], np.asarray(losses, float)[order]
    if table.ndim != 2 or len(table) != len(n) or len(n) < 2 or len(set(n.tolist())) != len(n):
        raise ValueError(
            f"Losses are a table (widths × runs), at least two widths; received {table.shape} for {list(n)}."
        )
    if not np.all(np.isfinite(table).any(axis=1)):
        missing = n[~np.isfinite(table).any(axis=1)]
        raise ValueError(f"Every width needs a finite loss; none at widths {missing.tolist()}. Run them again.")
    if not np.all(table[np.isfinite(table)] > 0):
        raise ValueError("A regularised loss is positive; received losses ≤ 0.")
    index, least = _start(np.nanmin(table, axis=1), share, needed)
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(resamples):
        best = np.array([_draw(row[np.isfinite(row)], rng) for row in table])
        found = _start(best, share, needed)[0]
        drawn.append(np.inf if found is None else float(n[found]))
    if index is None:
        return WidthPlateau(None, None, None, float(least[-1]), n, least, share)
    ends = np.sort(drawn)[[int(0.05 * resamples), int(0.95 * resamples) - 1]]
    interval = (int(ends[0]), int(ends[1]) if np.isfinite(ends[1]) else int(n[-1]))
    bracket = (int(n[index - 1]) + 1 if index else int(n[0]), int(n[index]))
    return WidthPlateau(int(n[index]), bracket, interval, float(least[-1]), n, least, share)


def _draw(row: np.ndarray, rng: np.random.Generator) -> float:
    return float(rng.choice(row, len(row)).min())


def _start(best: np.ndarray, share: float, needed: int) -> tuple[int | None, np.ndarray]:
    least = np.minimum.accumulate(best)
    index = int(np.flatnonzero(least <= (1 + share) * least[-1])[0])
    return (index if len(best) - index >= needed else None), least
