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

ITERATIONS, POLISHING = 100, 8
LONGEST_STEP = 0.5
CRITICAL = 1e-11
"""Gradient norm of the points that are kept; the certificate's own tolerance is 1e-10."""

FARTHEST = 10.0
"""Largest weight of the points that are kept: beyond, runs to infinity have small gradients everywhere."""


@eqx.filter_jit
def find_critical(
    task: Task, starts: Float[Array, "s P"], iterations: int = ITERATIONS, *, downhill: bool = False
) -> tuple[Float[Array, "s P"], Float[Array, " s"]]:
    """Critical points from these starts, and their gradient norms.

    Levenberg-Marquardt on ‖∇L‖², which is attracted by saddles as by minima: the step is -H(H² + τ²)⁻¹g, τ falls with
    every step that lowers the gradient's norm. `downhill`: -(|H| + τ)⁻¹g, for steps that lower the loss. τ is kept
    above 1e-12 ‖H‖, so that zero modes stay where they are; with few iterations, to polish, it begins there.
    """

    def one(start: Array) -> tuple[Array, Array]:
        def body(_: Array, carry: tuple) -> tuple:
            (point, loss, gradient, hessian), tau = carry
            values, vectors = jnp.linalg.eigh(hessian)
            shift = tau + 1e-12 * jnp.max(jnp.abs(values))
            inverse = 1 / (jnp.abs(values) + shift) if downhill else values / (values**2 + shift**2)
            step = -vectors @ (inverse * (vectors.T @ gradient))
            step = step * jnp.minimum(1.0, LONGEST_STEP / jnp.maximum(jnp.linalg.norm(step), 1e-300))
            new = (point + step, *task.evaluate(point + step))
            flatter = jnp.linalg.norm(new[2]) < jnp.linalg.norm(gradient)
            better = (new[1] < loss) | (flatter & (new[1] < loss + 1e-14)) if downhill else flatter
            kept = jax.tree.map(lambda x, y: jnp.where(better, x, y), new, (point, loss, gradient, hessian))
            return kept, jnp.where(better, tau * 0.3, tau * 4.0)

        first = (start, *task.evaluate(start))
        begin = jnp.asarray(0.1 if iterations == ITERATIONS else 0.0)
        (point, _, gradient, _), _ = jax.lax.fori_loop(0, iterations, body, (first, begin))
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

    `with_new(w)` is the network with the neuron at w, `slope_at` the place of its outgoing weight in the flat vector.
    On a segment between two random vectors the force changes sign, or None is returned.
    """
    ends = rng.normal(size=(2, dim))
    shares = np.linspace(0.0, 1.0, 9)

    def slopes(shares: np.ndarray) -> np.ndarray:
        rows = [task.flatten(with_new(ends[0] + share * (ends[1] - ends[0]))) for share in shares]
        return np.asarray(_gradients(task, jnp.stack(rows)))[:, slope_at]

    for _ in range(17):  # each round divides the interval by eight
        values = slopes(shares)
        change = np.flatnonzero(np.sign(values[:-1]) != np.sign(values[1:]))
        if not len(change):
            return None
        shares = np.linspace(shares[change[0]], shares[change[0] + 1], 9)
    best = shares[np.argmin(np.abs(slopes(shares)))]
    return with_new(ends[0] + best * (ends[1] - ends[0]))


@eqx.filter_jit
def _gradients(task: Task, vectors: Float[Array, "s P"]) -> Float[Array, "s P"]:
    return jax.vmap(lambda v: task.value_and_gradient(v)[1])(vectors)
