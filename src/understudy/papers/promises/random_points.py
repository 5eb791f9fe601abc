"""Random critical points of a task: saddles of every index, minima, split points, dead neurons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.tasks.task import Task

ITERATIONS = 100
LONGEST_STEP = 0.5
CRITICAL = 1e-11
"""Gradient norm of the points that are kept; the certificate's own tolerance is 1e-10."""

FARTHEST = 5.0
"""Largest weight of the points that are kept: beyond, runs to infinity have small gradients everywhere."""


@eqx.filter_jit
def find_critical(task: Task, starts: Float[Array, "s P"]) -> tuple[Float[Array, "s P"], Float[Array, " s"]]:
    """Levenberg-Marquardt on ‖∇L‖² from each start: the points reached, and their gradient norms.

    The step is -H(H² + τ)⁻¹g; it is attracted by saddles as by minima. τ falls with every step that lowers the gradient's
    norm and is kept above (1e-9 ‖H‖)², so that zero modes stay where they are.
    """

    def one(start: Array) -> tuple[Array, Array]:
        def body(_: Array, carry: tuple) -> tuple:
            point, gradient, hessian, tau = carry
            values, vectors = jnp.linalg.eigh(hessian)
            floor = (1e-9 * jnp.max(jnp.abs(values))) ** 2
            step = -vectors @ (values / (values**2 + tau + floor) * (vectors.T @ gradient))
            step = step * jnp.minimum(1.0, LONGEST_STEP / jnp.linalg.norm(step))
            _, new_gradient, new_hessian = task.evaluate(point + step)
            better = jnp.linalg.norm(new_gradient) < jnp.linalg.norm(gradient)
            moved = jax.tree.map(
                lambda new, old: jnp.where(better, new, old),
                (point + step, new_gradient, new_hessian),
                (point, gradient, hessian),
            )
            return (*moved, jnp.where(better, tau * 0.1, tau * 10.0))

        _, gradient, hessian = task.evaluate(start)
        point, gradient, _, _ = jax.lax.fori_loop(0, ITERATIONS, body, (start, gradient, hessian, jnp.asarray(1e-2)))
        return point, jnp.linalg.norm(gradient)

    return jax.vmap(one)(starts)


def random_starts(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """Gaussian starts, each with its own standard deviation between 0.1 and 1."""
    return 10 ** rng.uniform(-1, 0, size=(count, 1)) * rng.normal(size=(count, size))


def kept(points: Array, norms: Array, tidy: Callable[[np.ndarray], np.ndarray], most: int) -> list[np.ndarray]:
    """At most `most` of the points that are critical, finite, not far out, and not each other up to symmetry."""
    found: dict[tuple[float, float], np.ndarray] = {}
    for point, norm in zip(np.asarray(points), np.asarray(norms), strict=True):
        if norm <= CRITICAL and np.abs(point).max() <= FARTHEST:
            point = tidy(point)
            found.setdefault((round(float(np.linalg.norm(point)), 7), round(float(np.abs(point).sum()), 7)), point)
    return list(found.values())[:most]


def dead_neuron(
    task: Task, with_new: Callable[[np.ndarray], Any], slope_at: int, dim: int, rng: np.random.Generator
) -> Any | None:
    """A network with one more neuron of zero outgoing weight, at an incoming vector where that weight feels no force.

    `with_new(w)` is the network with the neuron at w, `slope_at` the place of its outgoing weight in the flat vector. On a
    segment between two random vectors the force changes sign, or None is returned.
    """
    ends = rng.normal(size=(2, dim))
    shares = np.linspace(0.0, 1.0, 9)

    def slopes(shares: np.ndarray) -> np.ndarray:
        rows = [task.flatten(with_new(ends[0] + share * (ends[1] - ends[0]))) for share in shares]
        return np.asarray(task.gradient(jnp.stack(rows)))[:, slope_at]

    for _ in range(17):  # each round divides the interval by eight
        values = slopes(shares)
        change = np.flatnonzero(np.sign(values[:-1]) != np.sign(values[1:]))
        if not len(change):
            return None
        shares = np.linspace(shares[change[0]], shares[change[0] + 1], 9)
    best = shares[np.argmin(np.abs(slopes(shares)))]
    return with_new(ends[0] + best * (ends[1] - ends[0]))
