"""The loss in terms of hidden representations: Prop. 1 of Jacot et al. 2022.

With Z = (Z_1, …, Z_L), Z_ℓ of shape n_ℓ × N, and Z^σ_ℓ = (σ(Z_ℓ); β 1ᵀ),

  L^r_λ(Z) = C(Z_L) + λ Σ_ℓ ‖Z_ℓ (Z^σ_{ℓ-1})⁺‖²   on   𝒵 = {Z: Im Z_ℓᵀ ⊂ Im (Z^σ_{ℓ-1})ᵀ}.

Φ maps weights to representations, Ψ representations to the least weights W_ℓ = Z_ℓ (Z^σ_{ℓ-1})⁺ that give them:
Φ∘Ψ = id on 𝒵, L(Ψ(Z)) = L^r(Z), and L^r(Φ(W)) ≤ L(W) with equality exactly if W = Ψ(Φ(W)).

Where Z^σ is rank-deficient, the pseudo-inverse is not continuous. With a ridge γ > 0 (Tikhonov)

  ‖Z_ℓ (Z^σ_{ℓ-1})⁺‖²  →  Tr[Z_ℓ (K^σ_{ℓ-1} + γ)⁻¹ Z_ℓᵀ] = min_W ‖W‖² + ‖Z_ℓ - W Z^σ_{ℓ-1}‖²/γ,

which is smooth on all Z and below the exact cost on 𝒵. It lets representations leave 𝒵 by O(γ). The force that pulls
them back is the force of the constraint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import activate
from understudy.dynamics.settle import Settled, settle
from understudy.tasks.regularised import Regularised, Weights
from understudy.tasks.task import Task

RANK = 1e-10
"""Singular values below this share of the largest count as zero: representations of trained networks are exact to about
1e-12, and a direction with a smaller share could only be used by weights 10¹⁰ times larger than the others."""

RIDGE = 3e-4
"""The first ridge of direct optimisation, as a share of the mean of K^σ_0's diagonal. At 1e-2 other
minima are found: representations leave 𝒵 so far that the best of them return to minima that are not the best."""

Layers = tuple[np.ndarray, ...]


def to_representations(task: Regularised, parameters: Any) -> Layers:
    """Φ(W) = (Z_1, …, Z_L)."""
    flat = np.asarray(task.flatten(parameters))
    found: list[np.ndarray] = []
    active, begin = np.asarray(task.entry), 0
    for rows, columns in task.shapes:
        found.append(flat[begin : begin + rows * columns].reshape(rows, columns) @ active)
        begin += rows * columns
        if len(found) < task.depth:
            active = _activated(task, found[-1])
    return tuple(found)


def _activated(task: Regularised, hidden: np.ndarray) -> np.ndarray:
    """Z^σ = (σ(Z); β 1ᵀ)."""
    active = activate(task.activation, hidden)
    return np.concatenate([active, np.full((1, task.samples), task.bias)]) if task.bias else active


def activations_before(task: Regularised, layers: Sequence[np.ndarray]) -> Layers:
    """(Z^σ_0, …, Z^σ_{L-1}): the inputs of each layer of weights."""
    return (np.asarray(task.entry), *(_activated(task, np.asarray(z)) for z in layers[:-1]))


def to_weights(task: Regularised, layers: Sequence[np.ndarray], *, ridge: float = 0.0) -> Weights:
    """Ψ(Z): W_ℓ = Z_ℓ (Z^σ_{ℓ-1})⁺, or with a ridge W_ℓ = Z_ℓ (K^σ + γ)⁻¹ (Z^σ)ᵀ."""
    found = []
    for z, before in zip(layers, activations_before(task, layers), strict=True):
        if ridge:
            gram = before.T @ before + ridge * np.eye(before.shape[1])
            found.append(jnp.asarray(np.linalg.solve(gram, np.asarray(z).T).T @ before.T))
        else:
            found.append(jnp.asarray(np.asarray(z) @ pseudo_inverse(before)))
    return tuple(found)


def infeasibility(task: Regularised, layers: Sequence[np.ndarray]) -> float:
    """The largest relative part of a Z_ℓ outside the row space of Z^σ_{ℓ-1}: zero on 𝒵."""
    parts = [0.0]
    for z, before in zip(layers, activations_before(task, layers), strict=True):
        outside = z - onto_rows(np.asarray(z), before)
        parts.append(float(np.linalg.norm(outside)) / max(float(np.linalg.norm(z)), 1e-300))
    return max(parts)


def project(task: Regularised, layers: Sequence[np.ndarray]) -> Layers:
    """P_𝒵: Z_ℓ → Z_ℓ P, from the first layer to the last; P projects onto the row space of Z^σ_{ℓ-1} (Sec. 3.3)."""
    found: list[np.ndarray] = []
    before = np.asarray(task.entry)
    for z in layers:
        found.append(onto_rows(np.asarray(z), before))
        if len(found) < task.depth:
            before = _activated(task, found[-1])
    return tuple(found)


def onto_rows(z: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Z P with P the projection onto the row space of `matrix` (n, N). P itself (N × N) is never formed."""
    return (z @ pseudo_inverse(matrix)) @ matrix


def pseudo_inverse(matrix: np.ndarray) -> np.ndarray:
    """M⁺, where singular values below RANK of the largest are zeros; for many columns by Mᵀ = QR, M⁺ = Q (Rᵀ)⁺."""
    if matrix.shape[1] <= 2 * matrix.shape[0]:
        return np.linalg.pinv(matrix, rcond=RANK)
    q, r = np.linalg.qr(matrix.T)
    return q @ np.linalg.pinv(r.T, rcond=RANK)


