"""The check of `jump` for problems whose Hessians are not built, with products and conjugate gradients.

The condition is the same: H(θ + s) ⪰ ½H(θ) at the ends of the ellipsoid along ± Newton's direction and along ± the
softest directions. That H(θ + s) - ½H(θ) is positive definite is seen by conjugate gradients, which meet a direction of
negative curvature if there is one that their right side does not avoid.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.dynamics.jump import SOFT_DIRECTIONS, Jump
from understudy.dynamics.krylov import Curvature, preconditioned_eigenpairs
from understudy.tasks.task import Task

_NEWTON_STEPS, _STALLS = 20, 3
_SOLVE, _CHECK = 1e-8, 1e-4
"""Relative accuracy of Newton's steps, and of the solves that look for negative curvature."""


_SETTLING, _SETTLING_STEPS, _SETTLING_SOLVE = 0.01, 3, 1e-6
"""Length of the step before a jump, relative to the time that has passed; number and relative accuracy of Newton's steps
for it."""


def attempt(task: Task, departure: Float[np.ndarray, " P"], time: float = 0.0) -> Jump | None:
    """The justified jump from `departure`, a point that the flow has reached at this time, or None."""
    fine = task.prepared(departure)
    local, origin = fine.straight_chart(jnp.asarray(settled(fine, departure, _SETTLING * time)))
    found = _attempt(local, np.asarray(origin))
    if found is None:
        return None
    end = local.point(jnp.asarray(found.end))
    norm = jnp.linalg.norm(Curvature(fine).slope(np.asarray(end))[1])
    return found._replace(end=end, gradient_norm=norm, distance=jnp.linalg.norm(end - jnp.asarray(departure)))


def settled(task: Task, departure: Float[np.ndarray, " P"], duration: float) -> Float[np.ndarray, " P"]:
    """The end x of one step of the implicit Euler method, (x - θ)/duration + ∇L(x) = 0.

    At large times the errors of earlier steps, which are of the size of the tolerances, make nearly all of the gradient
    in stiff directions. This step removes them and hardly moves the point in soft directions. Where it does not lower
    the gradient, or I/duration + H is not positive definite, the point is returned as it is.
    """
    if not duration > 0:
        return departure
    curvature, shift = Curvature(task), 1 / duration
    before = gradient = curvature.slope(departure)[1]
    inverse, point = curvature.inverse(departure, shift), departure
    for _ in range(_SETTLING_STEPS):
        found = curvature.solve(
            point, inverse, shift * (point - departure) + gradient, shift=shift, tolerance=_SETTLING_SOLVE
        )
        if not found.positive:
            return departure
        point = point - found.x
        gradient = curvature.slope(point)[1]
    return point if np.linalg.norm(gradient) < np.linalg.norm(before) else departure


def _attempt(task: Task, departure: np.ndarray) -> Jump | None:
    search = _Search(task, departure)
    move = search.solve(departure, search.gradient, _SOLVE)
    if move is None or not np.all(np.isfinite(move)):
        return None
    decrement = float(np.sqrt(max(search.gradient @ move, 0.0)))
    soft = search.soft_directions(move)
    if soft is None or not all(search.is_convex(offset) for offset in _offsets(move, decrement, *soft)):
        return None
    return search.follow_newton(decrement)


def _offsets(
    move: np.ndarray, decrement: float, directions: np.ndarray, curvatures: np.ndarray
) -> Iterator[np.ndarray]:
    """From the departure to the ends of the ellipsoid."""
    for offset in (-4 * move, *(4 * decrement * v / np.sqrt(k) for v, k in zip(directions, curvatures, strict=True))):
        yield offset
        yield -offset


class _Search:
    """The departure, its preconditioner, and solves near it."""

    def __init__(self, task: Task, departure: np.ndarray):
        self.task, self.departure, self.curvature = task, departure, Curvature(task)
        self.loss, self.gradient = self.curvature.slope(departure)
        self.inverse: Array = self.curvature.inverse(departure, 0.0)
        self.largest = _largest_eigenvalue(self.curvature, departure)

    def _lift(self, point: np.ndarray) -> tuple[np.ndarray, float] | None:
        tangents = self.curvature.tangents(point)
        return (tangents, self.largest) if len(tangents) else None

    def solve(self, point: np.ndarray, right: np.ndarray, tolerance: float) -> np.ndarray | None:
        """H(point)⁻¹ right, or None if H is not positive definite."""
        found = self.curvature.solve(point, self.inverse, right, tolerance=tolerance, lift=self._lift(point))
        return found.x if found.positive and (found.converged or tolerance == _SOLVE) else None

    def soft_directions(self, move: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The softest directions and their curvatures, or None if one of them is not positive.

        Newton's step is mostly along the softest one.
        """
        values, vectors, _ = preconditioned_eigenpairs(
            self.curvature, self.departure, self.inverse, SOFT_DIRECTIONS, 1e-3, 30, self._lift(self.departure), move
        )
        return (vectors, values) if values[0] > 0 else None

    def is_convex(self, offset: np.ndarray) -> bool:
        """Whether H(θ + offset) - ½H(θ) is positive, and the curvature along the offset has not doubled."""
        end = self.departure + offset
        here, there = (self.curvature.product(x, offset[None])[0] for x in (self.departure, end))
        if not np.all(np.isfinite(there)) or offset @ there > 2 * offset @ here:
            return False
        right = np.cos(np.arange(len(offset)) * 1.7 + 0.3)
        found = self.curvature.solve(
            end, self.inverse, right, tolerance=_CHECK, minus=(self.departure, 0.5), lift=self._lift(end)
        )
        return found.positive and found.converged

    def follow_newton(self, decrement: float) -> Jump | None:
        """Newton's method to rounding; see `jump.attempt`."""
        point = best = self.departure
        loss, gradient = self.loss, self.gradient
        lowest, least, stalls = np.inf, loss, 0
        for _ in range(_NEWTON_STEPS):
            norm = float(np.linalg.norm(gradient))
            stalls += norm > lowest / 2
            if norm < lowest:
                best, lowest, least = point, norm, loss
            if stalls >= _STALLS or norm == 0:
                break
            move = self.solve(point, gradient, _SOLVE)
            if move is None:
                return None
            point = point - move
            loss, gradient = self.curvature.slope(point)
        travelled = best - self.departure
        along = self.curvature.product(self.departure, travelled[None])[0]
        ratio = float(np.sqrt(max(travelled @ along, 0.0))) / max(4 * decrement, 1e-300)
        distance = float(np.linalg.norm(travelled))
        inside = ratio <= 1 or distance <= 1e-12 * (1 + float(np.linalg.norm(best)))
        rounding = 1e3 * np.finfo(float).eps * self.largest * (1 + float(np.abs(best).max()))
        if not (inside and lowest <= max(1e-11, rounding)):
            return None
        numbers = (np.asarray(x) for x in (True, best, least, lowest, decrement, distance, ratio))
        return Jump(*numbers)  # type: ignore[arg-type]


def _largest_eigenvalue(curvature: Curvature, point: np.ndarray) -> float:
    """By a few steps of the power method: a lower bound that is right to a few percent."""
    direction = np.cos(np.arange(len(point)) * 1.7 + 0.3)
    size = 0.0
    for _ in range(8):
        direction = direction / np.linalg.norm(direction)
        direction = curvature.product(point, direction[None])[0]
        size = float(np.linalg.norm(direction))
    return size
