r"""Quadrature with biases: E[σ1(m1 + x) σ2(m2 + y)] where there is no closed form.

As in `quadrature`, y = r2 t and x = slope·t + spread·z with independent t, z ~ N(0, 1). The integrand in t has two
special places: t = -m2/r2, where the argument of σ2 vanishes, and t = -m1/slope, where that of the smoothed σ1
vanishes. The line is cut half way between them. Each part is stretched by t = centre + scale·sinh τ and summed by
Gauss-Legendre in τ. At the kink of ReLU or |x| the line is cut, too.
"""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import Activation, PiecewiseLinear
from understudy.gaussian.biased import Means, _differentiate, _sides, _threshold
from understudy.gaussian.bivariate import density, distribution, excess
from understudy.gaussian.partials import BIASED_TERMS, BiasedPartials, BiasedSelfPartials, Covariance
from understudy.gaussian.quadrature import reach

_LOST = 1e-13
"""The finest scale around a kink; smaller scales contribute less than rounding."""

Sums = tuple[BiasedPartials, BiasedPartials]
"""Expectations, and the sums of their summands' absolute values."""


@lru_cache(maxsize=16)
def _rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    x, weight = np.polynomial.legendre.leggauss(nodes)
    return (x + 1) / 2, weight / 2


def _piece(nodes: int, centre: Array, scale: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Nodes centre + scale·sinh τ from low to high with Gaussian weights, along a new last axis."""
    bottom, top = jnp.arcsinh((low - centre) / scale), jnp.arcsinh((high - centre) / scale)
    x, weight = (row.reshape((1,) * centre.ndim + (nodes,)) for row in map(jnp.asarray, _rule(nodes)))
    centre, scale, bottom, length = (row[..., None] for row in (centre, scale, bottom, top - bottom))
    tau = bottom + length * x
    t = centre + scale * jnp.sinh(tau)
    return t, weight * length * scale * jnp.cosh(tau) * density(t)


def _centre(mean: Array, slope: Array, cut: float) -> tuple[Array, Array]:
    """Where mean + slope·t vanishes, within the cut; and whether it does so there."""
    moving = slope != 0
    zero = -mean / jnp.where(moving, slope, 1.0)
    inside = moving & (jnp.abs(zero) < cut)
    return jnp.where(inside, zero, 0.0), inside


def _conditioned(c: Covariance) -> tuple[Array, Array, Array]:
    """r2, and slope and spread of x = slope·t + spread·z for y = r2 t."""
    r2, present = jnp.sqrt(c.q22), c.q22 > 0
    slope = jnp.where(present, c.q12 / jnp.where(present, r2, 1.0), 0.0)
    spread = jnp.sqrt(jnp.where(present, jnp.maximum(c.determinant, 0.0) / jnp.where(present, c.q22, 1.0), c.q11))
    return r2, slope, spread


def _weighed(inner: Array, outer: Array, magnitude: Array) -> Sums:
    """Sums over outer nodes of every pair of orders.

    `inner` (5, …, nodes) is already summed over inner nodes, and so are the absolute values in `magnitude`.
    """
    signed = {(i, j): jnp.sum(inner[i] * outer[j], axis=-1) for _, i, j in BIASED_TERMS}
    sizes = {(i, j): jnp.sum(magnitude[i] * jnp.abs(outer[j]), axis=-1) for _, i, j in BIASED_TERMS}
    return BiasedPartials.from_expectations(signed), BiasedPartials.from_expectations(sizes)


def smooth_partials(first: Activation, second: Activation, c: Covariance, means: Means, nodes: int) -> Sums:
    """Both activations smooth; `nodes` for each of two outer pieces and for every inner line."""
    cut, (m1, m2) = reach(first, second), means
    r2, slope, spread = _conditioned(c)
    fine1, fine2 = first.steepness * jnp.abs(slope), second.steepness * r2
    one, there1 = _centre(m1, slope, cut)
    two, there2 = _centre(m2, r2, cut)
    one, two = jnp.where(there1, one, two), jnp.where(there2, two, one)
    scale1 = 1 / jnp.maximum(1.0, jnp.where(there1, fine1, 1.0))
    scale2 = 1 / jnp.maximum(1.0, jnp.where(there2, fine2, 1.0))
    t, weight = _two_centres(nodes, (one, scale1), (two, scale2), cut)

    mean = m1[..., None] + slope[..., None] * t
    sigma = jnp.broadcast_to(spread[..., None], mean.shape)
    centre, inside = _centre(mean, sigma, cut)
    fine = 1 / jnp.maximum(1.0, jnp.where(inside, first.steepness * sigma, 1.0))
    z, inner_weight = _piece(nodes, centre, fine, jnp.full_like(centre, -cut), jnp.full_like(centre, cut))
    summands = [inner_weight * f for f in first.derivatives(mean[..., None] + sigma[..., None] * z)]
    inner = jnp.stack([jnp.sum(f, axis=-1) for f in summands])
    magnitude = jnp.stack([jnp.sum(jnp.abs(f), axis=-1) for f in summands])
    outer = jnp.stack([weight * f for f in second.derivatives(m2[..., None] + r2[..., None] * t)])
    return _weighed(inner, outer, magnitude)


def _two_centres(nodes: int, one: tuple[Array, Array], two: tuple[Array, Array], cut: float) -> tuple[Array, Array]:
    """A line in two parts, each with its centre, and a scale that also resolves the centre of the other part."""
    (a, fine_a), (b, fine_b) = one, two
    ordered = a <= b
    low, high = jnp.where(ordered, a, b), jnp.where(ordered, b, a)
    scale_low, scale_high = jnp.where(ordered, fine_a, fine_b), jnp.where(ordered, fine_b, fine_a)
    apart = jnp.maximum(high - low, jnp.minimum(fine_a, fine_b))
    scale_low, scale_high = jnp.minimum(scale_low, apart), jnp.minimum(scale_high, apart)
    middle = (low + high) / 2
    left = _piece(nodes, low, scale_low, jnp.full_like(low, -cut), middle)
    right = _piece(nodes, high, scale_high, middle, jnp.full_like(low, cut))
    return jnp.concatenate([left[0], right[0]], axis=-1), jnp.concatenate([left[1], right[1]], axis=-1)


def kinked_partials(first: PiecewiseLinear, second: Activation, c: Covariance, means: Means, nodes: int) -> Sums:
    """First activation slope·x + kink·|x|, second smooth: E[σ1 | y] is known, and σ1'' is a point mass."""
    cut, (m1, m2) = reach(first, second), means
    r2, slope, spread = _conditioned(c)
    kink, there1 = _centre(m1, slope, cut)
    other, there2 = _centre(m2, r2, cut)
    kink, other = jnp.where(there1, kink, other), jnp.where(there2, other, kink)
    scale = spread / jnp.where(there1, jnp.abs(slope), 1.0)
    scale = jnp.where(there1, jnp.clip(scale, _LOST, 1.0), 1.0)
    scale2 = 1 / jnp.maximum(1.0, jnp.where(there2, second.steepness * r2, 1.0))
    apart = jnp.maximum(jnp.abs(kink - other), jnp.minimum(scale, scale2))
    scale, scale2 = jnp.minimum(scale, apart), jnp.minimum(scale2, apart)
    # Four parts: from the cut to the kink, half way to the other centre, past that centre, and to the cut.
    near, far = jnp.full_like(kink, -cut), jnp.full_like(kink, cut)
    forward = kink <= other
    middle = (kink + other) / 2
    beyond = jnp.where(forward, far, near)
    behind = jnp.where(forward, near, far)
    parts = [
        _piece(2 * nodes, kink, scale, behind, kink),
        _piece(2 * nodes, kink, scale, kink, middle),
        _piece(nodes, other, scale2, middle, other),
        _piece(nodes, other, scale2, other, beyond),
    ]
    t = jnp.concatenate([p[0] for p in parts], axis=-1)
    weight = jnp.abs(jnp.concatenate([p[1] for p in parts], axis=-1))

    mean, sigma = m1[..., None] + slope[..., None] * t, jnp.broadcast_to(spread[..., None], t.shape)
    ratio = jnp.where(sigma > 0, mean / jnp.where(sigma > 0, sigma, 1.0), 1e30 * jnp.sign(mean))
    right, left = _sides(first)
    up, down = right * excess(mean, sigma, ratio), left * excess(-mean, sigma, -ratio)
    rise, fall = right * distribution(ratio), left * distribution(-ratio)
    zero = jnp.zeros_like(up)
    inner, magnitude = (
        jnp.stack([a, b, zero, zero, zero])
        for a, b in ((up + down, rise - fall), (jnp.abs(up) + jnp.abs(down), jnp.abs(rise) + jnp.abs(fall)))
    )
    outer = jnp.stack([weight * f for f in second.derivatives(m2[..., None] + r2[..., None] * t)])
    bent = _given_kink(first, second, c, means, nodes)
    signed, sizes = _weighed(inner, outer, magnitude)
    return _completed(signed, bent[0], c, m1, -1), _completed(sizes, bent[1], c, m1, 1)


def _given_kink(
    first: PiecewiseLinear, second: Activation, c: Covariance, means: Means, nodes: int
) -> tuple[list[Array], list[Array]]:
    """E[σ1''σ2^(j)], j = 0, 1, 2, with the sums of absolute values."""
    (m1, m2), present = means, c.q11 > 0
    r1, q11 = jnp.sqrt(c.q11), jnp.where(present, c.q11, 1.0)
    weight = 2 * first.kink * density(_threshold(m1, r1)) / jnp.sqrt(q11)
    weight = jnp.where(present | (m1 != 0) | (first.kink == 0), weight, jnp.nan)
    mean = m2 - c.q12 / q11 * m1
    spread = jnp.sqrt(jnp.where(present, jnp.maximum(c.determinant, 0.0) / q11, c.q22))
    z, inner = _single(second, mean, spread, nodes)
    moments = [inner * f for f in second.derivatives(mean[..., None] + spread[..., None] * z)[:3]]
    signed = [weight * jnp.sum(f, axis=-1) for f in moments]
    return signed, [jnp.abs(weight) * jnp.sum(jnp.abs(f), axis=-1) for f in moments]


def _single(activation: Activation, mean: Array, spread: Array, nodes: int) -> tuple[Array, Array]:
    """A line for functions of mean + spread·z."""
    cut = reach(activation, activation)
    centre, inside = _centre(mean, spread, cut)
    scale = 1 / jnp.maximum(1.0, jnp.where(inside, activation.steepness * spread, 1.0))
    return _piece(nodes, centre, scale, jnp.full_like(centre, -cut), jnp.full_like(centre, cut))


def _completed(p: BiasedPartials, bent: list[Array], c: Covariance, mean: Array, sign: int) -> BiasedPartials:
    """The partials, with those that contain second or higher derivatives of σ1 filled in."""
    own = jnp.where(c.q11 > 0, c.q11, 1.0)
    q12, m1 = (c.q12, mean) if sign < 0 else (jnp.abs(c.q12), jnp.abs(mean))
    e = {(2, 0): bent[0], (2, 1): bent[1], (2, 2): bent[2]}
    e[3, 1] = sign * (m1 * e[2, 1] + q12 * e[2, 2]) / own
    e[1, 0] = jnp.zeros_like(own)
    _differentiate(e, m1, q12, own, sign, 0.0)
    # At zero norm and bias a kinked σ1 has no derivatives at all.
    exists = jnp.where(jnp.isnan(bent[0]), jnp.nan, 1.0)
    return p._replace(
        q11=e[2, 0] / 2,
        q12=exists * p.q12,
        q11q11=e[4, 0] / 4,
        q11q12=e[3, 1] / 2,
        q12q12=e[2, 2],
        q12q22=exists * p.q12q22,
        m1=exists * p.m1,
        q11m1=e[3, 0] / 2,
        q12m1=e[2, 1],
        q12m2=exists * p.q12m2,
    )


def smooth_self_partials(
    activation: Activation, q: Float[Array, "*shape"], mean: Float[Array, "*shape"], nodes: int
) -> BiasedSelfPartials:
    """D = E[σ²] and its derivatives, which are expectations of derivatives of σ², on one line."""
    r = jnp.sqrt(q)
    z, weight = _single(activation, mean, r, nodes)
    f0, f1, f2, f3, f4 = activation.derivatives(mean[..., None] + r[..., None] * z)
    return BiasedSelfPartials(
        jnp.sum(weight * f0**2, -1),
        jnp.sum(weight * (f0 * f2 + f1**2), -1),
        jnp.sum(weight * (f0 * f4 / 2 + 2 * f1 * f3 + 1.5 * f2**2), -1),
        2 * jnp.sum(weight * f0 * f1, -1),
        jnp.sum(weight * (3 * f1 * f2 + f0 * f3), -1),
    )


def smooth_single(
    activation: Activation, q: Float[Array, "*shape"], mean: Float[Array, "*shape"], nodes: int
) -> list[Array]:
    """E[σ^(j)(mean + √q z)], j = 0…4, on one line."""
    r = jnp.sqrt(q)
    z, weight = _single(activation, mean, r, nodes)
    return [jnp.sum(weight * f, -1) for f in activation.derivatives(mean[..., None] + r[..., None] * z)]
