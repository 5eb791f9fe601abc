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

ZERO, CLEAR = 1e-11, 1e-7
"""An eigenvalue is zero below the first and another number above the second, beside the largest; between them is the gap."""

NEAR = 100.0
"""λ² beside the gradient's norm from which on Newton's method contracts along that eigenvector, for third derivatives of
about ten: a smaller eigenvalue may be nothing but the distance to a degenerate critical point."""

RADII = (0.1, 0.03, 0.01, 0.003, 0.001)
STARTS = 24
STEPS = 60

Kind = Literal["minimum", "strict saddle", "non-strict saddle", "saddle", "unclear"]


@dataclass(frozen=True)
class Reference:
    """The kind, the inertia (negative, zero, positive) and the eigenvalues behind it.

    `unclear_spectrum`: an eigenvalue is in the gap, so that it cannot be told from zero; a saddle with a negative one there
    is just called a saddle. `falls`: of the loss within each radius, where descent had to decide.
    """

    kind: Kind
    inertia: tuple[int, int, int]
    values: np.ndarray
    unclear_spectrum: bool
    falls: tuple[float, ...] = ()


@eqx.filter_jit
def derivatives(loss: Loss, points: Float[Array, "b P"]) -> tuple[Float[Array, "b P"], Float[Array, "b P P"]]:
    """Gradients and Hessians by automatic differentiation."""
    return jax.vmap(jax.grad(loss))(points), jax.vmap(jax.hessian(loss))(points)


def judge(
    loss: Loss, point: np.ndarray, gradient: np.ndarray, hessian: np.ndarray, radial: int, rng: np.random.Generator
) -> Reference:
    """The kind of a critical point with these derivatives; `radial` zero modes belong to the way the loss is written."""
    values, vectors = scipy.linalg.eigh((hessian + hessian.T) / 2)
    largest = max(float(np.abs(values).max()), 1e-3)
    zero = np.abs(values) <= ZERO * largest
    clear = (np.abs(values) >= CLEAR * largest) & (values**2 >= NEAR * float(np.linalg.norm(gradient)))
    inertia = (int(np.sum(values[~zero] < 0)), int(np.sum(zero)) - radial, int(np.sum(values[~zero] > 0)))
    unclear = bool(np.any(~zero & ~clear))
    if np.any(values[clear] < 0):
        return Reference("strict saddle", inertia, values, unclear)
    if inertia[1] <= 0 and not unclear:
        return Reference("minimum", inertia, values, unclear)
    base, falls = _falls(loss, point, values, vectors, ~clear, rng)
    kind = told(falls, 1e-13 * (1 + abs(base)))
    if unclear and kind == "non-strict saddle":
        # With positive ones in the gap it may be a minimum whose basin is as narrow as they are small.
        kind = "saddle" if np.any(values[~zero & ~clear] < 0) else "unclear"
    return Reference(kind, inertia, values, unclear, tuple(map(float, falls)))


def told(falls: np.ndarray, noise: float) -> Kind:
    """The kind, from how far the loss falls within balls of radius `RADII`.

    Beside a saddle it falls within all of them, like a power of the radius, until the fall is below rounding. Beside a
    minimum there may be a way down at some distance (where a flat set ends), but none within the smaller balls although a
    power would show there.

    >>> told(np.array(RADII) ** 3, 1e-13), told(np.maximum(np.array(RADII) - 0.02, 0.0), 1e-13)
    ('non-strict saddle', 'minimum')
    """
    seen, logs = falls > noise, np.log(np.array(RADII))
    count = int(np.argmin(seen)) if not seen.all() else len(seen)
    if np.any(seen[count:]):
        return "unclear"
    if count == 0:
        return "minimum"
    powers = np.diff(np.log(falls[:count])) / np.diff(logs[:count])
    power = float(powers[-1]) if count > 1 else 8.0
    steady = count > 1 and power <= powers[0] + 1
    if count == len(falls):
        return "non-strict saddle" if steady else "unclear"
    expected = falls[count - 1] * np.exp(power * (logs[count] - logs[count - 1]))
    if expected > 10 * noise:
        return "minimum"
    return "non-strict saddle" if steady else "unclear"


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
