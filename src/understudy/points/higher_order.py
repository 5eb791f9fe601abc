"""What the Hessian leaves open: the loss along its zero directions, with everything else relaxed.

At a critical point with Hessian H ⪰ 0 split the space into the null space Z of H and its complement Y. For small z ∈ Z there is
one y(z) with ∇_Y L(θ + z + y) = 0, and θ is a minimum of L if and only if 0 is one of ψ(z) = L(θ + z + y(z)) - L(θ)
(splitting lemma). ψ is evaluated on small spheres in Z, and its lowest value is searched for by descent on the sphere.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.tasks.task import Task

_RADII = (0.1, 0.05, 0.025)
_DIRECTIONS = 48
_DESCENTS = 12


@dataclass(frozen=True)
class HigherOrder:
    """Evidence along `dimension` zero directions.

    `radii`: amplitudes tried; `lowest`, `highest`: extreme values of ψ on each sphere; `noise`: rounding level of ψ;
    `order`: exponent of the lowest value in the radius (3 for a cubic descent); `descends`: ψ < -noise on every sphere;
    `flat`: |ψ| ≤ noise everywhere.
    """

    dimension: int
    radii: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    noise: float
    order: float
    descends: bool
    flat: bool


def examine(
    task: Task, vector: np.ndarray, eigenvalues: np.ndarray, vectors: np.ndarray, zero: np.ndarray
) -> HigherOrder:
    """ψ along the eigenvectors flagged in `zero`; `eigenvalues`, `vectors`: the dense spectrum at `vector`."""
    null = vectors[:, zero]
    inverse = (vectors[:, ~zero] / eigenvalues[~zero]) @ vectors[:, ~zero].T
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(_DIRECTIONS, null.shape[1]))
    axes = np.eye(null.shape[1])[: _DIRECTIONS // 4]
    directions = np.concatenate([axes, -axes, directions])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    scale = max(1.0, float(np.abs(vector).max()))
    lowest, highest = [], []
    base = float(task.prepared(jnp.asarray(vector)).value(jnp.asarray(vector)))
    noise = 256 * np.finfo(float).eps * (1 + abs(base) + float(np.abs(vector).max()) ** 2)
    for radius in _RADII:
        values, found = _search(
            task, jnp.asarray(vector), jnp.asarray(null), jnp.asarray(inverse), jnp.asarray(directions), radius * scale
        )
        everything = np.concatenate([np.asarray(values), np.asarray(found)]) - base
        everything = everything[np.isfinite(everything)]
        lowest.append(float(everything.min()))
        highest.append(float(everything.max()))
    low = np.array(lowest)
    descends = bool(np.all(low < -noise))
    order = float(np.log(low[0] / low[-1]) / np.log(_RADII[0] / _RADII[-1])) if descends else float("nan")
    flat = bool(np.all(np.abs(low) <= noise) and np.all(np.abs(highest) <= noise))
    return HigherOrder(
        int(zero.sum()),
        tuple(scale * r for r in _RADII),
        tuple(lowest),
        tuple(highest),
        float(noise),
        order,
        descends,
        flat,
    )


@eqx.filter_jit
def _search(
    task: Task,
    vector: Float[Array, " P"],
    null: Float[Array, "P z"],
    inverse: Float[Array, "P P"],
    directions: Float[Array, "m z"],
    radius: Float[Array, ""] | float,
) -> tuple[Array, Array]:
    """ψ + L(θ) on the sphere of that radius: at the given directions, and at the ends of descents from each."""

    def relaxed(direction: Array) -> tuple[Array, Array]:
        start = vector + radius * null @ direction

        def relax(_: int, point: Array) -> Array:
            return point - inverse @ task.value_and_gradient(point)[1]

        point = jax.lax.fori_loop(0, 20, relax, start)
        loss, gradient = task.value_and_gradient(point)
        return loss, null.T @ gradient

    def descend(direction: Array) -> tuple[Array, Array]:
        first, _ = relaxed(direction)

        def turn(_: int, d: Array) -> Array:
            slope = relaxed(d)[1]
            slope = slope - (slope @ d) * d
            length = jnp.linalg.norm(slope)
            moved = d - 0.5 * slope / jnp.where(length > 0, length, 1.0)
            return moved / jnp.linalg.norm(moved)

        last = jax.lax.fori_loop(0, _DESCENTS, turn, direction)
        return first, relaxed(last)[0]

    return jax.lax.map(descend, directions)
