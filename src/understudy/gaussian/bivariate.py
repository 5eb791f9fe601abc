r"""The bivariate normal distribution function and its integral, to full relative precision in the tails.

For standard Gaussians x, y with correlation ρ, write φ2(h, k; t) for the density of (x, y) at (h, k) at correlation t.
Plackett's identity ∂Φ2/∂ρ = φ2 gives, with Φ the distribution function and J(h) = E[(x + h)₊] its integral,

Φ2(h, k; ρ) = P(x < h, y < k) = Φ(h)Φ(k) + ∫_0^ρ φ2 dt,
E[(x + h)₊ (y + k)₊] = J(h)J(k) + ρΦ(h)Φ(k) + ∫_0^ρ (ρ - t) φ2 dt.

For ρ ≥ 0 every summand is positive. For ρ < 0 and h + k ≤ 0 both expectations vanish at correlation -1, and the same
integrals from -1 to ρ are all there is. For ρ < 0 < h + k the sums cancel by powers of h and k only, unless the
interval (-h, k) on which both factors are positive at ρ = -1 is narrow itself.

With t = tanh v the density becomes φ2 dt = exp(-(h - k)² cosh² v / 2 - hk/(1 + tanh v)) dv / (2π cosh v) for t ≥ 0 (for
t < 0 change the sign of k): analytic in a strip |Im v| < π/4 whatever h, k and ρ are, ρ = ±1 included.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

QUICK, FINE = 80, 160
"""Gauss-Legendre nodes: `QUICK` for errors below 3e-16 absolute, `FINE` for relative ones down to underflow."""

_FARTHEST = 38.0
"""The largest v: 1/cosh v is below 1e-16 beyond."""

_FAR, _TERMS = 3.5, 34
"""Below -`_FAR` tails come from the continued fraction of Mills' ratio, whose `_TERMS` levels leave 1e-16 there."""


class Integrals(NamedTuple):
    """∫ φ2 dt and ∫ |ρ - t| φ2 dt between two correlations."""

    zeroth: Float[Array, "*shape"]
    first: Float[Array, "*shape"]


class Quadrant(NamedTuple):
    """Φ2 = P(x > -h, y > -k), and what it contains beyond independent neurons in E[(x + h)₊(y + k)₊].

    `rest` is ∫ (ρ - t) φ2 dt, to be added to J(h)J(k) + ρΦ(h)Φ(k), or, where `bare` holds, the whole expectation.
    """

    probability: Float[Array, "*shape"]
    rest: Float[Array, "*shape"]
    bare: Array


@lru_cache(maxsize=4)
def _rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    x, weight = np.polynomial.legendre.leggauss(nodes)
    return (x + 1) / 2, weight / 2


