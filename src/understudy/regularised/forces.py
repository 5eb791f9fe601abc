"""Attraction and repulsion, the forces on every hidden representation (Jacot et al. 2022, Section 3.1, Fig. 1).

Of the terms of L^r two depend on Z_ℓ: λ‖Z_ℓ (Z^σ_{ℓ-1})⁺‖² attracts it to the origin, λ‖Z_{ℓ+1} (Z^σ_ℓ)⁺‖² repels it.
Their derivatives are (W = Ψ(Z))

  attraction   2λ W_ℓ (Z^σ_{ℓ-1})⁺ᵀ,        repulsion   -2λ [W_{ℓ+1}ᵀ W_{ℓ+1} (Z^σ_ℓ)⁺ᵀ] ∘ σ'(Z_ℓ)    (n_ℓ × N each).

They cancel at a minimum where Z^σ_ℓ has rank N. In trained layers the rank is lower, because neurons lie on few rays.
There Z_{ℓ+1} must stay in the row space of Z^σ_ℓ, which adds a force of constraint. Let Λ_ℓ = ∂C/∂Z_ℓ be
back-propagated. The repulsion together with the constraint is Λ_ℓ = (W_{ℓ+1}ᵀ Λ_{ℓ+1}) ∘ σ'. The formula above is the
part of Λ_{ℓ+1} inside that row space. The balance is

  attraction_ℓ + Λ_ℓ P_{ℓ-1} = (∂L/∂W_ℓ) (Z^σ_{ℓ-1})⁺ᵀ

(P_{ℓ-1} projects onto the row space of Z^σ_{ℓ-1}): the residual is at most ‖∇L‖ / least singular value of Z^σ_{ℓ-1}.
At a kink, z = 0, the slope in σ' is any number between those of both sides. `gates` of `Settled` are the slopes that
balance, and `regularised.kinks` finds them for any other network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.regularised.representation import (
    RANK,
    activations_before,
    onto_rows,
    pseudo_inverse,
    singular_values,
    to_representations,
    to_weights,
)
from understudy.tasks.regularised import Regularised


@dataclass(frozen=True)
class LayerForces:
    """Forces on one hidden layer, all n_ℓ × N, as derivatives of the loss (descent moves against them).

    - `attraction`, `repulsion`: the forces that balance; the repulsion includes the force of the constraint;
    - `local_repulsion`: the derivative of λ‖Z_{ℓ+1}(Z^σ_ℓ)⁺‖² alone;
    - `residual`: ‖attraction + repulsion‖, with the repulsion projected to feasible moves; `conditioning`: 1/least
      singular value of Z^σ_{ℓ-1}; the gradient norm times `conditioning` bounds the residual.
    """

    layer: int
    representation: np.ndarray
    attraction: np.ndarray
    repulsion: np.ndarray
    local_repulsion: np.ndarray
    residual: float
    conditioning: float


def signals(
    task: Regularised,
    parameters: Any,
    gates: np.ndarray | None = None,
    *,
    layers: Sequence[np.ndarray] | None = None,
) -> list[np.ndarray]:
    """Λ_ℓ = ∂C/∂Z_ℓ (n_ℓ × N) for ℓ = 1 … L. If gates are given, they are the slopes of |z|.

    `layers` are the representations Z_ℓ, if they are already known.
    """
    layers = to_representations(task, parameters) if layers is None else layers
    weights = [np.asarray(w) for w in task.unflatten(task.flatten(parameters))]
    slopes = _slopes(task, layers, gates)
    found = [np.asarray(_output_signal(task, jnp.asarray(layers[-1])))]
    for layer in range(task.depth - 1, 0, -1):
        width = task.widths[layer]
        found.append((weights[layer][:, :width].T @ found[-1]) * slopes[layer - 1])
    return found[::-1]


@eqx.filter_jit
def _output_signal(task: Regularised, output: Array) -> Array:
    return jax.grad(task.output_cost)(output)


def forces(
    task: Regularised, parameters: Any, *, gates: np.ndarray | None = None, ridge: float = 0.0
) -> list[LayerForces]:
    """The forces on each hidden layer of a network.

    `ridge`: Tikhonov's γ (relative to the largest eigenvalue of K^σ) instead of pseudo-inverses, as in the paper's
    figure.
    """
    layers = to_representations(task, parameters)
    before = activations_before(task, layers)
    weights = [np.asarray(w) for w in to_weights(task, layers)]
    backward = signals(task, parameters, gates, layers=layers)
    slopes = _slopes(task, layers, gates)
    found = []
    for i in range(task.depth - 1):
        width = task.widths[i + 1]
        attraction = 2 * task.penalty * weights[i] @ _inverse(before[i], ridge).T
        local = -2 * task.penalty * weights[i + 1].T @ weights[i + 1] @ _inverse(before[i + 1], ridge).T
        repulsion = onto_rows(backward[i], before[i])
        singular = singular_values(before[i])
        least = float(singular[singular > RANK * singular[0]][-1])
        found.append(
            LayerForces(
                i + 1,
                layers[i],
                attraction,
                repulsion,
                local[:width] * slopes[i],
                float(np.linalg.norm(attraction + repulsion)),
                1 / least,
            )
        )
    return found


def _slopes(task: Regularised, layers: Sequence[np.ndarray], gates: np.ndarray | None) -> list[np.ndarray]:
    if gates is not None and len(gates):
        slope, kink = task.slopes
        return [slope + kink * np.asarray(g) for g in task.split_hidden(jnp.asarray(gates))]
    return [np.asarray(task.activation.derivatives(jnp.asarray(z), 1)[1]) for z in layers[:-1]]


def _inverse(matrix: np.ndarray, ridge: float) -> np.ndarray:
    if not ridge:
        return pseudo_inverse(matrix)
    gram = matrix.T @ matrix
    return np.linalg.solve(gram + ridge * np.linalg.norm(gram, 2) * np.eye(len(gram)), matrix.T)
