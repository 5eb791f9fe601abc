"""Changing from the flow to Newton's method, but only where a check shows that both have the same limit.

Let δ = √(gᵀH⁻¹g) be the Newton decrement at θ. If H(θ + s) ⪰ ½H(θ) for every s in the ellipsoid ‖s‖_H ≤ 4δ, then on its
boundary L(θ + s) ≥ L(θ) - δ‖s‖_H + ¼‖s‖²_H ≥ L(θ), so the gradient flow, along which L falls, cannot leave the
ellipsoid. L is strictly convex in it, so flow and Newton converge to its only minimum. The condition is checked where
it is most likely to fail: at the ends of the ellipsoid along ± the Newton direction and along ± the softest directions
of H. The curvature along the line must not have more than doubled there, either. Otherwise an end beyond another well,
on a rising wall, would hide that well. Directions along which a continuous symmetry keeps the loss constant are removed
first (H is lifted along them).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from understudy.dynamics.serial import alone
from understudy.kept_programs import kept
from understudy.tasks.task import Task

SOFT_DIRECTIONS = 4
_SMALL = 1e-4
"""Largest entry of a Hessian below which the loss is in small units."""

_NEWTON_STEPS, _STALLS = 12, 3
"""Newton's steps at most, and those that may fail to halve the gradient: the point is at rounding."""


class Jump(NamedTuple):
    """An attempt to jump from the flow at `departure`: whether it was justified, and where Newton's method ended.

    `decrement` is δ, and `distance` the Euclidean length of the jump. `ratio` says how far inside the ellipsoid the end
    lies (‖end - departure‖_H / 4δ, at most 1 for a justified jump).
    """

    justified: Bool[Array, ""]
    end: Float[Array, " P"]
    loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    decrement: Float[Array, ""]
    distance: Float[Array, ""]
    ratio: Float[Array, ""]

    def evidence(self, gradient_norm: float) -> dict[str, float]:
        """The numbers to store for a jump from a point with this gradient norm."""
        numbers = {"decrement": self.decrement, "distance": self.distance, "ratio": self.ratio}
        return {"gradient_norm": float(gradient_norm), **{name: float(x) for name, x in numbers.items()}}


def lifted_hessian(task: Task, vector: Float[Array, " P"]) -> tuple[Array, Array, Array]:
    """Loss, gradient, and the Hessian raised along the task's symmetries at this point."""
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

    def iterate(_: Array, basis: Array) -> Array:
        return jnp.linalg.qr(_solve(factor, basis))[0]

    basis = jax.lax.fori_loop(0, 8, iterate, jnp.linalg.qr(start)[0])
    curvature, mix = jnp.linalg.eigh(basis.T @ hessian @ basis)
    return (basis @ mix).T, curvature


class _Search(NamedTuple):
    """The state that `attempt` carries from one evaluation to the next."""

    hessian: Array
    ends: Array
    decrement: Array
    convex: Array
    point: Array
    best: Array
    loss: Array
    norm: Array
    stalls: Array


