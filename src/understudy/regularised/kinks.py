"""Slopes at kinks that balance a network whose pre-activations are exactly zero for some inputs.

Minima of regularised ReLU networks sit on kinks. There σ'(0) is any number between the slopes of both sides, and the
point is stationary if some choice makes the gradient vanish. The gradient by the weights of neuron i of layer ℓ is

  ∂L/∂w_i = Σ_s (W_{ℓ+1}ᵀ Λ_{ℓ+1})_is σ'_is h_s + 2λ w_i        (h_s: activations below, input s),

which is linear in the neuron's own slopes once the slopes above are known. From the last hidden layer down, each
neuron's slopes are a bounded least-squares solution. If several are equally good, any one of them is taken. So the
remaining norm is an upper bound of the least one.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy.optimize import lsq_linear

from understudy.regularised.representation import activations_before, to_representations
from understudy.tasks.regularised import Regularised

KINK = 1e-7
"""A pre-activation counts as zero up to this share of the largest of its neuron."""


def balancing_gates(task: Regularised, parameters: Any, *, kink: float = KINK) -> np.ndarray | None:
    """Slopes s of |z| for every hidden pre-activation, sign z away from kinks; None if the activation has no kinks.

    `forces(…, gates=…)` and `dynamics.settle.gated_gradient` take them in this form.
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
        gate = np.where(hidden < 0, -1.0, 1.0)
        scale = np.abs(hidden).max(axis=1, keepdims=True)
        for i, zero in enumerate(np.abs(hidden) <= kink * scale):
            movable = zero & (half * pull[i] != 0)
            if movable.any():
                rates = half * pull[i, movable] * below[layer][:, movable]
                fixed = np.where(movable, 0.0, gate[i])
                rest = below[layer] @ (pull[i] * (slope + half * fixed)) + 2 * task.penalty * weights[layer][i]
                gate[i, movable] = lsq_linear(rates, -rest, bounds=(-1.0, 1.0), tol=1e-14).x
        signal = pull * (slope + half * gate)
        gates.append(gate.ravel())
    return np.concatenate(gates[::-1])
