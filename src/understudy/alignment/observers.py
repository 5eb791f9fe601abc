"""Observers: node k observes node j if j's boundary ∂E_j runs through k's active region E_k (Tian 2020, Def. 2).

A teacher can be recovered only where some student observes it. Observations are found from weights or from data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def observes_in_ball(
    observer: ArrayLike, observer_bias: ArrayLike, node: ArrayLike, node_bias: ArrayLike, radius: float
) -> np.ndarray:
    """Whether E_k meets ∂E_j within ‖x‖ ≤ radius, exactly; an array (n, m).

    Observers have weights (n, d) and biases (n,), nodes have weights (m, d) and biases (m,). The plane w_j·x + b_j = 0
    cuts the ball in a disc with centre c = -b_j w_j/‖w_j‖² and radius ρ = √(radius² - ‖c‖²). There w_k·x + b_k is at
    most w_k·c + b_k + ρ ‖P w_k‖, where P is the projection along the plane.
    """
    w, b, v, a = (np.asarray(x, float) for x in (observer, observer_bias, node, node_bias))
    lengths = np.linalg.norm(v, axis=1)
    if np.any(lengths == 0):
        raise ValueError("A node with zero weights has no boundary to be observed; leave it out.")
    unit, distance = v / lengths[:, None], -a / lengths
    along = w @ unit.T
    # Computing ‖P w_k‖² as a difference of squares would lose half the digits for nearly parallel nodes.
    across = np.stack([np.linalg.norm(w - along[:, [j]] * unit[j], axis=1) for j in range(len(v))], axis=1)
    inside = radius**2 - distance**2
    highest = along * distance + b[:, None] + np.sqrt(np.maximum(inside, 0.0)) * across
    # A node opposite to an observer has its maximum at zero. Rounding must not count as an observation.
    rounding = 8 * np.finfo(float).eps * (radius * np.linalg.norm(w, axis=1) + np.abs(b))
    return (inside > 0)[None, :] & (highest > rounding[:, None])


def observations(observer: ArrayLike, node: ArrayLike) -> np.ndarray:
    """How many samples each observer sees on the thinner side of each node's boundary; an array (n, m).

    `observer` (S, n) and `node` (S, m) are activations. A positive number means that the observer is active on both
    sides of the boundary, so it sees the boundary pass between these samples.
    """
    active, on = np.asarray(observer) > 0, np.asarray(node) > 0
    a, p = active.astype(float), on.astype(float)
    both = a.T @ p
    return np.minimum(both, a.sum(axis=0)[:, None] - both).astype(int)
