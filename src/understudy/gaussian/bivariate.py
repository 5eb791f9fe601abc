r"""The bivariate normal distribution function and its integral, to full relative precision in the tails.

For standard Gaussians x, y with correlation ρ, write φ2(h, k; t) for the density of (x, y) at (h, k) at correlation t.
Plackett's identity ∂Φ2/∂ρ = φ2 gives, with Φ the distribution function and J(h) = E[(x + h)₊] its integral,

Φ2(h, k; ρ) = P(x < h, y < k) = Φ(h)Φ(k) + ∫_0^ρ φ2 dt,
E[(x + h)₊ (y + k)₊] = J(h)J(k) + ρΦ(h)Φ(k) + ∫_0^ρ (ρ - t) φ2 dt.

For ρ ≥ 0 every summand is positive. For ρ < 0 and h + k ≤ 0 both expectations vanish at correlation -1, so they equal
the same integrals from -1 to ρ. For ρ < 0 < h + k the sums lose only powers of h and k to cancellation, unless the
interval (-h, k), on which both factors are positive at ρ = -1, is narrow.

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

QUICK, FINE = 0, 160
"""`FINE`: Gauss-Legendre nodes for relative errors down to underflow. `QUICK`: errors below 1e-15 absolute, by
`joint`."""

_FARTHEST = 38.0
"""The largest v. Beyond it 1/cosh v is below 1e-16."""

_FAR, _TERMS = 3.5, 34
"""Below -`_FAR` tails come from the continued fraction of Mills' ratio, whose `_TERMS` levels leave 1e-16 there."""


def keep(*arrays: Float[Array, "..."]) -> list[Float[Array, "..."]]:
    """Return the same numbers, computed once.

    XLA on CPUs copies what looks cheap, sums and even exponentials, into everything that uses it. It does not copy
    divisions into loops that use each element many times. So this divides by a one that XLA cannot recognise.
    """
    first = arrays[0][(0,) * arrays[0].ndim]
    one = 1.0 + 0.0 * jnp.isfinite(first)
    return [x / one for x in arrays]


class Integrals(NamedTuple):
    """∫ φ2 dt and ∫ |ρ - t| φ2 dt between two correlations."""

    zeroth: Float[Array, "*shape"]
    first: Float[Array, "*shape"]


class Quadrant(NamedTuple):
    """Φ2 = P(x > -h, y > -k), and the part of E[(x + h)₊(y + k)₊] that independent neurons do not have.

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
    level = (jnp.sqrt(size**2 + 4 * _TERMS + 6) - size) / 2  # the limit of the remaining levels
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

    One Gauss-Legendre rule in x, v = start + e^(βx) - 1: dense where the integrand begins, and up to where it has
    fallen by e^-40 or v reaches `_FARTHEST`.
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
    # |end - v| without cancellation at either end of the range.
    apart = jnp.sinh(jnp.where(beyond, step, (end - top) - (1 + length) * jnp.expm1(-rate * (1 - x))))
    apart = apart / (jnp.cosh(end) * cosh)
    return Integrals(jnp.sum(summands, axis=-1), jnp.sum(summands * apart, axis=-1))


def hyperbolic(cosine: Array, sine: Array) -> Array:
    """|artanh ρ| from any multiples of ρ and √(1 - ρ²), at most `_FARTHEST`."""
    flat = sine <= 0
    ratio = jnp.abs(cosine) / jnp.where(flat, 1.0, sine)
    ratio = jnp.where(flat & (cosine != 0), math.inf, ratio)
    return jnp.minimum(jnp.arcsinh(jnp.minimum(ratio, 1e60)), _FARTHEST)


def quadrant(h: Array, k: Array, cosine: Array, sine: Array, nodes: int) -> Quadrant:
    """P(x > -h, y > -k) and the rest of `Quadrant`; `cosine`, `sine`: any positive multiple of ρ and √(1 - ρ²)."""
    sign = jnp.where(cosine < 0, -1.0, 1.0)
    bare = (cosine < 0) & (h + k <= 0)
    found = integrals(h, sign * k, hyperbolic(cosine, sine), bare, nodes)
    apart = distribution(h) * distribution(k) + sign * found.zeroth
    return Quadrant(jnp.where(bare, found.zeroth, apart), found.first, bare)


_NODES, _TINY = 11, 1e-150
_HALF = np.polynomial.legendre.leggauss(2 * _NODES)
_POINTS, _WEIGHTS = _HALF[0][_NODES:], _HALF[1][_NODES:]
"""The positive half of a symmetric rule, for even integrands.

