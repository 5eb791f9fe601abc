"""One-sided descent at points where a loss has no derivative."""

from typing import NamedTuple

import numpy as np

from understudy.points.surroundings import Surroundings

_DIRECTIONS = 24
_RADIUS = 1e-6
_CLEAR = 1e-7
"""How far to step from the kink, and the slope that counts as a fall there, relative to the largest slope met."""


class Fall(NamedTuple):
    """A direction in natural units, of length 1, and the slope along it."""

    direction: np.ndarray
    slope: float


def one_sided_descent(around: Surroundings) -> Fall | None:
    """A direction along which the loss falls linearly from a kink, or None if none was found.

    Random directions are tried, and the steepest descents of the smooth pieces found there. A direction counts if the
    loss falls along it from the start (by the slope a millionth away) and all the way to that point.
    """
    size = len(around.vector)
    tried = np.random.default_rng(0).normal(size=(_DIRECTIONS, size))
    tried = _unit(np.concatenate([tried, -tried]))
    _, pieces = around.slopes(_RADIUS * tried)
    pieces = pieces[np.all(np.isfinite(pieces), axis=1)]
    if not len(pieces):
        return None
    steepest = _unit(-pieces[np.linalg.norm(pieces, axis=1) > 0])
    if len(steepest):
        mean = -pieces.mean(axis=0, keepdims=True)
        steepest = np.concatenate([steepest, _unit(mean)]) if np.any(mean) else steepest
    tried = np.concatenate([tried, steepest])
    losses, gradients = around.slopes(_RADIUS * tried)
    slopes = np.einsum("ij,ij->i", gradients, tried)
    fall = (losses - around.loss) / _RADIUS
    scale = float(np.linalg.norm(pieces, axis=1).max()) + around.size * _RADIUS
    noise = 8 * around.rounding.loss / _RADIUS
    good = np.isfinite(slopes) & (slopes < -_CLEAR * scale) & (fall < -np.maximum(_CLEAR * scale / 4, noise))
    if not np.any(good):
        return None
    best = int(np.argmin(np.where(good, slopes, np.inf)))
    return Fall(tried[best], float(slopes[best]))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
