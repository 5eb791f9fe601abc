"""Linear systems of implicit steps: with a built Hessian, or with products only.

Both solve (I + cH) x = r by conjugate gradients with a preconditioner from an earlier step.

**Reference**: preconditioning by an old factor as in Brown, Hindmarsh 1986, "Matrix-free methods for stiff systems of
ODE's", SIAM Journal on Numerical Analysis 23.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from understudy.dynamics.krylov import Curvature
from understudy.tasks.task import Task

_ITERATIONS, _MANY = 40, 16
"""Conjugate-gradient iterations allowed with a built Hessian, and those after which the next step gets a new
preconditioner. An iteration costs two products of a matrix and a vector, a new preconditioner about a hundred."""

_SLOWER, _MORE = 1.5, 4
"""With products only, blocks are renewed when solves take this many times as many iterations as right after the last
renewal, and so many more. Renewing costs as much as three to ten products."""

_CHANGE = 1.5
"""They are also renewed when c has changed by this factor."""


class Systems(ABC):
    """The gradient, and systems with I + cH where H is taken at the point given to `move`."""

    factorisations = 0

    @abstractmethod
    def gradient(self, point: np.ndarray) -> np.ndarray:
        """∇L."""

    @abstractmethod
    def move(self, point: np.ndarray) -> np.ndarray:
        """Take H at this point from now on. Returns the gradient there."""

    @abstractmethod
    def solve(self, c: float, residual: np.ndarray, scale: np.ndarray, tolerance: float) -> np.ndarray | None:
        """(I + cH)⁻¹ residual, to `tolerance` in units of `scale`, or None if I + cH is not positive definite."""

    @abstractmethod
    def solve_roughly(self, residual: np.ndarray) -> np.ndarray:
        """The preconditioner of the last solve applied to a vector."""


class Matrixfree(Systems):
    """Exact products with H, preconditioned by its diagonal blocks; see `krylov`."""

    def __init__(self, task: Task):
        self._curvature = Curvature(task)
        self._point = np.zeros(task.size)
        self._inverse: Any = None
        self._c, self._best, self._last = 0.0, 0, 0

    def gradient(self, point: np.ndarray) -> np.ndarray:
        return self._curvature.slope(point)[1]

    def move(self, point: np.ndarray) -> np.ndarray:
        self._point = point
        return self.gradient(point)

    def solve(self, c: float, residual: np.ndarray, scale: np.ndarray, tolerance: float) -> np.ndarray | None:
        slow = self._last > _SLOWER * self._best + _MORE
        fresh = self._inverse is None or slow or not 1 / _CHANGE < c / self._c < _CHANGE
        for renew in (fresh, True):
            if renew:
                self._inverse = self._curvature.inverse(self._point, 1 / c)
                self._c, self.factorisations = c, self.factorisations + 1
            found = self._curvature.solve(
                self._point, self._inverse, residual / c, shift=1 / c, weight=1 / scale, tolerance=tolerance
            )
            self._last = found.iterations
            if renew:
                self._best = found.iterations
            if found.converged:
                return found.x
            if fresh:
                break
        self._inverse = None
        return None

    def solve_roughly(self, residual: np.ndarray) -> np.ndarray:
        groups = self._curvature.task.hessian_groups
        assert self._inverse is not None
        assert groups is not None
        found = np.empty_like(residual)
        found[groups] = np.einsum("gab,gb->ga", np.asarray(self._inverse), residual[groups]) / self._c
        return found


class Built(Systems):
    """The Hessian in single precision at every point; the preconditioner is the inverse of I + cH of an earlier step.

    It is reused for ten to twenty steps.

    **Arguments**: `evaluate(θ)` returns gradient and Hessian, `slope(θ)` the gradient alone.
    """

    def __init__(
        self,
        evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        slope: Callable[[np.ndarray], np.ndarray],
    ):
        self._evaluate, self._slope = evaluate, slope
        self._work = 0
        self._preconditioner: np.ndarray | None = None
        self._hessian = np.zeros((0, 0), np.float32)

    def gradient(self, point: np.ndarray) -> np.ndarray:
        return self._slope(point)

    def move(self, point: np.ndarray) -> np.ndarray:
        slope, hessian = self._evaluate(point)
        self._hessian = np.asarray(hessian, np.float32)
        return slope

    def solve(self, c: float, residual: np.ndarray, scale: np.ndarray, tolerance: float) -> np.ndarray | None:
        if self._preconditioner is None or self._work > _MANY:
            self._factorise(c)
        found, fresh = None, self._work == 0
        if self._preconditioner is not None:
            found = self._conjugate_gradients(c, residual, scale, tolerance)
        if found is None and not fresh and self._factorise(c):
            found = self._conjugate_gradients(c, residual, scale, tolerance)
        return found

    def solve_roughly(self, residual: np.ndarray) -> np.ndarray:
        assert self._preconditioner is not None
        return (self._preconditioner @ residual.astype(np.float32)).astype(float)

    def _factorise(self, c: float) -> bool:
        """The inverse of I + cH as preconditioner; False if that matrix is not positive definite."""
        from scipy.linalg.lapack import spotrf, spotri

        matrix = np.array(self._hessian, order="F")
        matrix *= np.float32(c)
        matrix[np.diag_indices(len(matrix))] += np.float32(1)
        factor, failed = spotrf(matrix, lower=1, overwrite_a=1)
        self.factorisations, self._work, self._preconditioner = self.factorisations + 1, 0, None
        if failed:
            return False
        inverse = spotri(factor, lower=1, overwrite_c=1)[0]
        lower = np.tril(inverse)
        self._preconditioner = np.ascontiguousarray(lower + np.tril(inverse, -1).T)
        return True

    def _conjugate_gradients(
        self, c: float, residual: np.ndarray, scale: np.ndarray, tolerance: float
    ) -> np.ndarray | None:
        preconditioner, hessian, shrink = self._preconditioner, self._hessian, np.float32(c)
        assert preconditioner is not None
        weight = (1 / scale).astype(np.float32)
        r = residual.astype(np.float32)
        x = np.zeros_like(r)
        z = preconditioner @ r
        p, rz = z, r @ z
        bound = tolerance**2 * r.size
        for i in range(_ITERATIONS):
            if rz == 0:
                return x.astype(float)
            along = p + shrink * (hessian @ p)
            curvature = p @ along
            if not curvature > 0:
                break
            x = x + (rz / curvature) * p
            r = r - (rz / curvature) * along
            z = preconditioner @ r
            weighted = z * weight
            self._work = max(self._work, i + 1)
            if weighted @ weighted <= bound:
                return (x + z).astype(float)
            rz, before = r @ z, rz
            p = (rz / before) * p + z
        self._work = _ITERATIONS
        return None
