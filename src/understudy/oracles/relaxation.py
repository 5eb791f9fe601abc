r"""Upper bounds of the oracle ρ(V) = max ‖V σ(Bᵀw)‖² over ‖w‖ ≤ 1, for any number of inputs.

A piecewise linear σ is σ(z) = h z + κ|z|. With e = κ|Bᵀw| ≥ 0 the response is Vσ(Bᵀw) = Lw + Ke, L = h V Bᵀ and K = V.
For every diagonal D > 0 with K D⁻¹ Kᵀ < I, completing the square gives

  ‖Lw + Ke‖² ≤ (Lw)ᵀ (I - K D⁻¹ Kᵀ)⁻¹ (Lw) + eᵀDe,   and   eᵀDe = κ² wᵀ B D Bᵀ w   exactly,

so ρ(V) ≤ λ_max(Lᵀ (I - K D⁻¹ Kᵀ)⁻¹ L + κ² B D Bᵀ). The least of these bounds is the value of a semidefinite relaxation
(the dual of lifting (w, e) to a matrix with e_i² = κ² z_i²). Any D gives a valid bound, so the minimisation over D need
not be exact.

With one output, v·σ and -v·σ are bounded one after the other, and better: where the weight of a kink is negative,
-κ|z_i| ≤ -κ t_i z_i for every |t_i| ≤ 1, so these kinks become linear terms with a free slope t_i.
"""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.activations import Activation, PiecewiseLinear

Number = float | Array

MARGIN = 1e-10
"""Bounds are raised by this share, far above the rounding errors of the eigenvalues that they come from."""


@dataclass(frozen=True)
class Responses:
    """The functions w ↦ Vσ(Bᵀw) of one B (c × N): an orthonormal `frame` of its column space, B in it, h and κ."""

    frame: np.ndarray
    inner: np.ndarray
    linear: float
    kink: float

    @staticmethod
    def of(basis: np.ndarray, activation: Activation) -> "Responses":
        """For a positively homogeneous activation of degree one."""
        if not isinstance(activation, PiecewiseLinear):
            raise ValueError(
                "The cone of covariances needs a positively homogeneous activation of degree one; received "
                f"{activation.name}. Use relu, abs or linear."
            )
        basis = np.asarray(basis, float)
        left, singular, _ = np.linalg.svd(basis, full_matrices=False)
        frame = left[:, singular > 1e-13 * max(singular.max(initial=0.0), 1e-300)]
        return Responses(frame, frame.T @ basis, float(activation.slope), float(activation.kink))

    @cached_property
    def lengths(self) -> np.ndarray:
        """Norm of each input; at least 1e-300, so that a zero input has no direction but can be divided by."""
        return np.maximum(np.linalg.norm(self.inner, axis=0), 1e-300)

    @property
    def rank(self) -> int:
        """Dimension of the column space."""
        return self.inner.shape[0]

    def outputs(self, duals: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Vσ(Bᵀw) of directions (k, r) in the frame, one row each."""
        z = directions @ self.inner
        return (self.linear * z + self.kink * np.abs(z)) @ duals.T

    def values(self, duals: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """‖Vσ(Bᵀw)‖² of directions (k, r) in the frame."""
        return np.sum(self.outputs(duals, directions) ** 2, axis=1)


def relaxed_bound(responses: Responses, duals: np.ndarray, *, iterations: int = 100) -> float:
    """An upper bound of ρ(V), by minimising the relaxation."""
    scale = float(np.abs(duals).max(initial=0.0))
    if scale == 0 or not responses.rank:
        return 0.0
    v = duals / scale
    sides = [v] if len(v) > 1 else [v, -v]
    return max(_minimised(responses, side, iterations) for side in sides) * scale**2 * (1 + MARGIN)


def _minimised(responses: Responses, v: np.ndarray, iterations: int) -> float:
    from scipy.optimize import minimize  # slow to import, and rarely needed

    count = v.shape[1]
    norms = np.linalg.norm(v, axis=0)
    start = np.concatenate([np.log(np.maximum(norms, 1e-3 * norms.max())), np.zeros(count), [0.0]])
    given = (jnp.asarray(v), jnp.asarray(responses.inner), responses.linear, responses.kink)
    best = float(_bound(jnp.asarray(start), *given, 0.0))
    for softness in (3e-2, 3e-3, 3e-4):

        def both(x: np.ndarray, width: float = softness) -> tuple[float, np.ndarray]:
            value, slope = _bound_and_slope(jnp.asarray(x), *given, width)
            return float(value), np.asarray(slope)

        start = minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": iterations}).x
        best = min(best, float(_bound(jnp.asarray(start), *given, 0.0)))
    return best


@jax.jit
def _bound(x: Array, v: Array, inner: Array, h: Number, k: Number, softness: Number) -> Array:
    """λ_max of the relaxation; a positive `softness` replaces the maximum by a smooth function above it.

    x holds the logarithms of D (N), slopes before tanh (N; used with one output), and a number whose logistic function
    is ‖K D⁻¹ Kᵀ‖.
    """
    count = v.shape[1]
    weights, slopes, share = jnp.exp(x[:count]), jnp.tanh(x[count:-1]), jax.nn.sigmoid(x[-1])
    kinked, straight = v, h * v
    if v.shape[0] == 1:
        kinked, straight = jnp.maximum(v, 0.0), h * v - k * jnp.maximum(-v, 0.0) * slopes[None]
    crowd = (kinked / weights[None]) @ kinked.T
    largest = jnp.maximum(jnp.linalg.eigvalsh(crowd)[-1], 1e-300)
    weights = weights * largest / share
    inverse = jnp.linalg.inv(jnp.eye(v.shape[0]) - crowd * (share / largest))
    linear = straight @ inner.T
    values = jnp.linalg.eigvalsh(linear.T @ inverse @ linear + k**2 * (inner * weights[None]) @ inner.T)
    top = values[-1]
    width = jnp.maximum(softness * jax.lax.stop_gradient(jnp.abs(top)), 1e-300)
    return top + jnp.where(softness > 0, width * jnp.log(jnp.sum(jnp.exp((values - top) / width))), 0.0)


_bound_and_slope = jax.jit(jax.value_and_grad(_bound))
