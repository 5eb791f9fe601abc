"""Leaving the flow for Newton's method, but only where the flow can be shown to end where Newton does.

Let δ = √(gᵀH⁻¹g) be the Newton decrement at θ. If H(θ + s) ⪰ ½H(θ) for every s in the ellipsoid ‖s‖_H ≤ 4δ, then on its
boundary L(θ + s) ≥ L(θ) - δ‖s‖_H + ¼‖s‖²_H ≥ L(θ), so the gradient flow, along which L falls, cannot leave the ellipsoid; L is
strictly convex in it, so flow and Newton converge to the same, only minimum there. The condition is checked where it
is most likely to fail: at the ends of the ellipsoid along ± the Newton direction and along ± the softest directions of H.
Directions along which a continuous symmetry keeps the loss constant are taken out first (H is lifted along them).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from understudy.tasks.task import Task

SOFT_DIRECTIONS = 4
_NEWTON_STEPS = 12


class Jump(NamedTuple):
    """An attempt to leave the flow at `departure`: whether it was justified, and where Newton's method ended.

    `decrement` is δ; `distance` the Euclidean length of the jump; `ratio` how far inside the ellipsoid the end lies
    (‖end - departure‖_H / 4δ, at most 1 for a justified jump).
    """

    justified: Bool[Array, ""]
    end: Float[Array, " P"]
    loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    decrement: Float[Array, ""]
    distance: Float[Array, ""]
    ratio: Float[Array, ""]


def lifted_hessian(task: Task, vector: Float[Array, " P"]) -> tuple[Array, Array, Array]:
    """Loss, gradient, and the Hessian raised along the task's symmetries at that point."""
    loss, gradient, hessian = task.evaluate(vector)
    tangents = task.symmetry_tangents(vector)
    if tangents.shape[0] == 0:
        return loss, gradient, hessian
    scale = jnp.trace(jnp.abs(hessian)) / hessian.shape[0]
    lengths = jnp.linalg.norm(tangents, axis=1, keepdims=True)
    unit = tangents / jnp.where(lengths > 0, lengths, 1.0)
    return loss, gradient, hessian + scale * unit.T @ unit


def _solve(factor: Array, b: Array) -> Array:
    columns = b[:, None] if b.ndim == 1 else b
    forward = jax.lax.linalg.triangular_solve(factor, columns, left_side=True, lower=True)
    back = jax.lax.linalg.triangular_solve(factor, forward, left_side=True, lower=True, transpose_a=True)
    return back[:, 0] if b.ndim == 1 else back


def _soft_directions(factor: Array, hessian: Array) -> tuple[Array, Array]:
    """The softest directions of H and their curvatures, by inverse subspace iteration with its factor."""
    size = hessian.shape[0]
    count = min(SOFT_DIRECTIONS, size)
    start = jnp.cos(jnp.arange(size * count, dtype=float).reshape(size, count) * 1.7 + 0.3)

    def iterate(_: int, basis: Array) -> Array:
        return jnp.linalg.qr(_solve(factor, basis))[0]

    basis = jax.lax.fori_loop(0, 8, iterate, jnp.linalg.qr(start)[0])
    curvature, mix = jnp.linalg.eigh(basis.T @ hessian @ basis)
    return (basis @ mix).T, curvature


def _positive(matrix: Array) -> Array:
    factor = jax.lax.linalg.cholesky(matrix, symmetrize_input=False)
    return jnp.all(jnp.isfinite(jnp.diagonal(factor)))


def newton(task: Task, vector: Float[Array, " P"], steps: int = _NEWTON_STEPS) -> tuple[Array, Array, Array]:
    """Newton's method from a point near a non-degenerate minimum; the best point, its loss and gradient norm."""

    def iterate(_: int, carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        point, best, best_loss, best_norm = carry
        loss, gradient, hessian = lifted_hessian(task, point)
        norm = jnp.linalg.norm(gradient)
        better = norm < best_norm
        best, best_loss = jnp.where(better, point, best), jnp.where(better, loss, best_loss)
        factor = jax.lax.linalg.cholesky(hessian, symmetrize_input=False)
        move = _solve(factor, gradient)
        point = jnp.where(jnp.all(jnp.isfinite(move)), point - move, point)
        return point, best, best_loss, jnp.minimum(norm, best_norm)

    start = (vector, vector, jnp.asarray(jnp.inf), jnp.asarray(jnp.inf))
    _, best, loss, norm = jax.lax.fori_loop(0, steps, iterate, start)
    return best, loss, norm


def attempt(task: Task, departure: Float[Array, " P"]) -> Jump:
    """Check the condition at `departure` and, if it holds, follow Newton's method to rounding."""
    _, gradient, hessian = lifted_hessian(task, departure)
    factor = jax.lax.linalg.cholesky(hessian, symmetrize_input=False)
    move = -_solve(factor, gradient)
    decrement = jnp.sqrt(jnp.maximum(-gradient @ move, 0.0))
    positive = jnp.all(jnp.isfinite(jnp.diagonal(factor))) & jnp.isfinite(decrement)

    def examine(_: None) -> Jump:
        directions, curvature = _soft_directions(factor, hessian)
        reach = 4 * decrement * directions / jnp.sqrt(jnp.maximum(curvature, 1e-300))[:, None]
        ends = jnp.concatenate([4 * move[None], -4 * move[None], reach, -reach])

        def convex_at(offset: Array) -> Array:
            return _positive(lifted_hessian(task, departure + offset)[2] - hessian / 2)

        convex = jnp.all(jax.lax.map(convex_at, ends))

        def go(_: None) -> Jump:
            end, loss, norm = newton(task, departure)
            travelled = end - departure
            length = jnp.sqrt(jnp.maximum(travelled @ (hessian @ travelled), 0.0))
            ratio = length / jnp.maximum(4 * decrement, 1e-300)
            # At the rounding level of the gradient both are noise, and a jump of that size needs no ellipsoid.
            inside = (ratio <= 1) | (jnp.linalg.norm(travelled) <= 1e-12 * (1 + jnp.linalg.norm(end)))
            good = inside & jnp.isfinite(norm)
            return Jump(good, end, loss, norm, decrement, jnp.linalg.norm(travelled), ratio)

        return jax.lax.cond(convex, go, lambda _: _refused(departure, decrement), None)

    return jax.lax.cond(positive, examine, lambda _: _refused(departure, decrement), None)


def _refused(departure: Array, decrement: Array) -> Jump:
    nan = jnp.asarray(math.nan)
    return Jump(jnp.asarray(False), departure, nan, nan, decrement, nan, nan)


@eqx.filter_jit
def attempt_all(task: Task, departures: Float[Array, "lanes P"]) -> Jump:
    """`attempt` for several points, one after the other."""
    return jax.lax.map(lambda departure: attempt(task, departure), departures)
