r"""All pairs of many smooth neurons at once, by Mehler's formula.

With h_m = He_m/√m! and c_m(r) = E[σ(r x) h_m(x)], E[σ1(r1 x) σ2(r2 y)] = Σ_m c_m(r1) c_m(r2) u^m for correlation u
(Mehler 1866). The coefficients belong to single neurons, so n + k lines of nodes replace the n(n + k) planes of a
double quadrature, and every pair costs a polynomial in u. If σ(r·) is analytic in a strip of half-width a = π/(2 ×
scale), scale = steepness × norm, the coefficients fall like exp(-a√m), because h_m oscillates with wave number √m.
Their products fall twice as fast. So the number of terms grows with the square of the scale, and large scales use
`quadrature`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import Activation
from understudy.gaussian.partials import BIASED_TERMS, TERMS, BiasedPartials, Partials

LARGEST_SCALE = 4.0
"""Beyond this steepness × norm the double quadrature is cheaper (2,600 terms and 680 nodes here)."""


@lru_cache(maxsize=8)
def _transform(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes x_q and the matrix T with c_m = Σ_q σ(r x_q) T_qm, for every r with steepness × r ≤ scale.

    Terms: 2a√M = 40 leaves e^-40 = 4e-18. The four derivatives in a Hessian multiply this by M²: 3e-13 of the largest
    second partial of tanh at u = 1, and less elsewhere. Nodes: the trapezoid rule sees the wave number √M of the last
    Hermite function and the spectrum of σ, which falls like e^(-a k); its step leaves room for both up to 40/a, and the
    range ends where the square root of the density is below 1e-18.
    """
    a = math.pi / (2 * scale)
    terms = math.ceil((40 / (2 * a)) ** 2) + 16
    step = 2 * math.pi / (math.sqrt(terms) + 40 / a + 10)
    count = math.ceil(13.0 / step)
    x = step * np.arange(-count, count + 1)
    root = np.exp(-(x**2) / 4) / (2 * math.pi) ** 0.25
    functions = [root, x * root]
    for m in range(1, terms - 1):
        functions.append((x * functions[m] - math.sqrt(m) * functions[m - 1]) / math.sqrt(m + 1))
    return x, step * np.stack(functions, axis=1) * root[:, None]


def coefficients(
    activation: Activation, norms: Float[Array, " n"], scale: float, biases: Float[Array, " n"] | None = None
) -> Float[Array, "5 n terms"]:
    """c_m of σ(r· + bias) and of its four derivatives there, for every norm r."""
    x, matrix = _transform(scale)
    arguments = norms[:, None] * x[None, :]
    values = jnp.stack(activation.derivatives(arguments if biases is None else arguments + biases[:, None]))
    return values @ matrix


def partials(
    first: Float[Array, "5 n terms"], second: Float[Array, "5 k terms"], correlation: Float[Array, "n k"]
) -> Partials:
    """The nine expectations of every pair, from the neurons' coefficients and correlations."""
    return Partials(*_expectations(first, second, correlation, TERMS))


def biased_partials(
    first: Float[Array, "5 n terms"], second: Float[Array, "5 k terms"], correlation: Float[Array, "n k"]
) -> BiasedPartials:
    """The fifteen expectations of every pair with biases."""
    return BiasedPartials(*_expectations(first, second, correlation, BIASED_TERMS))


def _expectations(
    first: Array, second: Array, correlation: Array, chosen: tuple[tuple[float, int, int], ...]
) -> list[Array]:
    terms = first.shape[-1]
    u = jnp.clip(correlation, -1.0, 1.0)[..., None]
    powers = jnp.concatenate([jnp.ones_like(u), jnp.cumprod(jnp.broadcast_to(u, (*u.shape[:-1], terms - 1)), -1)], -1)
    weighted = [second[j][None] * powers for j in range(5)]
    return [k * jnp.einsum("im,ijm->ij", first[i], weighted[j]) for k, i, j in chosen]
