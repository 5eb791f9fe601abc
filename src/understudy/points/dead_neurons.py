"""Neurons without outgoing weight, and descents that the Hessian does not show.

At a point where neuron i has a zero outgoing weight, its incoming vector w is free: the network, and so the loss, is
the same at every w + δ. Let s(δ) = ∂L/∂a_i there. A step -ε s(δ) in the outgoing weight lowers the loss by ε‖s‖² +
O(ε²). So a critical point with s(δ) ≠ 0 at arbitrarily small δ is not a minimum. If s(δ) = O(|δ|^m) with m ≥ 2, the
Hessian does not show this, and the point is a non-strict saddle. An example is a split of a minimum at μ = 0 or 1, with
s(δ) ≈ δᵀYδ/(2a) ("few neurons", Section 4). Slopes are known to the rounding of the gradient, falls of the loss only to
the rounding of the loss. A slope of 1e-5 δ² is therefore visible at distances where the fall of the loss is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.points.surroundings import Surroundings

RADII = (0.1, 0.05, 0.025, 0.0125)
_ENOUGH = 3
_CLEAR, _FAINT = 100.0, 3.0
"""How many times its own rounding level a slope must be to count, and to be noticed at all."""

SAME = 1e-9
"""Relative distance below which two weights count as equal; polished points agree to about 1e-14 / least eigenvalue."""


@dataclass(frozen=True)
class WayDown:
    """Slopes ‖s‖ in the outgoing weight of `neuron`: the largest found at each of the `radii` |δ|; s ~ |δ|^`order`.

    `clear`: they stand out from rounding and fall like a power, so there is a way down. Otherwise there may be one.
    """

    neuron: int
    radii: tuple[float, ...]
    slopes: tuple[float, ...]
    order: float
    clear: bool

    def describe(self) -> str:
        """The reasons in one sentence."""
        told = ", ".join(f"{s:.1e}" for s in self.slopes)
        meaning = (
            "lower losses lie arbitrarily near" if self.clear else "too near to rounding to tell a way down from none"
        )
        return (
            f"student {self.neuron} has no outgoing weight, so its incoming vector is free, and at distances "
            f"{self.radii} from it the loss has slopes {told} in the outgoing weight (order {self.order:.2f}): "
            f"{meaning}"
        )


def dead_neurons(outgoing: np.ndarray, near: float = SAME) -> list[int]:
    """Rows of the outgoing weights (n, m) that are zero relative to the largest."""
    scale = max(float(np.abs(outgoing).max()), 1e-300)
    return [i for i, row in enumerate(outgoing) if np.abs(row).max() <= near * scale]


def way_down(around: Surroundings, rounding: float) -> WayDown | None:
    """A way down from a critical point through a dead neuron, or None if there is no sign of one.

    **Arguments**

    - `around`: the point. Only two-layer networks with trained outgoing weights have an answer here.
    - `rounding`: how much of a gradient entry is noise at this point, in natural units.
    """
    neurons = around.task.neurons(around.vector)
    if neurons is None or not neurons.trained_outputs:
        return None
    dim, entries = neurons.dim, neurons.layout
    around = around.prepared(2 * RADII[0])
    noise = rounding + float(np.linalg.norm(around.gradient))
    faint = None
    for neuron in dead_neurons(neurons.outgoing):
        moved = np.zeros((len(RADII), 4 * dim, len(around.vector)))
        turns = np.random.default_rng(0).normal(size=(4 * dim, dim))
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        moved[:, :, entries[neuron, :dim]] = np.array(RADII)[:, None, None] * turns
        gradients = around.slopes(moved.reshape(-1, len(around.vector)))[1].reshape(moved.shape)
        slopes = np.linalg.norm(gradients[:, :, entries[neuron, dim:]], axis=2).max(axis=1)
        if not np.any(slopes > _FAINT * noise):
            continue
        enough = bool(np.all(slopes[:_ENOUGH] > _CLEAR * noise))
        used = np.flatnonzero(slopes > (_CLEAR if enough else 0) * noise)
        order = float(np.polyfit(np.log(np.array(RADII)[used]), np.log(slopes[used]), 1)[0])
        # A slope of first order would make a strict saddle, which the Hessian shows.
        clear = enough and order > 1.5
        found = WayDown(neuron, tuple(RADII[i] for i in used), tuple(float(slopes[i]) for i in used), order, clear)
        if clear:
            return found
        faint = found
    return faint
