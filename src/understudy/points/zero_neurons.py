"""Whether neurons without any weight, on which a penalty acts, are a way down.

See `tasks.zero_neurons`: such a neuron is a way down if and only if some unit vector w has a response
‖Gσ(Bᵀw)‖ > 2λ. Neurons with weights have exactly 2λ where the point is stationary, so the largest response decides by
whether it is above 2λ. If it is not, and the loss is convex in the measure of neurons, no network of any width has a
lower loss.
"""

from typing import NamedTuple

import numpy as np

from understudy.activations import activate
from understudy.oracles import Maximum, largest_response
from understudy.points.surroundings import EPS
from understudy.points.verdict import Kind
from understudy.tasks.task import Task
from understudy.tasks.zero_neurons import ZeroNeurons

_ABOVE = 1e-8
"""Squared response, relative to (2λ)², above which one counts as a way down."""

_CLOSED = 1e-7
"""Bound of it up to which there is none. It bounds the relative distance to the least loss of any width."""

_STEPS = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3)


class ZeroNeuronVerdict(NamedTuple):
    """The verdict on a point with its zero neurons, the reason, and directions (rows) along which the loss falls."""

    kind: Kind
    words: str
    directions: np.ndarray


def judge_zero_neurons(task: Task, vector: np.ndarray, zero: ZeroNeurons, without: Kind) -> ZeroNeuronVerdict:
    """The verdict, given the one `without` the zero neurons on a point that is stationary."""
    found, none = _largest(zero), np.zeros((0, len(vector)))
    share = float(np.sqrt(found.value))
    told = f"the largest response of a zero neuron is {share:.6g} times what the penalty allows"
    if found.value > 1 + _ABOVE:
        direction = _falls(task, vector, zero, found.direction)
        if direction is not None:
            return ZeroNeuronVerdict("strict saddle", f"{told}: the loss falls where the neuron grows", direction[None])
    elif without == "strict saddle":
        return ZeroNeuronVerdict(without, f"{told}, but there is a way down without it", none)
    elif zero.convex and found.upper <= 1 + _CLOSED:
        gap = max(found.upper - 1, 0.0)
        return ZeroNeuronVerdict(
            "minimum", f"{told}: no network of any width has a loss lower by more than {gap:.0e} of it", none
        )
    return ZeroNeuronVerdict("undecided", f"{told} (at most {np.sqrt(found.upper):.6g} times): undecided", none)


def _largest(zero: ZeroNeurons) -> Maximum:
    """The largest squared response, in units of (2λ)²."""
    duals = zero.pulls / (2 * zero.penalty)
    return largest_response(zero.inputs, zero.activation, duals, enough=1 + _ABOVE, tolerance=_CLOSED / 4)


def _falls(task: Task, vector: np.ndarray, zero: ZeroNeurons, incoming: np.ndarray) -> np.ndarray | None:
    """The direction in which a zero neuron grows with these incoming weights, if the loss is seen to fall along it."""
    direction = np.zeros(len(vector))
    pull = zero.pulls @ activate(zero.activation, incoming @ zero.inputs)
    direction[zero.incoming], direction[zero.outgoing] = incoming, -pull / np.linalg.norm(pull)
    direction /= np.linalg.norm(direction)
    here, size = float(task.loss(vector)), max(float(np.linalg.norm(vector)), 1.0)
    falls = [float(task.loss(vector + step * size * direction)) - here for step in _STEPS]
    return direction if min(falls) < -64 * EPS * abs(here) else None
