"""A multistep method for large problems, where a factorisation costs more than the rest of a step.

Numerical differentiation formulas of order k ≤ 5 (backward differentiation with κ-correction) in backward differences:
with D_j = ∇^j θ_n, the next point is θ = Σ_{j ≤ k} D_j + d, where

d = -c ∇L(θ) - ψ,  ψ = Σ_{1 ≤ j ≤ k} γ_j D_j / α_k,  c = h/α_k,  γ_j = 1 + 1/2 + … + 1/j,  α_k = (1 - κ_k) γ_k,

and the local error is (κ_k γ_k + 1/(k+1)) d. The equation for d is solved by Newton's method with the exact Hessian at
the predicted point. Its linear systems, with I + cH, are those of a `Systems`; see `systems`. Their errors show in the
residual, which is computed from the gradient in double precision.

**Reference**: Shampine, Reichelt 1997, "The MATLAB ODE suite", SIAM Journal on Scientific Computing 18 (formulas, κ,
change of step).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from understudy.dynamics.systems import Systems

MAX_ORDER = 5
KAPPA = np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])
GAMMA = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, MAX_ORDER + 1))])
ALPHA = (1 - KAPPA) * GAMMA
ERROR = KAPPA * GAMMA + 1 / np.arange(1, MAX_ORDER + 2)

_NEWTON = 3e-3
"""Remaining error of d, in units of the tolerance, at which Newton's method stops."""
_NEWTON_STEPS = 4
_SOLVE = 0.1 * _NEWTON
SAFETY = 0.9
"""Steps have this share of the length that the error estimate allows."""
WORTH = 1.2
"""A step is lengthened only by more than this: every change of length spoils the preconditioner a little."""


class Multistep:
    """One run of dθ/dt = -∇L(θ), advanced by `step`; `vector`, `time` and `gradient_norm` describe its current point.

    `gradient_norm` is that of Newton's last iterate, which differs from `vector` by 1/1000 of the tolerance.

    **Arguments**

    - `systems`: the gradient, and linear systems with I + cH.
    - `rtol`, `atol`: a step's error e must have √mean((e/(atol + rtol|θ|))²) ≤ 1. `length`: of the first step.
    """

    def __init__(self, systems: Systems, start: np.ndarray, rtol: float, atol: float, length: float):
        self.systems, self.rtol, self.atol = systems, rtol, atol
        slope = systems.gradient(start)
        self.differences = np.zeros((MAX_ORDER + 3, start.size))
        self.differences[0], self.differences[1] = start, -length * slope
        self.order, self.length, self.time = 1, length, 0.0
        self.gradient_norm = self._norm = float(np.linalg.norm(slope))
        self.accepted = self.rejected = 0
        self._equal = 0

    @property
    def vector(self) -> np.ndarray:
        """θ at `time`."""
        return self.differences[0]

    def save(self) -> tuple[np.ndarray, int, float, float, float, int]:
        """What `restore` needs to take the next step again."""
        return self.differences.copy(), self.order, self.length, self.time, self.gradient_norm, self._equal

    def restore(self, state: tuple[np.ndarray, int, float, float, float, int]) -> None:
        """Go back to a saved state."""
        self.differences, self.order, self.length, self.time, self.gradient_norm, self._equal = state

    def between(self, fraction: Float[np.ndarray, " s"]) -> Float[np.ndarray, "s P"]:
        """The flow at `fraction` ∈ [0, 1] of the last step, by the polynomial through the last k + 1 points."""
        back = fraction - 1.0
        weights = [np.ones_like(back)]
        for j in range(self._last_order):
            weights.append(weights[-1] * (back + j) / (j + 1))
        return np.stack(weights, axis=1) @ self._last[: self._last_order + 1]

    def step(self, latest: float = np.inf) -> bool:
        """Try one step, not beyond the time `latest`; return whether it was accepted. If not, the next is shorter."""
        if self.time + self.length > latest:
            self._scale(max((latest - self.time) / self.length, 1e-12))
        k, d = self.order, self.differences
        predicted = d[: k + 1].sum(axis=0)
        scale = self.atol + self.rtol * np.abs(predicted)
        correction = self._newton(predicted, GAMMA[1 : k + 1] @ d[1 : k + 1] / ALPHA[k], scale)
        if correction is None:
            return self._refuse(0.5)
        end = predicted + correction
        scale = self.atol + self.rtol * np.maximum(np.abs(end), np.abs(d[0]))
        error = _rms(ERROR[k] * correction / scale)
        if not error <= 1:
            return self._refuse(max(0.2, SAFETY * error ** (-1 / (k + 1))) if np.isfinite(error) else 0.2)
        self.time = latest if self.time + self.length >= latest else self.time + self.length
        self.accepted, self._equal = self.accepted + 1, self._equal + 1
        d[k + 2], d[k + 1] = correction - d[k + 1], correction
        for j in range(k, -1, -1):
            d[j] += d[j + 1]
        self.gradient_norm = self._norm
        self._last, self._last_order = d[: k + 1].copy(), k
        if self._equal > k:
            self._choose_order(correction, scale)
        return True

    def _choose_order(self, correction: np.ndarray, scale: np.ndarray) -> None:
        k, d = self.order, self.differences
        gains = {}
        for order, difference in ((k - 1, d[k]), (k, correction), (k + 1, d[k + 2])):
            if 1 <= order <= MAX_ORDER:
                error = max(_rms(ERROR[order] * difference / scale), 1e-12)
                gains[order] = SAFETY * error ** (-1 / (order + 1))
        best = max(gains, key=lambda order: gains[order])
        if gains[best] >= WORTH:
            self.order = best
            self._scale(min(gains[best], 10.0))

    def _refuse(self, factor: float) -> bool:
        self.rejected += 1
        self._scale(factor)
        return False

    def _scale(self, factor: float) -> None:
        """The differences of the same polynomial for a step `factor` times as long."""
        k = self.order
        change = _interpolation(k, factor) @ _interpolation(k, 1.0)
        self.differences[: k + 1] = change.T @ self.differences[: k + 1]
        self.length *= factor
        self._equal = 0

    def _newton(self, predicted: np.ndarray, psi: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
        """The correction d, or None if it was not found because the step is too long."""
        c, systems = self.length / ALPHA[self.order], self.systems
        slope = systems.move(predicted)
        residual = -c * slope - psi
        total, size = np.zeros_like(predicted), np.inf
        for _ in range(_NEWTON_STEPS):
            self._norm = float(np.linalg.norm(slope))
            change = systems.solve(c, residual, scale, _SOLVE)
            if change is None:
                return None
            total = total + change
            before, size = size, _rms(change / scale)
            if size <= _NEWTON:
                return total
            if not size < 0.5 * before:
                return None
            slope = systems.gradient(predicted + total)
            residual = -c * slope - psi - total
            last = systems.solve_roughly(residual)
            if _rms(last / scale) <= _NEWTON:
                self._norm = float(np.linalg.norm(slope))
                return total + last
        return None


def _interpolation(order: int, factor: float) -> np.ndarray:
    """Entry (i, j) = Π_{m ≤ i} (m - 1 - factor·j)/m: how differences follow from the polynomial's values."""
    i, j = np.arange(1, order + 1)[:, None], np.arange(1, order + 1)[None, :]
    ratios = np.zeros((order + 1, order + 1))
    ratios[0] = 1.0
    ratios[1:, 1:] = (i - 1 - factor * j) / i
    return np.cumprod(ratios, axis=0)


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(x @ x / x.size))
