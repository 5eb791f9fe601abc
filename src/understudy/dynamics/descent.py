"""Descent to any minimum, not that of the flow: batched Adam, then a limited-memory quasi-Newton method.

Both use only the value and the gradient of a task, so they work for weights and for representations.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from understudy.dynamics.optimizers import adam
from understudy.tasks.regularised import Regularised
from understudy.tasks.task import Task


@eqx.filter_jit
def descend(
    task: Task, vectors: Float[Array, "seeds P"], steps: int | Array = 2000, rate: float = 1e-2
) -> tuple[Float[Array, "seeds P"], Float[Array, " seeds"]]:
    """Full-batch Adam on all starts at once. The rate falls like ½(1 + cos), and the best point of each run is kept.

    Returns the points and their losses.
    """
    optimizer = adam(rate)
    slope = jax.vmap(task.value_and_gradient)
    count = jnp.asarray(steps)

    def body(i: Array, carry: tuple) -> tuple:
        points, state, best, lowest = carry
        losses, gradients = slope(points)
        better = losses < lowest
        best, lowest = jnp.where(better[:, None], points, best), jnp.where(better, losses, lowest)
        moved, state = jax.vmap(optimizer.step)(points, state, gradients)
        share = 0.5 * (1 + jnp.cos(jnp.pi * i / count))
        return points + share * (moved - points), state, best, lowest

    start = (vectors, jax.vmap(optimizer.init)(vectors), vectors, jnp.full(vectors.shape[0], jnp.inf))
    points, _, best, lowest = jax.lax.fori_loop(0, count, body, start)
    losses = jax.vmap(task.value)(points)
    better = losses < lowest
    return jnp.where(better[:, None], points, best), jnp.where(better, losses, lowest)


@eqx.filter_jit
def descend_to_least_norm(
    task: Regularised,
    vectors: Float[Array, "seeds P"],
    *,
    first_penalty: float = 1.0,
    steps: int = 20_000,
    rate: float = 0.02,
) -> tuple[Float[Array, "seeds P"], Float[Array, " seeds"]]:
    """Adam on all starts at once while λ falls to the task's λ. A large λ at the start lets neurons rearrange cheaply.

    λ falls geometrically from `first_penalty` over the first 80 % of the steps. The rate is constant over the first
    half and then follows a cosine down to `rate`/10⁴. As the task's λ → 0, the minimisers approach networks of least
    norm that fit the data, and their norm approaches the representation cost from below. Returns the points and their
    losses.
    """
    unit = adam(1.0, beta2=0.99, epsilon=1e-10)  # a step of rate 1, multiplied by the current rate below

    def body(i: Array, carry: tuple) -> tuple:
        points, state = carry
        share = i / steps
        penalty = first_penalty * (task.penalty / first_penalty) ** jnp.minimum(1.0, share / 0.8)
        now = eqx.tree_at(lambda t: t.penalty, task, penalty)
        moved, state = jax.vmap(unit.step)(points, state, jax.vmap(jax.grad(now.value))(points))
        slowed = 0.5 * (1 + jnp.cos(2 * jnp.pi * (share - 0.5))) + 1e-4
        return points + rate * jnp.where(share < 0.5, 1.0, slowed) * (moved - points), state

    points, _ = jax.lax.fori_loop(0, steps, body, (vectors, jax.vmap(unit.init)(vectors)))
    return points, jax.vmap(task.value)(points)


@eqx.filter_jit
def _slope(task: Task, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
    return task.value_and_gradient(vector)


def quasi_newton(
    task: Task, vector: Float[Array, " P"], *, iterations: int = 5000, memory: int = 30, tolerance: float = 1e-12
) -> tuple[Float[Array, " P"], float, float]:
    """L-BFGS (SciPy's) down to rounding or `tolerance` on the largest gradient entry.

    Returns the point, its loss and its gradient norm. It works for losses with kinks, but ends near the kinks rather
    than on them; see `settle`.
    """

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = _slope(task, jnp.asarray(x))
        return float(loss), np.asarray(gradient)

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": memory, "ftol": 0.0, "gtol": tolerance}
    found = minimize(both, np.asarray(vector), jac=True, method="L-BFGS-B", options=options)
    point = jnp.asarray(found.x)
    loss, gradient = _slope(task, point)
    return point, float(loss), float(jnp.linalg.norm(gradient))