def singular_values(matrix: np.ndarray) -> np.ndarray:
    """Singular values, the largest first; for many columns those of the triangular factor."""
    wide = matrix.shape[1] > 2 * matrix.shape[0]
    return np.linalg.svd(np.linalg.qr(matrix.T, mode="r") if wide else matrix, compute_uv=False)


def representation_loss(task: Regularised, layers: Sequence[np.ndarray]) -> float:
    """L^r_λ(Z) by pseudo-inverses; infinite outside 𝒵 (relative distance above 1e-7: half of double precision)."""
    if infeasibility(task, layers) > 1e-7:
        return np.inf
    cost = sum(float(np.sum(np.asarray(w) ** 2)) for w in to_weights(task, layers))
    return float(output_cost(task, jnp.asarray(layers[-1]))) + task.penalty * cost


@eqx.filter_jit
def output_cost(task: Regularised, output: Array) -> Array:
    """C(Z_L), compiled."""
    return task.output_cost(output)


class Representations(Task):
    """L^r_λ with a ridge γ, as a task: flow, descent, Newton's method and certificates work on representations.

    The loss has kinks at zero entries of the hidden Z_ℓ, which here are coordinates (see `dynamics.settle`).
    """

    problem: Regularised
    ridge: float | Array

    @property
    def size(self) -> int:
        return sum(self.problem.widths[1:]) * self.problem.samples

    @property
    def kinked(self) -> bool:
        """Whether the activation has kinks."""
        return self.problem.kinked

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        if isinstance(parameters, (tuple, list)):
            return jnp.concatenate([jnp.ravel(jnp.asarray(z, float)) for z in parameters])
        vector = jnp.asarray(parameters, float)
        if vector.shape[-1] != self.size:
            raise ValueError(f"These representations have {self.size} entries; received shape {vector.shape}.")
        return vector

    def unflatten(self, vector: Float[Array, "*batch P"]) -> tuple[Float[Array, "*batch _ N"], ...]:
        samples = self.problem.samples
        ends = np.cumsum([n * samples for n in self.problem.widths[1:]])[:-1]
        return tuple(z.reshape(*z.shape[:-1], -1, samples) for z in jnp.split(vector, ends, axis=-1))

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self._value(vector, lambda layer, z: self.problem.activate(z))

    def _value(self, vector: Array, activate: Any) -> Array:
        layers = self.unflatten(vector)
        total, before = self.problem.output_cost(layers[-1]), self.problem.entry
        for layer, z in enumerate(layers):
            gram = before.T @ before + self.ridge * jnp.eye(self.problem.samples)
            total = total + self.problem.penalty * jnp.sum(z * jnp.linalg.solve(gram, z.T).T)
            if layer < self.problem.depth - 1:
                before = activate(layer, z)
        return total

    def hidden_values(self, vector: Float[Array, " P"]) -> Float[Array, " H"]:
        """The hidden Z_ℓ as one vector."""
        return vector[: vector.shape[0] - self.problem.widths[-1] * self.problem.samples]

    def gated_value(
        self, vector: Float[Array, " P"], gates: Float[Array, " H"], offsets: Float[Array, " H"]
    ) -> Float[Array, ""]:
        """The loss with |z| replaced by s·z + e."""
        gate, offset = self.problem.split_hidden(gates), self.problem.split_hidden(offsets)
        return self._value(vector, lambda layer, z: self.problem.activate(z, gate[layer], offset[layer]))

    def gated_hidden(self, vector: Float[Array, " P"], gates: Float[Array, " H"]) -> Float[Array, " H"]:
        """Hidden entries do not depend on gates."""
        return self.hidden_values(vector)

    def smoothed_value(self, vector: Float[Array, " P"], width: float | Float[Array, ""]) -> Float[Array, ""]:
        """The loss with |z| replaced by √(z² + width²)."""
        return self._value(vector, lambda layer, z: self.problem.activate_smoothed(z, width))


@dataclass(frozen=True)
class Optimised:
    """The end of a direct optimisation over representations.

    If the ridge minimum is the lowest in its neighbourhood, the exact minimum near it lies between `lower`, the ridge
    loss, and `upper` = L(W) at W = Ψ_γ(Z).
    """

    layers: Layers
    weights: Weights
    lower: float
    upper: float
    settled: Settled


def optimise(
    task: Regularised, layers: Sequence[np.ndarray], *, ridges: Sequence[float] = (RIDGE, 1e-6, 1e-8)
) -> Optimised:
    """Direct minimisation of L^r from Z; the ridge is lowered in steps (relative to the mean of K^σ_0's diagonal).

    Each ridge problem is settled to rounding; W = Ψ_γ(Z) at the end makes the result feasible.
    """
    scale = float(jnp.mean(jnp.sum(task.entry**2, axis=0)))
    space = Representations(task, jnp.asarray(ridges[0] * scale))
    vector = space.flatten(tuple(layers))
    settled: Settled | None = None
    for share in ridges:
        space = eqx.tree_at(lambda s: s.ridge, space, jnp.asarray(share * scale))
        settled = settle(space, vector, widest=1e-2 if settled is None else 1e-5)
        vector = jnp.asarray(settled.vector)
    assert settled is not None
    found = tuple(np.asarray(z) for z in space.unflatten(vector))
    weights = to_weights(task, found, ridge=float(space.ridge))
    return Optimised(found, weights, settled.loss, float(task.loss(weights)), settled)
