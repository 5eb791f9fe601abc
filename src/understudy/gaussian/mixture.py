r"""Pairs of logistic neurons at any norms, as sums of closed forms.

The logistic function is a mixture of normal distribution functions Φ, 1/(1 + e^-x) = E[Φ(x/2K)], where K has
Kolmogorov's distribution, P(K ≤ k) = (√2π/k) Σ_n exp(-(2n-1)²π²/8k²) (Andrews and Mallows 1974). So, with
s = 2K, h(x) = xΦ(x) (gelu) and e(x) = erf(x/√2),

tanh(x/2) = E[e(x/s)] and x/(1 + e^-x) = E[s h(x/s)] (SiLU).

The trapezoid rule in log k needs few nodes: the density decays like a double exponential on both sides, and density and
Φ(x/s) are analytic for |arg k| < π/4, whatever x is. The error falls like e^(-π²/2η) with the step η. At η = 0.115
there are 29 nodes, and the logistic function and its four derivatives are right to 2e-16, 2e-16, 4e-16, 3e-15 and
2e-14. A pair is then a double sum of closed forms at the norms r/s_i. Its cost does not depend on the norms, whereas
that of series and of the double quadrature grows with them.
"""

import math
from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from understudy.activations import Activation, Mixture, Smooth
from understudy.gaussian.closed import erf_partials
from understudy.gaussian.gelu import gelu_partials
from understudy.gaussian.partials import Covariance, Partials

LARGEST_SCALE = 1000.0
"""Steepness × norm up to which this is used. The rounding of q11 q22 - q12² counts like its square: 1e-11 here."""

_STEP = 0.115
_LOWEST, _HIGHEST = 0.17, 4.6
"""Beyond these k the density is below 1e-18."""


def serves(first: Activation, second: Activation, scale: float) -> bool:
    """Whether both are mixtures of the same function, and `scale` (steepness × norm) is not too large."""
    if scale > LARGEST_SCALE:
        return False
    one, two = _mixture(first), _mixture(second)
    return one is not None and two is not None and one.gate == two.gate


def _mixture(activation: Activation) -> Mixture | None:
    return activation.mixture if isinstance(activation, Smooth) else None


@lru_cache(maxsize=1)
def scales() -> tuple[np.ndarray, np.ndarray]:
    """The scales s_i = 2k_i and their weights, which add up to 1."""
    k = np.exp(np.arange(math.log(_LOWEST), math.log(_HIGHEST), _STEP))
    n = np.arange(1, 20)[:, None]
    small = (math.pi**2 * (2 * n - 1) ** 2 / (4 * k**3) - 1 / k) * np.exp(-((2 * n - 1) ** 2) * math.pi**2 / (8 * k**2))
    large = 8 * (-1.0) ** (n - 1) * n**2 * k * np.exp(-2 * n**2 * k**2)
    density = np.where(k < 1, math.sqrt(2 * math.pi) / k * small.sum(axis=0), large.sum(axis=0))
    weights = density * k * _STEP
    return 2 * k, weights / weights.sum()


def mixture_partials(first: Activation, second: Activation, c: Covariance) -> Partials:
    """G and its partials; see `serves`."""
    one, two = _mixture(first), _mixture(second)
    assert one is not None
    assert two is not None
    s, weights = scales()
    first_axis, last_axis = (*(1,) * c.q12.ndim, len(s), 1), (*(1,) * c.q12.ndim, 1, len(s))  # two new axes
    inner1, inner2 = (one.slope / s).reshape(first_axis), (two.slope / s).reshape(last_axis)
    if one.gate:
        weights = weights * s
    outer = one.height * two.height * weights.reshape(first_axis) * weights.reshape(last_axis)
    q11, q12, q22, determinant = (x[..., None, None] for x in c)
    both = inner1 * inner2
    scaled = jnp.broadcast_arrays(q11 * inner1**2, q12 * both, q22 * inner2**2, determinant * both**2)
    found = gelu_partials(Covariance(*scaled))[0] if one.gate else erf_partials(Covariance(*scaled))
    powers = ((0, 0), (2, 0), (1, 1), (0, 2), (4, 0), (3, 1), (2, 2), (1, 3), (0, 4))
    factors = (outer * inner1**i * inner2**j for i, j in powers)
    # As products of matrices, which are faster here than sums that the compiler fuses.
    summed = [
        jnp.einsum("...ij,ij->...", x, factor[(0,) * c.q12.ndim]) for x, factor in zip(found, factors, strict=True)
    ]
    summed[0] = summed[0] + one.constant * two.constant
    return Partials(*summed)
