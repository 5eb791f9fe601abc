"""Training of regularised networks: batched Adam from random starts, then each run settled to rounding."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from understudy.dynamics.descent import descend, quasi_newton
from understudy.dynamics.settle import Settled, settle
from understudy.tasks.regularised import Regularised

DENSE = 1500
"""Up to this many parameters a run is settled with a dense Hessian; beyond, it ends with L-BFGS."""


def train_regularised(
    task: Regularised,
    seeds: Sequence[int],
    *,
    steps: int = 2000,
    rate: float = 2e-2,
    scale: float = 1.0,
    best: int | None = None,
    quasi_newton_iterations: int = 2000,
) -> list[Settled]:
    """Minima of the regularised loss from random starts, one per seed, in the order of the seeds.

    `best`: settle only this many runs, those with the least loss after Adam, the least first. Networks of more than
    `DENSE` parameters end with L-BFGS: their `residual` is the gradient norm there, which stays large where kinks are
    in the way, and their `iterations` is the limit that L-BFGS was given, not how many it took.
    """
    points, losses = descend(task, task.glorot_starts(seeds, scale), steps, rate)
    if best is not None:
        points = points[jnp.argsort(losses)[:best]]
    if task.size <= DENSE:
        return [settle(task, p) for p in points]
    found = []
    for point in points:
        end, loss, norm = quasi_newton(task, point, iterations=quasi_newton_iterations)
        hidden = np.asarray(task.hidden_values(jnp.asarray(end)))
        gates = np.sign(hidden)
        found.append(Settled(np.asarray(end), loss, norm, gates, gates == 0, float("nan"), quasi_newton_iterations))
    return found
