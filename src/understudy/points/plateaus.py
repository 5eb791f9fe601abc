"""The critical point behind a plateau: Newton's method from a point at which a run is slow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.tasks.task import Task


def nearest_critical(task: Task, vector: Float[Array, " P"] | np.ndarray, steps: int = 120) -> tuple[np.ndarray, float]:
    """A critical point of any kind near a point, by Newton's method on the gradient, and its gradient norm.

    Steps are least-squares steps of length at most 0.1. So saddles and degenerate points attract like minima do. (At
    degenerate points the distance falls by a third per step, not quadratically.)
    """
    end, norm = _newton(task, jnp.asarray(vector), steps)
    return np.asarray(end), float(norm)


@eqx.filter_jit
def _newton(task: Task, vector: Array, steps: int) -> tuple[Array, Array]:
    def iterate(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        point, best, least = carry
        local, origin = task.chart(point)
        _, gradient, hessian = local.evaluate(origin)
        norm = jnp.linalg.norm(gradient)
        best, least = jnp.where(norm < least, point, best), jnp.minimum(norm, least)
        values, vectors = jnp.linalg.eigh(hessian)
        # Directions softer than this are flat to rounding. A step along them would follow noise.
        soft = jnp.abs(values) <= 1e-13 * jnp.max(jnp.abs(values))
        step = -vectors @ jnp.where(soft, 0.0, vectors.T @ gradient / jnp.where(soft, 1.0, values))
        length = jnp.linalg.norm(step)
        return local.point(origin + step * jnp.minimum(1.0, 0.1 / jnp.maximum(length, 1e-300))), best, least

    _, best, least = jax.lax.fori_loop(0, steps, iterate, (vector, vector, jnp.asarray(jnp.inf)))
    return best, least
