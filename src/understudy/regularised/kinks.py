"""Slopes at kinks that balance a network whose pre-activations are exactly zero for some inputs.

Minima of regularised ReLU networks sit on kinks. There σ'(0) is any number between the slopes of both sides, and the
point is stationary if some choice makes the gradient vanish. The gradient by the weights of neuron i of layer ℓ is

  ∂L/∂w_i = Σ_s (W_{ℓ+1}ᵀ Λ_{ℓ+1})_is σ'_is h_s + 2λ w_i        (h_s: activations below, input s),

which is linear in the neuron's own slopes once the slopes above are known. From the last hidden layer down, each
neuron's slopes are a bounded least-squares solution. If several are equally good, any one of them is taken. So the
remaining norm is an upper bound of the least one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from scipy.optimize import lsq_linear

from understudy.regularised.representation import activations_before, to_representations
from understudy.tasks.regularised import Regularised

KINK = 1e-7
"""A pre-activation counts as zero up to this share of the largest of its neuron."""


def plain_gates(task: Regularised, hidden: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Slopes of |z| away from kinks: sign z, and one slope for all inputs where a neuron is zero on all of them.

    `scale` (n, 1) is the largest |z| of each neuron. The slope of a neuron that is always zero makes σ' = 0 if it can:
    its gradient is then 2λw. No slopes make it smaller, because w is orthogonal to all that the neuron reads.
    """
    slope, half = task.slopes
    return np.where(scale > 0, np.where(hidden < 0, -1.0, 1.0), np.clip(-slope / half, -1.0, 1.0))


def balancing_gates(
    task: Regularised,
    parameters: Any,
    *,
    kink: float = KINK,
    scales: Sequence[np.ndarray] | None = None,
    rest: Sequence[np.ndarray] | None = None,
) -> np.ndarray | None:
    """Slopes s of |z| for every hidden pre-activation, sign z away from kinks; None if the activation has no kinks.

    `forces(…, gates=…)` and `dynamics.settle.gated_gradient` take them in this form.

    If the task has only some of the inputs, `scales` (n_ℓ, 1) has the largest |z| of every hidden neuron over all
    inputs, and `rest` what the other inputs add to ∂C/∂W_ℓ.
    """
    if not task.kinked:
        return None
    layers = to_representations(task, parameters)
    below = activations_before(task, layers)
    weights = [np.asarray(w) for w in task.unflatten(task.flatten(parameters))]
    slope, half = task.slopes
    signal = np.asarray(jax.grad(task.output_cost)(layers[-1]))
    gates = []
    for layer in range(task.depth - 2, -1, -1):
        hidden = layers[layer]
        pull = weights[layer + 1][:, : len(hidden)].T @ signal
        scale = np.abs(hidden).max(axis=1, keepdims=True) if scales is None else scales[layer]
        gate = plain_gates(task, hidden, scale)
        others = 0.0 if rest is None else rest[layer]
        fixed = 2 * task.penalty * weights[layer] + others
        for i in np.flatnonzero(scale > 0):
            movable = (np.abs(hidden[i]) <= kink * scale[i]) & (half * pull[i] != 0)
            if movable.any():
                rates = half * pull[i, movable] * below[layer][:, movable]
                known = below[layer] @ (pull[i] * (slope + half * np.where(movable, 0.0, gate[i]))) + fixed[i]
                gate[i, movable] = lsq_linear(rates, -known, bounds=(-1.0, 1.0), tol=1e-14).x
        signal = pull * (slope + half * gate)
        gates.append(gate.ravel())
    return np.concatenate(gates[::-1])
