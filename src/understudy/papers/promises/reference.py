"""What a critical point is, by another route: a dense spectrum of a plainly written loss, and descent beside the point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

Loss = Callable[[Array], Array]

ZERO, CLEAR = 1e-9, 1e-7
"""An eigenvalue is zero below the first and another number above the second, beside the largest; between them is the gap."""

RADII = (0.1, 0.03, 0.01)
STARTS = 24
STEPS = 60


@dataclass(frozen=True)
class Reference:
    """The inertia (negative, zero, positive) and the kind; `gap` is the largest zero beside the least other eigenvalue."""

    kind: Literal["minimum", "strict saddle", "non-strict saddle", "unclear"]
    inertia: tuple[int, int, int]
    values: np.ndarray
    falls: tuple[float, ...] = ()

    @property
    def unclear_spectrum(self) -> bool:
        """Whether an eigenvalue is in the gap, so that nobody can tell from doubles whether it is zero."""
        sizes = np.abs(self.values) / np.abs(self.values).max()
        return bool(np.any((sizes > ZERO) & (sizes < CLEAR)))


@eqx.filter_jit
def derivatives(loss: Loss, points: Float[Array, "b P"]) -> tuple[Float[Array, "b P"], Float[Array, "b P P"]]:
    """Gradients and Hessians by automatic differentiation."""
    return jax.vmap(jax.grad(loss))(points), jax.vmap(jax.hessian(loss))(points)


def judge(loss: Loss, point: np.ndarray, hessian: np.ndarray, radial: int, rng: np.random.Generator) -> Reference:
    """The kind of a critical point with that Hessian; `radial` zero modes belong to the way the loss is written."""
    values, vectors = scipy.linalg.eigh((hessian + hessian.T) / 2)
    sizes = np.abs(values) / np.abs(values).max()
    zero = sizes <= ZERO
    inertia = (int(np.sum(values[~zero] < 0)), int(np.sum(zero)) - radial, int(np.sum(values[~zero] > 0)))
    first = Reference("unclear", inertia, values)
    if np.any(values[sizes >= CLEAR] < 0):
        return Reference("strict saddle", inertia, values)
    if first.unclear_spectrum:
        return first
    if inertia[1] <= 0:
        return Reference("minimum", inertia, values)
    base, falls = _falls(loss, point, values, vectors, zero, rng)
    return Reference(_told(falls, 1e-13 * (1 + abs(base))), inertia, values, tuple(falls))


def _told(falls: np.ndarray, noise: float) -> Literal["minimum", "non-strict saddle", "unclear"]:
    """From the falls of the loss within each radius: a saddle falls within all of them, as far as rounding lets it be seen."""
    seen = falls > noise
    if seen.all():
        return "non-strict saddle"
    if not seen.any():
        return "minimum"
    if seen.tolist() == [True, True, False]:
        ratio = falls[1] / falls[0]  # over radii 0.03/0.1; the next step has nearly the same
        return "non-strict saddle" if ratio * falls[1] < 3 * noise else "minimum"
    return "unclear"


def _falls(
    loss: Loss, point: np.ndarray, values: np.ndarray, vectors: np.ndarray, zero: np.ndarray, rng: np.random.Generator
) -> tuple[float, np.ndarray]:
    """The loss, and how far it falls within balls of each radius: half of the starts in the null space, half anywhere."""
    ways = rng.normal(size=(STARTS, len(point)))
    ways[::2] = (ways[::2] @ vectors * zero) @ vectors.T
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    inverse = np.where(zero, 0.0, 1 / np.where(zero, 1.0, np.abs(values)))
    base, lowest = _descend(loss, *map(jnp.asarray, (point, vectors, inverse, ways, np.array(RADII))))
    return float(base), float(base) - np.nanmin(np.asarray(lowest), axis=1)


@eqx.filter_jit
def _descend(
    loss: Loss,
    point: Float[Array, " P"],
    vectors: Float[Array, "P P"],
    inverse: Float[Array, " P"],
    ways: Float[Array, "s P"],
    radii: Float[Array, " r"],
) -> tuple[Float[Array, ""], Float[Array, "r s"]]:
    """The loss at the point, and the lowest met on the way down from each start, inside each ball.

    Newton's step with |H| off the null space; in it steps along the gradient, half of the radius long at first and a tenth
    shorter each time.
    """
    slope = jax.value_and_grad(loss)

    def run(radius: Array, way: Array) -> Array:
        def body(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            place, lowest = carry
            value, gradient = slope(place)
            along = vectors.T @ gradient
            free = jnp.where(inverse == 0, along, 0.0)
            free = 0.5 * 0.9**i * radius * free / jnp.maximum(jnp.linalg.norm(free), 1e-300)
            away = place - vectors @ (inverse * along + free) - point
            away = away * jnp.minimum(1.0, radius / jnp.maximum(jnp.linalg.norm(away), 1e-300))
            return point + away, jnp.fmin(lowest, value)

        place, lowest = jax.lax.fori_loop(0, STEPS, body, (point + radius * way, jnp.asarray(jnp.inf)))
        return jnp.fmin(lowest, loss(place))

    return loss(point), jax.vmap(lambda r: jax.vmap(lambda w: run(r, w))(ways))(radii)
