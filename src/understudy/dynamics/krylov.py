"""Linear systems with Hessians that are never built: exact products, conjugate gradients, blocks as preconditioner.

The systems are (s I + H(θ) - w H(φ) + τ UᵀU) x = b. The preconditioner is the inverse of the diagonal blocks of s I + H
on `Task.hessian_groups`, taken at an earlier point.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.dynamics.programs import Kind, put_together, taken_apart
from understudy.tasks.task import Task

MOST_ITERATIONS = 300


class Solution(NamedTuple):
    """x, the number of iterations, whether they converged, and whether no direction of negative curvature was met."""

    x: np.ndarray
    iterations: int
    converged: bool
    positive: bool


class _Programs(NamedTuple):
    slope: Callable[..., Any]
    inverse: Callable[..., Any]
    product: Callable[..., Any]
    solve: Callable[..., Any]
    tangents: Callable[..., Any]


class Curvature:
    """Gradients and Hessian products of one task, and solves with them, compiled once per kind of task."""

    def __init__(self, task: Task):
        self.task = task
        self.leaves, kind = taken_apart(task)
        self._do = _compiled(kind)
        self._nothing = np.zeros((0, task.size))

    def slope(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and gradient."""
        loss, gradient = self._do.slope(self.leaves, point)
        return float(loss), np.asarray(gradient)

    def inverse(self, point: np.ndarray, shift: float) -> Array:
        """The inverses of the diagonal blocks of shift·I + H, made positive where they are not."""
        return self._do.inverse(self.leaves, point, shift)

    def product(self, point: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """H times each row of `directions`."""
        return np.asarray(self._do.product(self.leaves, point, directions))

    def tangents(self, point: np.ndarray) -> np.ndarray:
        """Unit vectors along which symmetries keep the loss constant."""
        return np.asarray(self._do.tangents(self.leaves, point))

    def solve(
        self,
        point: np.ndarray,
        inverse: Array,
        right: np.ndarray,
        *,
        shift: float = 0.0,
        weight: np.ndarray | None = None,
        tolerance: float,
        minus: tuple[np.ndarray, float] | None = None,
        lift: tuple[np.ndarray, float] | None = None,
    ) -> Solution:
        """Solve (shift + H(point) - w H(φ) + τ UᵀU) x = right, with `minus` (φ, w) and `lift` (U, τ).

        It ends when the preconditioned residual, times `weight`, has a root mean square of at most `tolerance`; without
        a weight, `tolerance` is relative to the first one.
        """
        other, share = (point, 0.0) if minus is None else minus
        rows, height = (self._nothing, 0.0) if lift is None else lift
        relative = weight is None
        scale = np.ones(len(point)) if weight is None else weight
        x, count, converged, positive = self._do.solve(
            self.leaves, point, other, share, shift, rows, height, inverse, right, scale, tolerance, relative
        )
        return Solution(np.asarray(x), int(count), bool(converged), bool(positive))


def preconditioned_eigenpairs(
    curvature: Curvature,
    point: np.ndarray,
    inverse: Array,
    count: int,
    tolerance: float,
    iterations: int,
    lift: tuple[np.ndarray, float] | None = None,
    near: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The lowest eigenvalues of the Hessian, their eigenvectors as rows, and the norms of the residuals.

    By LOBPCG (Knyazev 2001) with the inverse blocks as preconditioner. Within the norm of its residual of each value
    there is an eigenvalue. `near`: a direction that is known to be soft.
    """
    from scipy.sparse.linalg import LinearOperator, lobpcg  # slow to import

    size, groups = len(point), curvature.task.hessian_groups
    assert groups is not None
    blocks = np.asarray(inverse)

    def multiply(columns: np.ndarray) -> np.ndarray:
        parts = []
        for first in range(0, columns.shape[1], count):  # small problems are asked for all columns at once
            part = columns[:, first : first + count].T
            rows = np.zeros((count, size))  # always this many: every other number of rows would be another program
            rows[: len(part)] = part
            parts.append(curvature.product(point, rows)[: len(part)])
        found = np.concatenate(parts).T
        return found if lift is None else found + lift[1] * (lift[0].T @ (lift[0] @ columns))

    def precondition(columns: np.ndarray) -> np.ndarray:
        found = np.empty(columns.shape)
        found[groups] = np.einsum("gab,gbm->gam", blocks, columns[groups])
        return found

    start = precondition(np.random.default_rng(0).standard_normal((size, count)))
    if near is not None and np.any(near):
        start[:, 0] = near / np.linalg.norm(near)
    operator = LinearOperator((size, size), matvec=multiply, matmat=multiply, dtype=float)
    helper = LinearOperator((size, size), matvec=precondition, matmat=precondition, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it has not converged: residuals are returned
        values, vectors = lobpcg(operator, start, M=helper, tol=tolerance, maxiter=iterations, largest=False)
    order = np.argsort(values)
    values, vectors = values[order], vectors[:, order]
    residuals = np.linalg.norm(multiply(vectors) - vectors * values[None], axis=0)
    return values, vectors.T, residuals


def precondition(groups: np.ndarray, inverse: Float[Array, "groups b b"], r: Array) -> Array:
    """Apply the inverse blocks to a vector, traceable."""
    back = np.argsort(groups.ravel())
    return jnp.einsum("gab,gb->ga", inverse, r[groups]).ravel()[back]


@lru_cache(maxsize=32)
def _compiled(kind: Kind) -> _Programs:
    def task_of(arrays: list[Any]) -> Task:
        return put_together(kind, arrays)

    def slope(arrays: list[Any], point: Array) -> tuple[Array, Array]:
        return task_of(arrays).value_and_gradient(point)

    def linear(arrays: list[Any], point: Array) -> Callable[[Array], Array]:
        return task_of(arrays).linearised(point)[1]

    def inverse(arrays: list[Any], point: Array, shift: Array) -> Array:
        return inverse_blocks(task_of(arrays).hessian_blocks(point), shift)

    def product(arrays: list[Any], point: Array, directions: Array) -> Array:
        return jax.lax.map(linear(arrays, point), directions)

    def tangents(arrays: list[Any], point: Array) -> Array:
        found = task_of(arrays).symmetry_tangents(point)
        lengths = jnp.linalg.norm(found, axis=1, keepdims=True)
        return found / jnp.where(lengths > 0, lengths, 1.0)

    def solve(
        arrays: list[Any], point: Array, other: Array, share: Array, shift: Array, rows: Array, height: Array,
        blocks: Array, right: Array, scale: Array, tolerance: Array, relative: Array,
    ) -> tuple[Array, Array, Array, Array]:  # fmt: skip
        groups = task_of(arrays).hessian_groups
        assert groups is not None
        here, there = linear(arrays, point), linear(arrays, other)

        def apply(v: Array) -> Array:
            less = jax.lax.cond(share != 0, lambda: share * there(v), lambda: jnp.zeros_like(v))
            return shift * v + here(v) - less + height * (rows.T @ (rows @ v))

        return conjugate_gradients(apply, lambda r: precondition(groups, blocks, r), right, scale, tolerance, relative)

    return _Programs(*(jax.jit(f) for f in (slope, inverse, product, solve, tangents)))


def inverse_blocks(blocks: Float[Array, "groups b b"], shift: Array) -> Float[Array, "groups b b"]:
    """The inverses of the blocks plus shift·I, made positive where they are not; traceable."""
    eye = jnp.eye(blocks.shape[1])
    matrices = (blocks + jnp.swapaxes(blocks, 1, 2)) / 2 + shift * eye[None]
    factors = jax.lax.linalg.cholesky(matrices, symmetrize_input=False)
    roots = jax.lax.linalg.triangular_solve(factors, jnp.broadcast_to(eye, blocks.shape), left_side=True, lower=True)
    found = jnp.swapaxes(roots, 1, 2) @ roots
    good = jnp.all(jnp.isfinite(found), axis=(1, 2))[:, None, None]
    # A block that is not positive definite: only the sizes of its diagonal are used.
    sizes = jnp.abs(jnp.diagonal(matrices, axis1=1, axis2=2))
    largest = sizes.max(axis=1, keepdims=True)
    rough = eye[None] / jnp.where(largest > 0, jnp.maximum(sizes, 1e-3 * largest), 1.0)[:, None, :]
    return jnp.where(good, found, rough)


def conjugate_gradients(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    scale: Array,
    tolerance: Array,
    relative: Array,
) -> tuple[Array, Array, Array, Array]:
    """The fields of a `Solution` of apply(x) = right, traceable; see `Curvature.solve`."""

    def size(z: Array) -> Array:
        scaled = z * scale
        return jnp.sqrt(scaled @ scaled / z.size)  # a product: XLA computes long sums in several passes

    first = precondition(right)
    bound = jnp.where(relative, tolerance * size(first), tolerance)

    def condition(state: tuple) -> Array:
        _, _, z, _, _, count, positive = state
        return (count < MOST_ITERATIONS) & positive & (size(z) > bound)

    def body(state: tuple) -> tuple:
        x, r, z, p, rz, count, _ = state
        along = apply(p)
        curvature = p @ along
        positive = curvature > 0
        step = jnp.where(positive, rz / jnp.where(positive, curvature, 1.0), 0.0)
        x, r = x + step * p, r - step * along
        z = precondition(r)
        new = r @ z
        return x, r, z, z + (new / rz) * p, new, count + 1, positive

    zero = jnp.zeros_like(right)
    begin = (zero, right, first, first, right @ first, jnp.asarray(0), jnp.asarray(True))
    x, _, z, _, _, count, positive = jax.lax.while_loop(condition, body, begin)
    return x, count, size(z) <= bound, positive
