"""Paths between two points, relaxed by the simplified string method (E, Ren and Vanden-Eijnden 2007)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.dynamics.serial import alone
from understudy.tasks.task import Task

_STEP = 0.3
"""Step of the descent over the largest curvature along the straight path: below 2 it is stable."""


def straight(
    task: Task, first: np.ndarray, second: np.ndarray, images: int, bend: np.ndarray | None = None
) -> np.ndarray:
    """Points on the straight line between two points, on the parameter space, with a bend of that size in the
    middle."""
    share = np.linspace(0.0, 1.0, images)[:, None]
    line = (1 - share) * first + share * second
    if bend is not None:
        line = line + 4 * share * (1 - share) * bend
    return onto(task, line)


def onto(task: Task, points: np.ndarray) -> np.ndarray:
    """Points moved onto the parameter space, such as rows scaled to norm 1 on the sphere."""
    return np.asarray(_onto(task, jnp.asarray(points)))


def losses_along(task: Task, path: np.ndarray) -> np.ndarray:
    """The loss at each point of a path."""
    return np.asarray(_losses(task.prepared(jnp.asarray(path)), jnp.asarray(path)))


def relax(task: Task, path: np.ndarray, iterations: int) -> np.ndarray:
    """Let a path slide down, with its ends fixed and its points at equal distances, until it follows a valley.

    Every point takes a step of gradient descent. Then the points are moved along the path to equal distances. Where the
    path is at rest, the gradient is parallel to it, and its highest points are saddles.
    """
    prepared = task.prepared(jnp.asarray(path))
    return np.asarray(alone(_relax, prepared, jnp.asarray(path), jnp.asarray(iterations)))


@eqx.filter_jit
def _losses(task: Task, path: Array) -> Array:
    return jax.vmap(task.value)(path)


@eqx.filter_jit
def _onto(task: Task, path: Array) -> Array:
    return jax.vmap(lambda x: task.retract(x, jnp.zeros_like(x)))(path)


@eqx.filter_jit
def _relax(task: Task, path: Float[Array, "m P"], iterations: Array) -> Float[Array, "m P"]:
    curvature = jax.lax.map(lambda x: jnp.max(jnp.abs(jnp.linalg.eigvalsh(task.evaluate(x).hessian))), path)
    step = _STEP / jnp.max(jnp.where(jnp.isfinite(curvature), curvature, 1.0))

    def slide(x: Array) -> Array:
        gradient = task.value_and_gradient(x)[1]
        return task.retract(x, -step * jnp.where(jnp.isfinite(gradient), gradient, 0.0))

    def body(_: int, now: Array) -> Array:
        moved = jax.vmap(slide)(now).at[0].set(path[0]).at[-1].set(path[-1])
        gaps = jnp.linalg.norm(jnp.diff(moved, axis=0), axis=1)
        lengths = jnp.concatenate([jnp.zeros(1), jnp.cumsum(gaps)])
        wanted = jnp.linspace(0.0, lengths[-1], now.shape[0])
        even = jax.vmap(lambda column: jnp.interp(wanted, lengths, column), in_axes=1, out_axes=1)(moved)
        even = jax.vmap(lambda x: task.retract(x, jnp.zeros_like(x)))(even)
        return even.at[0].set(path[0]).at[-1].set(path[-1])

    return jax.lax.fori_loop(0, iterations, body, path)
