"""Losses next to a point of zero loss, to more digits than sums of order one have."""

import numpy as np

from understudy.points.surroundings import DENSE, evaluate_at
from understudy.tasks.task import Task

_SMALL = 1e-6
"""Losses above this share of the targets' mean square have enough digits as they are."""

_TIMES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


def refined_loss(task: Task, vector: np.ndarray, loss: float) -> float:
    """The loss near a point θ* whose weights show that its loss is the lower bound L*.

    A loss is a difference of sums of order one, so that 1e-15 of it is rounding. By Taylor's formula, with δ = θ - θ*,

    L(θ) = L* + ∫_0^1 (1 - t) δᵀH(θ* + tδ)δ dt.

    Here δ is exact, θ* has the loss L* up to the square of its own rounding (1e-32), and the integral is rounded to
    about 1e-15 ‖H‖‖δ‖². Where no θ* is known, or the loss is not small, the given loss is returned.
    """
    bound = task.lower_bound
    if task.size > DENSE or not (np.isfinite(bound) and abs(loss - bound) <= _SMALL * task.target_scale):
        return loss
    there = task.known_minimiser(vector)
    if there is None:
        return loss
    way, times = np.asarray(vector) - there, (1 + _TIMES) / 2
    found = evaluate_at(task.prepared(vector), there + times[:, None] * way)
    bends = np.array([float(way @ np.asarray(e.hessian) @ way) for e in found])
    excess = float(np.sum(_WEIGHTS / 2 * (1 - times) * bends))
    return bound + max(excess, 0.0) if np.isfinite(excess) else loss