def attempt(task: Task, departure: Float[Array, " P"]) -> Jump:
    """Check the condition at `departure` and, if it holds, follow Newton's method to rounding.

    A single loop visits first the departure, then the ends of the ellipsoid, then Newton's iterates. Each pass
    evaluates the task at one point and factorises one matrix, so that the task's Hessian is compiled once.
    """
    size = departure.shape[0]
    soft = min(SOFT_DIRECTIONS, size)
    ends = 2 + 2 * soft

    def begin(search: _Search, point: Array, loss: Array, gradient: Array, hessian: Array, factor: Array) -> _Search:
        move = -_solve(factor, gradient)
        decrement = jnp.sqrt(jnp.maximum(-gradient @ move, 0.0))
        directions, curvature = _soft_directions(factor, hessian)
        reach = 4 * decrement * directions / jnp.sqrt(jnp.maximum(curvature, 1e-300))[:, None]
        offsets = jnp.concatenate([4 * move[None], -4 * move[None], reach, -reach])
        positive = _finite(factor) & jnp.isfinite(decrement)
        return search._replace(hessian=hessian, ends=departure[None] + offsets, decrement=decrement, convex=positive)

    def iterate(search: _Search, point: Array, loss: Array, gradient: Array, hessian: Array, factor: Array) -> _Search:
        norm = jnp.linalg.norm(gradient)
        better = norm < search.norm
        move = _solve(factor, gradient)
        return search._replace(
            best=jnp.where(better, search.point, search.best),
            loss=jnp.where(better, loss, search.loss),
            norm=jnp.minimum(norm, search.norm),
            stalls=search.stalls + (norm > search.norm / 2),
            point=jnp.where(jnp.all(jnp.isfinite(move)), search.point - move, search.point),
        )

    def look(search: _Search, point: Array, loss: Array, gradient: Array, hessian: Array, factor: Array) -> _Search:
        offset = point - departure
        doubled = offset @ (hessian @ offset) > 2 * offset @ (search.hessian @ offset)
        return search._replace(convex=search.convex & _finite(factor) & ~doubled)

    def body(carry: tuple[Array, _Search]) -> tuple[Array, _Search]:
        i, search = carry
        looking = (i > 0) & (i <= ends)
        point = jnp.where(looking, search.ends[jnp.clip(i - 1, 0, ends - 1)], search.point)
        loss, gradient, hessian = lifted_hessian(task, point)
        matrix = jnp.where(looking, hessian - search.hessian / 2, hessian)
        factor = jax.lax.linalg.cholesky(matrix, symmetrize_input=False)
        phase = jnp.where(i == 0, 0, jnp.where(looking, 1, 2))
        return i + 1, jax.lax.switch(phase, [begin, look, iterate], search, point, loss, gradient, hessian, factor)

    def condition(carry: tuple[Array, _Search]) -> Array:
        return (carry[0] < 1 + ends + _NEWTON_STEPS) & carry[1].convex & (carry[1].stalls < _STALLS)

    _, last = jax.lax.while_loop(condition, body, (jnp.asarray(0), _before_search(departure, ends)))
    return _judged(last, departure)


def _before_search(departure: Array, ends: int) -> _Search:
    size, nan = departure.shape[0], jnp.asarray(math.nan)
    return _Search(
        hessian=jnp.zeros((size, size)),
        ends=jnp.zeros((ends, size)),
        decrement=nan,
        convex=jnp.asarray(True),
        point=departure,
        best=departure,
        loss=nan,
        norm=jnp.asarray(math.inf),
        stalls=jnp.asarray(0),
    )


def _judged(last: _Search, departure: Array) -> Jump:
    """Whether the search has ended at rounding, inside the ellipsoid on which the condition was checked."""
    travelled = last.best - departure
    length = jnp.sqrt(jnp.maximum(travelled @ (last.hessian @ travelled), 0.0))
    ratio = length / jnp.maximum(4 * last.decrement, 1e-300)
    # At the rounding level of the gradient both are noise, and a jump of that size needs no ellipsoid.
    inside = (ratio <= 1) | (jnp.linalg.norm(travelled) <= 1e-12 * (1 + jnp.linalg.norm(last.best)))
    # Newton's method must have reached rounding, as the certificate defines it: in twelve steps it may overshoot.
    largest = jnp.abs(last.hessian).max()
    rounding = 1e3 * jnp.finfo(float).eps * largest * (1 + jnp.abs(last.best).max())
    # Small losses have small Hessians: then a gradient of 1e-11 is not small.
    unit = jnp.where(largest < _SMALL, largest, 1.0)
    good = last.convex & inside & (last.norm <= jnp.maximum(1e-11 * unit, rounding))
    return Jump(good, last.best, last.loss, last.norm, last.decrement, jnp.linalg.norm(travelled), ratio)


def _finite(factor: Array) -> Array:
    """Whether Cholesky's method succeeded, so that the matrix is positive definite."""
    return jnp.all(jnp.isfinite(jnp.diagonal(factor)))


@kept
def attempt_from(task: Task, departure: Float[Array, " P"]) -> Jump:
    """`attempt` in the task's own coordinates around the point, compiled."""
    local, origin = task.chart(departure)
    jump = attempt(local, origin)
    return jump._replace(end=local.point(jump.end))


def justified(task: Task, vectors: np.ndarray, rows: Sequence[int]) -> dict[int, Jump]:
    """The justified jumps from these rows of `vectors`, by row."""
    if not rows:
        return {}
    task = task.prepared(vectors[rows])
    tried = {row: alone(attempt_from, task, vectors[row]) for row in rows}
    return {row: jax.tree.map(np.asarray, j) for row, j in tried.items() if bool(j.justified)}
