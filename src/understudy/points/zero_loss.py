"""Points whose loss equals a lower bound that holds everywhere."""

import numpy as np

from understudy.points.case import Case
from understudy.points.dead_neurons import dead_neurons
from understudy.points.flats import flat_families
from understudy.points.small_losses import refined_loss
from understudy.points.surroundings import EPS, Surroundings

SUMS = 8.0
"""Roundings of the targets' mean square that a sum of interactions may be off by."""

_NEAR = 1e-3
"""Relative distance at which neurons count as equal, and outgoing weights as zero, where the loss is zero to rounding.
It grows with the fourth power of the distance between split neurons, and (1e-15)^¼ is 2e-4."""

_TRIED, _RADIUS, _ROUNDS = 6, 0.03, 30


def at_lower_bound(around: Surroundings) -> float | None:
    """The rounding of the loss in natural units, if the loss is at its lower bound to rounding; None otherwise.

    Sums of many interactions may be off by more than the rounding that is estimated. Where the weights show a point at
    the bound nearby, the loss is computed from the way to it.
    """
    bound = around.task.lower_bound
    if not np.isfinite(bound) or not np.isfinite(around.loss):
        return None
    noise = around.rounding.loss if around.finite else 16 * EPS * abs(around.loss)
    noise += SUMS * EPS * abs(around.task.target_scale) / around.unit
    if around.loss <= bound / around.unit + noise:
        return noise
    refined = refined_loss(around.task, around.vector, around.loss * around.unit) / around.unit
    return noise if refined <= bound / around.unit + noise else None


def flat_dimension(case: Case, noise: float) -> int:
    """Dimension of the set of zero loss around one of its points.

    If the loss stays at its bound along random directions of the null space (with all other directions relaxed), the
    whole null space is flat. Otherwise the dimension is that of the families that keep the function: split lines, and
    free incoming vectors of dead neurons.
    """
    around, found = case.around, case.spectrum
    zero = found.zero
    explained = _rank(flat_families(around, _NEAR, _dead(around, noise)))
    inside = int(zero.sum())
    if inside and explained < inside and _stays_zero(case, noise):
        explained = inside
    return explained + (case.explained - min(case.explained, inside) if case.outside else 0)


def _rank(families: list) -> int:
    rows = [f.tangents / np.linalg.norm(f.tangents, axis=1, keepdims=True) for f in families]
    return int(np.linalg.matrix_rank(np.concatenate(rows), tol=1e-8)) if rows else 0


def _dead(around: Surroundings, noise: float) -> list[int]:
    """Neurons with an outgoing weight so small that the loss stays at its bound as their incoming vectors move."""
    neurons = around.task.neurons(around.vector)
    if neurons is None:
        return []
    found = []
    for i in dead_neurons(neurons.outgoing, _NEAR):
        moves = np.zeros((_TRIED, len(around.vector)))
        ways = np.random.default_rng(0).normal(size=(_TRIED, neurons.dim))
        moves[:, neurons.layout[i, : neurons.dim]] = 0.3 * ways / np.linalg.norm(ways, axis=1, keepdims=True)
        if np.all(around.slopes(moves)[0] <= around.task.lower_bound / around.unit + noise):
            found.append(i)
    return found


def _stays_zero(case: Case, noise: float) -> bool:
    """Whether the loss stays at its bound along random directions of the null space."""
    around, found = case.around, case.spectrum
    null, across, values = found.vectors[:, found.zero], found.vectors[:, ~found.zero], found.values[~found.zero]
    ways = np.random.default_rng(0).normal(size=(_TRIED, null.shape[1]))
    offsets = _RADIUS * (ways / np.linalg.norm(ways, axis=1, keepdims=True)) @ null.T
    for _ in range(_ROUNDS):
        losses, gradients = around.slopes(offsets)
        if np.all(losses <= around.task.lower_bound / around.unit + noise):
            return True
        with np.errstate(over="ignore", invalid="ignore"):
            offsets = offsets - (gradients @ across / values) @ across.T
        if not np.all(np.isfinite(offsets)):
            return False
    return False
