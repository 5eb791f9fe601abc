"""Lowest eigenpairs of a Hessian that is too large to be built."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.tasks.task import Task


@eqx.filter_jit
def hessian_product(task: Task, vector: Float[Array, " P"], direction: Float[Array, " P"]) -> Float[Array, " P"]:
    """H(θ) v, compiled; see `Task.hessian_product`."""
    return task.hessian_product(vector, direction)


def lowest_eigenpairs(
    task: Task, vector: Float[Array, " P"], count: int = 6, *, tolerance: float = 1e-10
) -> tuple[np.ndarray, np.ndarray]:
    """The `count` lowest eigenvalues (ascending) and eigenvectors (columns), by Lanczos (ARPACK) on Hessian products.

    Where automatic differentiation of a kinked loss gives NaN, products are central differences of the gradient.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh  # slow to import, and needed only for large tasks

    theta = jnp.asarray(vector, float)
    task = task.prepared(theta)
    probe = np.asarray(hessian_product(task, theta, jnp.ones_like(theta)))
    exact = bool(np.all(np.isfinite(probe)))

    def product(direction: np.ndarray) -> np.ndarray:
        v = jnp.asarray(np.ravel(direction))
        if exact:
            return np.asarray(hessian_product(task, theta, v))
        step = 1e-5 * (1 + float(jnp.abs(theta).max())) / float(jnp.linalg.norm(v))
        return np.asarray(task.gradient(theta + step * v) - task.gradient(theta - step * v)) / (2 * step)

    size = theta.shape[0]
    operator = LinearOperator((size, size), matvec=product, dtype=float)
    start = np.cos(np.arange(size) * 1.7 + 0.3)
    basis = min(size, max(4 * count + 1, 60))
    values, vectors = eigsh(operator, k=min(count, size - 1), which="SA", v0=start, ncv=basis, tol=tolerance)
    order = np.argsort(values)
    return values[order], vectors[:, order]