def density(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """φ(x)."""
    return jnp.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def distribution(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Φ(x), relatively exact for x → -∞."""
    return jax.lax.erfc(-x / math.sqrt(2)) / 2


def _fraction(size: Array) -> Array:
    """K of Mills' ratio (1 - Φ)/φ = 1/(a + K), K = 1/(a + 2/(a + 3/(a + …))), at a = `size`."""
    level = (jnp.sqrt(size**2 + 4 * _TERMS + 6) - size) / 2  # what the levels beyond settle to
    for m in range(_TERMS, 1, -1):
        level = m / (size + level)
    return 1 / (size + level)


def excess(
    mean: Float[Array, "*shape"], norm: Float[Array, "*shape"], h: Float[Array, "*shape"], tails: bool = False
) -> Array:
    """E[(mean + norm x)₊] = norm J(h), h = mean/norm; a norm of zero is allowed.

    Relatively exact down to underflow with `tails`, to h² roundings without.
    """
    if not tails:
        return jnp.maximum(mean * distribution(h) + norm * density(h), 0.0)
    size = jnp.maximum(-h, _FAR)
    first = _fraction(size)
    return jnp.where(h > -_FAR, mean * distribution(h) + norm * density(h), norm * density(h) * first / (size + first))


def squared_excess(mean: Float[Array, "*shape"], norm: Float[Array, "*shape"], h: Float[Array, "*shape"]) -> Array:
    """E[(mean + norm x)₊²], to h⁴ roundings in the tail; a norm of zero is allowed."""
    return jnp.maximum((mean**2 + norm**2) * distribution(h) + mean * norm * density(h), 0.0)


def _exponent(h: Array, k: Array, growth: Array) -> Array:
    """(h - k)² cosh² v / 2 + hk/(1 + tanh v) from growth = e^v ≥ 1."""
    inverse = 1 / growth
    return (h - k) ** 2 * (growth + inverse) ** 2 / 8 + h * k * (1 + inverse**2) / 2


def integrals(h: Array, k: Array, end: Array, beyond: Array, nodes: int) -> Integrals:
    """Integrals from correlation 0 to tanh `end` ≥ 0, or from there to 1 where `beyond` holds.

    One Gauss-Legendre rule in x, v = start + e^(βx) - 1: dense where the integrand begins, up to where it has fallen by
    e^-40 or v is out of sight.
    """
    start = jnp.where(beyond, end, 0.0)
    # Beyond v the exponent is at least (h - k)² cosh² v / 2 + the least of hk/(1 + tanh).
    begin = jnp.exp(start)
    least = jnp.minimum(h * k / 2, h * k * (1 + begin**-2) / 2)
    fall = 2 * (40.0 + _exponent(h, k, begin) - least)
    square = jnp.maximum(fall / jnp.maximum((h - k) ** 2, 1e-290), 1.0)
    cut = jax.lax.stop_gradient(jnp.arccosh(jnp.minimum(jnp.sqrt(square), 1e60)))
    top = jnp.maximum(jnp.minimum(jnp.where(beyond, start + _FARTHEST, end), cut), start)
    length = top - start

    rate = jnp.log1p(length)
    x, weight = (row.reshape((1,) * h.ndim + (nodes,)) for row in map(jnp.asarray, _rule(nodes)))
    h, k, start, end, top, length, rate, beyond = (
        row[..., None] for row in (h, k, start, end, top, length, rate, beyond)
    )
    step = jnp.expm1(rate * x)
    growth = jnp.exp(start + step)
    inverse = 1 / growth
    cosh = (growth + inverse) / 2
    summands = weight * rate * (1 + step) * jnp.exp(-_exponent(h, k, growth)) / (2 * math.pi * cosh)
    if nodes > QUICK:  # |end - v| without cancellation at either end of the range
        apart = jnp.sinh(jnp.where(beyond, step, (end - top) - (1 + length) * jnp.expm1(-rate * (1 - x))))
    else:
        reach = jnp.exp(end)
        apart = jnp.abs(reach * inverse - growth / reach) / 2
    apart = apart / (jnp.cosh(end) * cosh)
    return Integrals(jnp.sum(summands, axis=-1), jnp.sum(summands * apart, axis=-1))


def hyperbolic(cosine: Array, sine: Array) -> Array:
    """|artanh ρ| from any multiples of ρ and √(1 - ρ²), at most `_FARTHEST`."""
    flat = sine <= 0
    ratio = jnp.abs(cosine) / jnp.where(flat, 1.0, sine)
    ratio = jnp.where(flat & (cosine != 0), math.inf, ratio)
    return jnp.minimum(jnp.arcsinh(jnp.minimum(ratio, 1e60)), _FARTHEST)


def quadrant(h: Array, k: Array, cosine: Array, sine: Array, nodes: int) -> Quadrant:
    """P(x > -h, y > -k) and more, see `Quadrant`; `cosine` and `sine` are any positive multiple of ρ and √(1 - ρ²)."""
    sign = jnp.where(cosine < 0, -1.0, 1.0)
    bare = (cosine < 0) & (h + k <= 0)
    found = integrals(h, sign * k, hyperbolic(cosine, sine), bare, nodes)
    apart = distribution(h) * distribution(k) + sign * found.zeroth
    return Quadrant(jnp.where(bare, found.zeroth, apart), found.first, bare)
