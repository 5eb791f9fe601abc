"""Leaving the flow for Newton's method, but only where the flow can be shown to end where Newton does.

Let δ = √(gᵀH⁻¹g) be the Newton decrement at θ. If H(θ + s) ⪰ ½H(θ) for every s in the ellipsoid ‖s‖_H ≤ 4δ, then on its
boundary L(θ + s) ≥ L(θ) - δ‖s‖_H + ¼‖s‖²_H ≥ L(θ), so the gradient flow, along which L falls, cannot leave the
ellipsoid; L is strictly convex in it, so flow and Newton converge to the same, only minimum there. The condition is
checked where it is most likely to fail: at the ends of the ellipsoid along ± the Newton direction and along ± the
softest directions of H. There the curvature along the line must not have more than doubled either: ends that lie beyond
another well, on a rising wall, would otherwise hide it.
Directions along which a continuous symmetry keeps the loss constant are taken out first (H is lifted along them).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.linalg import lapack

from understudy.tasks.evaluation import evaluate_at, tangents_at
from understudy.tasks.task import Task

SOFT_DIRECTIONS = 4
_NEWTON_STEPS = 12


class Jump(NamedTuple):
    """An attempt to leave the flow at `departure`: whether it was justified, and where Newton's method ended.

    `decrement` is δ; `distance` the Euclidean length of the jump; `ratio` how far inside the ellipsoid the end lies
    (‖end - departure‖_H / 4δ, at most 1 for a justified jump).
    """

    justified: bool
    end: np.ndarray
    loss: float
    gradient_norm: float
    decrement: float
    distance: float
    ratio: float


class _Look(NamedTuple):
    """Loss, gradient and lifted Hessian at a point."""

    loss: float
    gradient: np.ndarray
    hessian: np.ndarray


def lifted(task: Task, vector: np.ndarray) -> _Look:
    """Loss, gradient, and the Hessian raised along the task's symmetries at that point."""
    point = jnp.asarray(vector)
    loss, gradient, hessian = (np.asarray(x) for x in evaluate_at(task, point))
    tangents = np.asarray(tangents_at(task, point))
    lengths = np.linalg.norm(tangents, axis=1, keepdims=True)
    moving = tangents[lengths[:, 0] > 0] / lengths[lengths[:, 0] > 0]
    if len(moving):
        hessian = hessian + np.abs(np.diagonal(hessian)).mean() * moving.T @ moving
    return _Look(float(loss), gradient, hessian)


def _factor(matrix: np.ndarray) -> np.ndarray | None:
    """Cholesky's factor, or nothing if the matrix is not positive definite."""
    if not np.all(np.isfinite(matrix)):
        return None
    factor, info = lapack.dpotrf(matrix, lower=1, clean=0)
    return factor if info == 0 else None


def _solve(factor: np.ndarray, b: np.ndarray) -> np.ndarray:
    return lapack.dpotrs(factor, b, lower=1)[0]


def _soft_directions(factor: np.ndarray, hessian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The softest directions of H and their curvatures, by inverse subspace iteration with its factor."""
    size = len(hessian)
    count = min(SOFT_DIRECTIONS, size)
    basis = np.cos(np.arange(size * count, dtype=float).reshape(size, count) * 1.7 + 0.3)
    for _ in range(8):
        basis = np.linalg.qr(_solve(factor, basis))[0]
    curvature, mix = np.linalg.eigh(basis.T @ hessian @ basis)
    return (basis @ mix).T, curvature


def attempt(task: Task, departure: np.ndarray) -> Jump:
    """Check the condition at `departure` and, if it holds, follow Newton's method to rounding."""
    nan = float("nan")
    here = lifted(task, departure)
    factor = _factor(here.hessian)
    if factor is None or not np.all(np.isfinite(here.gradient)):
        return Jump(False, departure, nan, nan, nan, nan, nan)
    move = -_solve(factor, here.gradient)
    decrement = float(np.sqrt(max(-here.gradient @ move, 0.0)))
    refused = Jump(False, departure, nan, nan, decrement, nan, nan)
    directions, curvature = _soft_directions(factor, here.hessian)
    reach = 4 * decrement * directions / np.sqrt(np.maximum(curvature, 1e-300))[:, None]
    for offset in (4 * move, -4 * move, *reach, *-reach):
        there = lifted(task, departure + offset).hessian
        doubled = offset @ there @ offset > 2 * offset @ here.hessian @ offset
        if doubled or _factor(there - here.hessian / 2) is None:
            return refused
    end, loss, norm = newton(task, departure)
    distance = float(np.linalg.norm(end - departure))
    length = float(np.sqrt(max((end - departure) @ here.hessian @ (end - departure), 0.0)))
    ratio = length / max(4 * decrement, 1e-300)
    # At the rounding level of the gradient both are noise, and a jump of that size needs no ellipsoid.
    inside = ratio <= 1 or distance <= 1e-12 * (1 + np.linalg.norm(end))
    # Newton's method must have come to rounding (as the certificate has it): in twelve steps it may have overshot.
    rounding = 1e3 * np.finfo(float).eps * np.abs(here.hessian).max() * (1 + np.abs(end).max())
    return Jump(bool(inside and norm <= max(1e-11, rounding)), end, loss, norm, decrement, distance, ratio)


def newton(task: Task, start: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Newton's method near a minimum, until the gradient no longer falls: the best point, its loss and gradient norm."""
    point, best, loss, norm, idle = start, start, float("nan"), float("inf"), 0
    for _ in range(_NEWTON_STEPS):
        here = lifted(task, point)
        size = float(np.linalg.norm(here.gradient))
        idle = 0 if size < 0.5 * norm else idle + 1
        if size < norm:
            best, loss, norm = point, here.loss, size
        factor = _factor(here.hessian)
        if factor is None or idle == 3:
            break
        point = point - _solve(factor, here.gradient)
    return best, loss, norm


def attempt_from(task: Task, departure: np.ndarray) -> Jump:
    """`attempt` in the task's own coordinates around the point."""
    local, origin = task.chart(jnp.asarray(departure))
    jump = attempt(local, np.asarray(origin))
    return jump._replace(end=np.asarray(local.point(jnp.asarray(jump.end))))
