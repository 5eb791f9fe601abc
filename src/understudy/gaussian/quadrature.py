r"""Deterministic quadrature for every pair of activations that has no closed form.

Write x = (q12/√q22) t + √v z and y = √q22 t with t, z independent N(0, 1) and v = (q11 q22 - q12²)/q22. Then
E[f(x) g(y)] = E_t[g(y) E_z[f(x)]]. Steep activations have their poles close to x = 0 and y = 0, so both integrals use the
trapezoid rule after t = c sinh τ centred where the argument vanishes, with c the smallest scale involved: the mapped
integrand is analytic in a strip of half-width about π/4 whatever the norms, and the rule converges geometrically with a
number of nodes that grows like log(steepness × norm), where Gauss-Hermite would need its square.

Kinked activations (ReLU, |x|) paired with smooth ones are conditioned on instead: E[f(x) | y] is known exactly, and the
outer integral runs over the two half-lines with t = ±e^τ, which resolves every scale down to the smallest √v.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.activations import Activation, PiecewiseLinear
from understudy.gaussian.partials import Covariance, Estimated, Partials, SelfPartials

# The nine expectations of `Partials`: factor and orders of the two derivatives.
_TERMS: tuple[tuple[float, int, int], ...] = (
    (1.0, 0, 0),
    (0.5, 2, 0),
    (1.0, 1, 1),
    (0.5, 0, 2),
    (0.25, 4, 0),
    (0.5, 3, 1),
    (1.0, 2, 2),
    (0.5, 1, 3),
    (0.25, 0, 4),
)


def reach(*activations: Activation) -> float:
    """Where the Gaussian tail is cut: e^(-R²/2) R^growth < 1e-17 relative to the bulk."""
    growth = sum(a.growth for a in activations)
    return 9.0 + math.sqrt(2.0 * growth)


def nodes_needed(*steepness_times_norm: float) -> int:
    """Nodes a line needs for an error near 1e-15: the τ-range over the step that the strip π/4 allows."""
    scale = max(1.0, *steepness_times_norm)
    step = 2 * math.pi * (math.pi / 4) / math.log(1e15) * 0.85
    count = 2 * math.asinh(10.5 * scale) / step
    return 4 * math.ceil(count / 4) + 1


def _line(nodes: int, scale: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Nodes scale·sinh τ from low to high and their weights, along a new last axis."""
    bottom, top = jnp.arcsinh(low / scale), jnp.arcsinh(high / scale)
    fraction = jnp.linspace(0.0, 1.0, nodes)
    tau = bottom[..., None] + (top - bottom)[..., None] * fraction
    scale = scale[..., None]
    step = (top - bottom)[..., None] / (nodes - 1)
    return scale * jnp.sinh(tau), scale * jnp.cosh(tau) * step


def _density(z: Array) -> Array:
    return jnp.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


def smooth_partials(first: Activation, second: Activation, c: Covariance, nodes: int) -> Partials:
    """Both activations smooth."""
    inner_weight, inner, weight, outer = _integrand(first, second, c, nodes)
    return _sum(inner_weight, inner, weight, outer)


def smooth_with_error(first: Activation, second: Activation, c: Covariance, nodes: int) -> Estimated:
    """`smooth_partials` with an upper estimate of each error; see `_estimate`."""
    inner_weight, inner, weight, outer = _integrand(first, second, c, nodes)

    def strided(outer_stride: int, inner_stride: int) -> Partials:
        return _sum(
            inner_stride * inner_weight[..., ::inner_stride],
            [f[..., ::inner_stride] for f in inner],
            outer_stride * weight[..., ::outer_stride],
            [f[..., ::outer_stride] for f in outer],
            outer_stride,
        )

    best = strided(1, 1)
    sizes = _sum(inner_weight, [jnp.abs(f) for f in inner], weight, [jnp.abs(f) for f in outer])
    errors = [
        _estimate(b, o2, o4, size) + _estimate(b, i2, i4, size)
        for b, o2, o4, i2, i4, size in zip(
            best, strided(2, 1), strided(4, 1), strided(1, 2), strided(1, 4), sizes, strict=True
        )
    ]
    return Estimated(best, Partials(*errors), sizes)


