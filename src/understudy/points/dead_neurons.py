"""Neurons without outgoing weight: ways down that no Hessian shows.

At a point where neuron i has a zero outgoing weight its incoming vector w is free: the network, and so the loss, is the same
at every w + δ. With s(δ) = ∂L/∂a_i there, a step -ε s(δ) in the outgoing weight lowers the loss by ε‖s‖² + O(ε²). So a
critical point with s(δ) ≠ 0 at arbitrarily small δ is no minimum. Where s(δ) = O(|δ|^m) with m ≥ 2, none of this is in the
Hessian: a non-strict saddle. A split of a minimum at μ = 0 or 1 is the example, with s(δ) ≈ δᵀYδ/(2a) ("few neurons",
Section 4). Slopes are known to the rounding of the gradient, falls of the loss only to that of the loss: 1e-5 δ² is seen in
the first long after it is lost in the second.
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
    """Slopes ‖s‖ in the outgoing weight of `neuron`, the largest met at each of the `radii` |δ|; s ~ |δ|^`order`.

    `clear`: they stand out from rounding and fall like a power, so that there is a way down; otherwise there may be one.
    """

    neuron: int
    radii: tuple[float, ...]
    slopes: tuple[float, ...]
    order: float
    clear: bool

    def describe(self) -> str:
        """The reasoning in a sentence."""
        told = ", ".join(f"{s:.1e}" for s in self.slopes)
        meaning = (
            "lower losses lie arbitrarily near" if self.clear else "too near to rounding to tell a way down from none"
        )
        return (
            f"student {self.neuron} has no outgoing weight, so its incoming vector is free, and at distances "
            f"{self.radii} from it the loss has slopes {told} in the outgoing weight (order {self.order:.2f}): {meaning}"
        )


def dead_neurons(outgoing: np.ndarray, near: float = SAME) -> list[int]:
    """Rows of the outgoing weights (n, m) that are zero beside the largest."""
    scale = max(float(np.abs(outgoing).max()), 1e-300)
    return [i for i, row in enumerate(outgoing) if np.abs(row).max() <= near * scale]


def way_down(around: Surroundings, rounding: float) -> WayDown | None:
    """A way down beside a critical point through a dead neuron, or None if there is no sign of one.

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
        # Of first order it would be a strict saddle, for the Hessian to tell.
        clear = enough and order > 1.5
        found = WayDown(neuron, tuple(RADII[i] for i in used), tuple(float(slopes[i]) for i in used), order, clear)
        if clear:
            return found
        faint = found
    return faint