The integrand of `_wedge` has poles at ±i/ratio, ratio ≤ 1, and is at most 1 up to there: (1 + √2)^(-4·11) = 1e-17."""


def _wedge(longer: Array, ratio: Array) -> Array:
    """Owen's T(longer, ratio) = (1/2π) ∫_0^ratio exp(-longer²(1 + x²)/2)/(1 + x²) dx for 0 ≤ ratio ≤ 1."""
    grown = 1 + (ratio[..., None] * _POINTS.reshape((1,) * ratio.ndim + (-1,))) ** 2
    inside = jnp.exp(-(longer[..., None] ** 2) / 2 * grown) / grown
    return ratio / (2 * math.pi) * (inside @ jnp.asarray(_WEIGHTS))


def _owen(own: Array, other: Array, erfs: Array) -> Array:
    """T(own, other/own) for arguments of any sign, where sign(0) counts as +; `erfs` is erf(own/√2) erf(other/√2)."""
    p, q = jnp.abs(own), jnp.abs(other)
    longer, shorter = jnp.maximum(p, q), jnp.minimum(p, q)
    small = _wedge(longer, shorter / longer)
    size = jnp.where(q <= p, small, (1 - jnp.abs(erfs)) / 4 - small)
    return jnp.where((own < 0) != (other < 0), -size, size)


def across(h: Array, k: Array, cosine: Array, sine: Array) -> tuple[Array, Array]:
    """(k - ρh)/√(1-ρ²) and (h - ρk)/√(1-ρ²) without cancellation near ρ = ±1, where they may be very large."""
    sign = jnp.where(cosine < 0, -1.0, 1.0)
    apart, lean = (k - sign * h) / jnp.maximum(sine, 1e-290), sign * sine / (1 + jnp.abs(cosine))
    return apart + h * lean, -sign * apart + k * lean


@jax.custom_jvp
def joint(h: Array, k: Array, cosine: Array, sine: Array) -> Array:
    """∫_0^ρ φ2(h, k; t) dt = Φ2(h, k; ρ) - Φ(h)Φ(k), to about 4e-16 absolute; cosine = ρ and sine = √(1-ρ²).

    By two of Owen's functions, each an integral over a wedge with eleven nodes. Derivatives are elementary:
    ∂/∂ρ = φ2(h, k; ρ) and ∂/∂h = φ(h)(Φ((k - ρh)/√(1-ρ²)) - Φ(k)).

    **Reference**: Owen 1956, "Tables for computing bivariate normal probabilities".
    """
    along_h, along_k = across(h, k, cosine, sine)
    erf_h, erf_k, one, two = (jax.lax.erf(x / math.sqrt(2)) for x in (h, k, along_h, along_k))
    start = jnp.where((h < 0) != (k < 0), -(1 + erf_h * erf_k), 1 - erf_h * erf_k) / 4
    # At h = k = 0 only the ratios count, and any equal numbers have them.
    gone, same = (h == 0) & (k == 0), jnp.full_like(h, _TINY)
    ahead, _ = across(same, same, cosine, sine)
    h, k, along_h, along_k = (
        jnp.where(gone, y, x) for x, y in ((h, same), (k, same), (along_h, ahead), (along_k, ahead))
    )
    return start - _owen(h, along_h, erf_h * one) - _owen(k, along_k, erf_k * two)


@joint.defjvp
def _joint_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    (h, k, cosine, sine), (dh, dk, dc, ds) = primals, tangents
    along_h, along_k = across(h, k, cosine, sine)
    by_angle = jnp.exp(-(h**2 + along_h**2) / 2) / (2 * math.pi)
    by_h = density(h) * (distribution(along_h) - distribution(k))
    by_k = density(k) * (distribution(along_k) - distribution(h))
    return joint(h, k, cosine, sine), by_h * dh + by_k * dk + by_angle * (sine * dc - cosine * ds)