def _integrand(
    first: Activation, second: Activation, c: Covariance, nodes: int
) -> tuple[Array, list[Array], Array, list[Array]]:
    """Weights and derivatives of σ1 on the inner lines (last two axes: outer, inner node) and of σ2 on the outer."""
    cut = reach(first, second)
    r1, r2 = jnp.sqrt(c.q11), jnp.sqrt(c.q22)
    present = c.q22 > 0
    slope = jnp.where(present, c.q12 / jnp.where(present, r2, 1.0), 0.0)
    spread = jnp.sqrt(jnp.where(present, jnp.maximum(c.determinant, 0.0) / jnp.where(present, c.q22, 1.0), c.q11))

    scale = 1 / jnp.maximum(1.0, jnp.maximum(first.steepness * r1, second.steepness * r2))
    t, weight = _line(nodes, scale, jnp.full_like(scale, -cut), jnp.full_like(scale, cut))

    mean = slope[..., None] * t
    sigma = jnp.broadcast_to(spread[..., None], mean.shape)
    centre = -mean / jnp.where(sigma > 0, sigma, 1.0)
    inside = (jnp.abs(centre) < cut) & (sigma > 0)
    centre = jnp.where(inside, centre, 0.0)
    fine = jnp.where(inside, 1 / jnp.maximum(1.0, first.steepness * sigma), 1.0)
    offset, inner_weight = _line(nodes, fine, -cut - centre, cut - centre)
    z = centre[..., None] + offset
    inner = first.derivatives(mean[..., None] + sigma[..., None] * z)
    outer = second.derivatives(r2[..., None] * t)
    return inner_weight * _density(z), list(inner), weight * _density(t), list(outer)


def _sum(inner_weight: Array, inner: list[Array], weight: Array, outer: list[Array], rows: int = 1) -> Partials:
    """The nine expectations; only every `rows`-th inner line is used."""
    smoothed = [jnp.sum((inner_weight * f)[..., ::rows, :], axis=-1) for f in inner]
    return Partials(*(k * jnp.sum(weight * smoothed[i] * outer[j], axis=-1) for k, i, j in _TERMS))


