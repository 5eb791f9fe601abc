"""Linear systems of implicit steps with a Hessian that is built at every step.

They are solved by conjugate gradients with a preconditioner from an earlier step.

**Reference**: preconditioning by an old factor as in Brown, Hindmarsh 1986, "Matrix-free methods for stiff systems of
ODE's", SIAM Journal on Numerical Analysis 23.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_ITERATIONS, _MANY = 40, 16
"""Conjugate-gradient iterations allowed with a built Hessian, and those after which the next step gets a new
preconditioner. An iteration costs two products of a matrix and a vector, a new preconditioner about a hundred."""


class Systems:
    """Systems (I + cH) x = r with the Hessian H in single precision at every point.

    The preconditioner is the inverse of I + cH of an earlier step. It is reused for ten to twenty steps.

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
        self.factorisations = 0

    def gradient(self, point: np.ndarray) -> np.ndarray:
        """∇L."""
        return self._slope(point)

    def move(self, point: np.ndarray) -> np.ndarray:
        """Take H at this point from now on. Returns the gradient there."""
        slope, hessian = self._evaluate(point)
        self._hessian = np.asarray(hessian, np.float32)
        return slope

    def solve(self, c: float, residual: np.ndarray, scale: np.ndarray, tolerance: float) -> np.ndarray | None:
        """(I + cH)⁻¹ residual, to `tolerance` in units of `scale`, or None if I + cH is not positive definite."""
        if self._preconditioner is None or self._work > _MANY:
            self._factorise(c)
        found, fresh = None, self._work == 0
        if self._preconditioner is not None:
            found = self._conjugate_gradients(c, residual, scale, tolerance)
        if found is None and not fresh and self._factorise(c):
            found = self._conjugate_gradients(c, residual, scale, tolerance)
        return found

    def solve_roughly(self, residual: np.ndarray) -> np.ndarray:
        """The preconditioner of the last solve applied to a vector."""
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