def _half_lines(cut: float, stride: int) -> tuple[Array, Array]:
    """Nodes ±e^τ of both half-lines with weights; e^τ runs from 1e-19 to the cut in steps of stride/16.

    A step of 1/8 makes exp(-2π (π/4) / step) = 7e-18 for the strip π/4 in which the Gaussian stays bounded.
    """
    step = stride / 16
    t = cut * jnp.exp(-step * jnp.arange(740 // stride))
    weight = t * step * _density(t)
    return jnp.concatenate([-t, t]), jnp.concatenate([weight, weight])


def kinked_partials(
    first: PiecewiseLinear, second: Activation, c: Covariance, nodes: int, stride: int = 2
) -> tuple[Partials, Partials]:
    """First activation slope·x + kink·|x|, second smooth; the second return is the size of the summands.

    E[|x| | y] with x | y ~ N(m, v) is m erf(m/√2v) + √(2v/π) e^(-m²/2v). Second and higher derivatives of |x| are
    2δ(x) and its derivatives, so those expectations condition on x = 0, where y ~ N(0, (q11 q22 - q12²)/q11).
    """
    cut = reach(first, second)
    determinant = jnp.maximum(c.determinant, 0.0)
    present1, present2 = c.q11 > 0, c.q22 > 0
    q11, q22 = jnp.where(present1, c.q11, 1.0), jnp.where(present2, c.q22, 1.0)

    t, weight = _half_lines(cut, stride)
    mean = jnp.where(present2, c.q12 / jnp.sqrt(q22), 0.0)[..., None] * t
    sigma = jnp.sqrt(jnp.where(present2, determinant / q22, c.q11))[..., None]
    ratio = mean / jnp.where(sigma > 0, sigma, 1.0)
    sign = jnp.where(sigma > 0, jax.lax.erf(ratio / math.sqrt(2)), jnp.sign(mean))
    smoothed = (
        first.slope * mean + first.kink * (mean * sign + jnp.where(sigma > 0, 2 * sigma * _density(ratio), 0.0)),
        first.slope + first.kink * sign,
    )
    outer = second.derivatives(jnp.sqrt(c.q22)[..., None] * t)

    def expect(i: int, j: int) -> tuple[Array, Array]:
        summand = weight * smoothed[i] * outer[j]
        return jnp.sum(summand, axis=-1), jnp.sum(jnp.abs(summand), axis=-1)

    at_zero = _single(second, jnp.where(present1, determinant / q11, c.q22), nodes, stride)
    density = jnp.where(present1, 2 * first.kink / jnp.sqrt(2 * math.pi * q11), jnp.nan if first.kink else 0.0)
    tilt = c.q12 / q11
    m0, m2 = (density * at_zero[0][j] for j in (0, 2))
    s0, s2 = (jnp.abs(density) * at_zero[1][j] for j in (0, 2))
    (g, gs), (g12, g12s), (g22, g22s) = expect(0, 0), expect(1, 1), expect(0, 2)
    (g1222, g1222s), (g2222, g2222s) = expect(1, 3), expect(0, 4)
    if first.kink:
        g12 = jnp.where(present1, g12, jnp.nan)
        g1222 = jnp.where(present1, g1222, jnp.nan)
    values = Partials(
        value=g,
        q11=m0 / 2,
        q12=g12,
        q22=g22 / 2,
        q11q11=(tilt**2 * m2 - m0 / q11) / 4,
        q11q12=-tilt * m2 / 2,
        q12q12=m2,
        q12q22=g1222 / 2,
        q22q22=g2222 / 4,
    )
    sizes = Partials(
        gs,
        s0 / 2,
        g12s,
        g22s / 2,
        (tilt**2 * s2 + s0 / q11) / 4,
        jnp.abs(tilt) * s2 / 2,
        s2,
        g1222s / 2,
        g2222s / 4,
    )
    return values, sizes


def _single(activation: Activation, q: Array, nodes: int, stride: int = 1) -> tuple[list[Array], list[Array]]:
    """E[σ^(j)(√q z)] for j = 0…4, and the same with absolute values."""
    r = jnp.sqrt(q)
    cut = reach(activation, activation)
    scale = 1 / jnp.maximum(1.0, activation.steepness * r)
    z, weight = _line(nodes, scale, jnp.full_like(scale, -cut), jnp.full_like(scale, cut))
    weight = weight[..., ::stride] * stride * _density(z[..., ::stride])
    values = activation.derivatives(r[..., None] * z[..., ::stride])
    return [jnp.sum(weight * f, -1) for f in values], [jnp.sum(weight * jnp.abs(f), -1) for f in values]


def smooth_self_partials(activation: Activation, q: Float[Array, "*shape"], nodes: int) -> SelfPartials:
    """D(q) = E[σ²], D' = ½E[(σ²)''], D'' = ¼E[(σ²)''''] on one line."""
    r = jnp.sqrt(q)
    cut = reach(activation, activation)
    scale = 1 / jnp.maximum(1.0, activation.steepness * r)
    z, weight = _line(nodes, scale, jnp.full_like(scale, -cut), jnp.full_like(scale, cut))
    weight = weight * _density(z)
    f0, f1, f2, f3, f4 = activation.derivatives(r[..., None] * z)
    return SelfPartials(
        jnp.sum(weight * f0**2, -1),
        jnp.sum(weight * (f0 * f2 + f1**2), -1),
        jnp.sum(weight * (f0 * f4 / 2 + 2 * f1 * f3 + 1.5 * f2**2), -1),
    )


def kinked_with_error(first: PiecewiseLinear, second: Activation, c: Covariance, nodes: int) -> Estimated:
    """`kinked_partials` with an upper estimate of each error; see `_estimate`."""
    best, sizes = kinked_partials(first, second, c, nodes, 1)
    by_two, by_four = (kinked_partials(first, second, c, nodes, stride)[0] for stride in (2, 4))
    errors = [_estimate(b, m, w, size) for b, m, w, size in zip(best, by_two, by_four, sizes, strict=True)]
    return Estimated(best, Partials(*errors), sizes)


def _estimate(best: Array, half: Array, quarter: Array, size: Array) -> Array:
    """An upper estimate of the error of `best` from the same rule with half and a quarter of the nodes.

    If halving the step multiplies the error by at most ρ = |best - half| / |half - quarter| again, what is left is at
    most |best - half| ρ/(1-ρ); geometric convergence, the usual case, makes it far smaller. Rounding adds a few
    units in the last place of the sum of absolute values.
    """
    change, earlier = jnp.abs(best - half), jnp.abs(half - quarter)
    ratio = jnp.minimum(change / jnp.where(earlier > 0, earlier, 1.0), 1.0)
    return 2 * change * ratio + 64 * jnp.finfo(float).eps * size
