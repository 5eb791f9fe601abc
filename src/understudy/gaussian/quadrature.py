r"""Deterministic quadrature for every pair of activations that has no closed form.

Write x = (q12/√q22) t + √v z and y = √q22 t with t, z independent N(0, 1) and v = (q11 q22 - q12²)/q22. Then E[f(x)
g(y)] = E_t[g(y) E_z[f(x)]]. Steep activations have their poles close to x = 0 and y = 0, so both integrals use the
trapezoid rule after t = c sinh τ centred where the argument vanishes, with c the smallest scale involved. The mapped
integrand is analytic in a strip of half-width about π/4, whatever the norms are. So the rule converges geometrically,
with a number of nodes that grows like log(steepness × norm). Gauss-Hermite would need (steepness × norm)² nodes.

Kinked activations (ReLU, |x|) paired with smooth ones are conditioned on instead: E[f(x) | y] is known exactly, and the
outer integral runs over the two half-lines with t = ±e^τ, which resolves every scale down to the smallest √v.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import Activation, PiecewiseLinear
from understudy.gaussian.partials import TERMS, Covariance, Partials, SelfPartials

Stacked = tuple[Float[Array, " e *shape"], Float[Array, " e *shape"], Float[Array, " e *shape"]]
_ORDERS = np.array([i for _, i, _ in TERMS]), np.array([j for _, _, j in TERMS])


def reach(*activations: Activation) -> float:
    """The distance R at which the Gaussian tail is cut: e^(-R²/2) R^growth < 1e-17 relative to the bulk."""
    growth = sum(a.growth for a in activations)
    return 9.0 + math.sqrt(2.0 * growth)


_FURTHEST = 9.0
"""Inner lines are centred where the argument vanishes if that is less than this many standard deviations away. Further
out a steep activation has a weight below e^-40."""


def nodes_needed(*steepness_times_norm: float) -> int:
    """The number of nodes that a line needs for an error near 1e-16.

    The strip π/4 would allow the step 2π (π/4) / log 1e16 = 0.13. But around z the nodes of a line centred at c are
    |z - c| × step apart, and the Gaussian needs e^(-2π²/spacing²) small at a distance of 9: 3e-17 with a step of 0.08.
    The range ends at 13 standard deviations (see `reach`; polynomials above the eighth degree take a longer step).
    """
    scale = max(1.0, *steepness_times_norm)
    count = 2 * math.asinh(13.0 * scale) / 0.08
    return 4 * math.ceil(count / 4) + 1


def _line(nodes: int, scale: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Nodes scale·sinh τ from low to high and their weights, along a new last axis."""
    bottom, top = jnp.arcsinh(low / scale), jnp.arcsinh(high / scale)
    bottom, top, scale = bottom[..., None], top[..., None], scale[..., None]
    step = (top - bottom) / (nodes - 1)
    e = jnp.exp(bottom + step * _along_last(jnp.arange(nodes), bottom.ndim))
    return scale / 2 * (e - 1 / e), scale / 2 * (e + 1 / e) * step


def _along_last(row: Array, ndim: int) -> Array:
    """A vector as the last of `ndim` axes."""
    return row.reshape((1,) * (ndim - 1) + row.shape)


def _density(z: Array) -> Array:
    return jnp.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


# Each rule is summed over all of its nodes, every second and every fourth; the three sums give its error.
_STRIDES = (1, 2, 4)


def _thinning(nodes: int, strides: tuple[int, ...]) -> Float[Array, "nodes strides"]:
    """The matrix that turns the summands of a trapezoid rule into its sums at every stride-th node."""
    index = jnp.arange(nodes)
    return jnp.stack([jnp.where(index % stride == 0, float(stride), 0.0) for stride in strides], axis=1)


def _ends(nodes: int) -> Float[Array, " nodes"]:
    """The vector that picks the first and the last summand: the rule has no nodes beyond them."""
    return jnp.zeros(nodes).at[jnp.array([0, -1])].set(1.0)


def smooth_partials(first: Activation, second: Activation, c: Covariance, nodes: int) -> Partials:
    """Both activations smooth."""
    inner, outer = _summands(first, second, c, nodes)
    smoothed = inner @ jnp.ones(nodes)
    return Partials(*jnp.sum(smoothed[_ORDERS[0]] * _weighted(outer), axis=-1))


def smooth_with_error(first: Activation, second: Activation, c: Covariance, nodes: int) -> Stacked:
    """`smooth_partials` with an upper estimate of each error (see `_estimate`) and the size of the summands."""
    inner, outer = _summands(first, second, c, nodes)
    thinning, ends = _thinning(nodes, _STRIDES), _ends(nodes)
    smoothed = (inner @ thinning)[_ORDERS[0]]  # (expectation, …, outer node, inner stride)
    magnitude = (jnp.abs(inner) @ jnp.stack([jnp.ones(nodes), ends], axis=1))[_ORDERS[0]]
    rows = _weighted(outer)[..., None]
    sums = jnp.swapaxes(rows * smoothed, -1, -2) @ thinning  # (expectation, …, inner stride, outer stride)
    bulk, tail = jnp.moveaxis(jnp.abs(rows) * magnitude, -1, 0)
    size, cut = jnp.sum(bulk, axis=-1), jnp.sum(tail, axis=-1) + bulk @ ends
    error = _estimate(sums[..., 0, :], size, cut) + _estimate(sums[..., :, 0], size, cut)
    return sums[..., 0, 0], error, size


def _weighted(outer: Float[Array, "5 *shape nodes"]) -> Float[Array, "9 *shape nodes"]:
    """The second factor of each of the nine expectations, times its prefactor."""
    factors = jnp.array([k for k, _, _ in TERMS])
    return outer[_ORDERS[1]] * factors.reshape(-1, *(1,) * (outer.ndim - 1))


def _summands(
    first: Activation, second: Activation, c: Covariance, nodes: int
) -> tuple[Float[Array, "5 *shape nodes nodes"], Float[Array, "5 *shape nodes"]]:
    """Weighted derivatives of σ1 on the inner lines (last two axes: outer, inner node) and of σ2 on the outer line."""
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
    inside = (jnp.abs(centre) < _FURTHEST) & (sigma > 0)
    centre = jnp.where(inside, centre, 0.0)
    fine = jnp.where(inside, 1 / jnp.maximum(1.0, first.steepness * sigma), 1.0)
    offset, inner_weight = _line(nodes, fine, -cut - centre, cut - centre)
    z = centre[..., None] + offset
    inner = first.derivatives(mean[..., None] + sigma[..., None] * z)
    outer = second.derivatives(r2[..., None] * t)
    inner_weight, weight = inner_weight * _density(z), weight * _density(t)
    return jnp.stack([inner_weight * f for f in inner]), jnp.stack([weight * f for f in outer])


_HALF_LINE = 740


def _half_lines(cut: float, ndim: int, stride: int) -> tuple[Array, Array]:
    """Nodes ±e^τ of both half-lines with weights; e^τ runs from 1e-19 to the cut in steps of stride/16.

    A step of 1/8 makes exp(-2π (π/4) / step) = 7e-18 for the strip π/4 in which the Gaussian stays bounded.
    """
    step = stride / 16
    t = cut * jnp.exp(-step * jnp.arange(_HALF_LINE // stride))
    weight = t * step * _density(t)
    return _along_last(jnp.concatenate([-t, t]), ndim), _along_last(jnp.concatenate([weight, weight]), ndim)


def kinked_partials(first: PiecewiseLinear, second: Activation, c: Covariance, nodes: int) -> Partials:
    """First activation slope·x + kink·|x|, second smooth.

    E[|x| | y] with x | y ~ N(m, v) is m erf(m/√2v) + √(2v/π) e^(-m²/2v). Second and higher derivatives of |x| are
    2δ(x) and its derivatives, so those expectations condition on x = 0, where y ~ N(0, (q11 q22 - q12²)/q11). With an
    odd second activation E[|x| σ2(y)] = 0 and no kink is left, with an even one E[x σ2(y)] = 0.
    """
    half = _HALF_LINE // 2
    sums = _kinked_sums(first, second, c, nodes, 2, jnp.ones((2 * half, 1)), jnp.ones((nodes, 1)))
    return Partials(*(s.values[..., 0] for s in sums))


def kinked_with_error(first: PiecewiseLinear, second: Activation, c: Covariance, nodes: int) -> Stacked:
    """`kinked_partials` with an upper estimate of each error (see `_estimate`) and the size of the summands."""
    along = jnp.tile(_thinning(_HALF_LINE, _STRIDES), (2, 1))
    sums = _kinked_sums(first, second, c, nodes, 1, along, _thinning(nodes, _STRIDES))
    values, size, ends = (jnp.stack(part) for part in zip(*sums, strict=True))
    return values[..., 0], _estimate(values, size, ends), size


class _Sums(NamedTuple):
    """The sums of a rule at each stride, the sum of absolute values, and the summands at the ends."""

    values: Float[Array, "*shape strides"]
    size: Float[Array, "*shape"]
    ends: Float[Array, "*shape"]

    def plus(self, other: "_Sums") -> "_Sums":
        return _Sums(*(a + b for a, b in zip(self, other, strict=True)))


def _sums(summands: Array, thinning: Array, ends: Array) -> list[_Sums]:
    """The sums of each row of summands."""
    magnitude = jnp.abs(summands)
    parts = summands @ thinning, jnp.sum(magnitude, axis=-1), magnitude @ ends
    return [_Sums(*part) for part in zip(*parts, strict=True)]


def _kinked_sums(
    first: PiecewiseLinear, second: Activation, c: Covariance, nodes: int, stride: int, along: Array, at: Array
) -> list[_Sums]:
    """The nine expectations, each thinned by the columns of `along` (half-lines) or `at` (line)."""
    if second.parity == "odd":
        first = replace(first, kink=0.0)
    elif second.parity == "even":
        first = replace(first, slope=0.0)
    determinant = jnp.maximum(c.determinant, 0.0)
    present1, present2 = c.q11 > 0, c.q22 > 0
    q11, q22 = jnp.where(present1, c.q11, 1.0), jnp.where(present2, c.q22, 1.0)

    t, weight = _half_lines(reach(first, second), c.q12.ndim + 1, stride)
    mean = jnp.where(present2, c.q12 / jnp.sqrt(q22), 0.0)[..., None] * t
    sigma = jnp.sqrt(jnp.where(present2, determinant / q22, c.q11))[..., None]
    ratio = mean / jnp.where(sigma > 0, sigma, 1.0)
    sign = jnp.where(sigma > 0, jax.lax.erf(ratio / math.sqrt(2)), jnp.sign(mean))
    smoothed = (
        first.slope * mean + first.kink * (mean * sign + jnp.where(sigma > 0, 2 * sigma * _density(ratio), 0.0)),
        first.slope + first.kink * sign,
    )
    outer = second.derivatives(jnp.sqrt(c.q22)[..., None] * t)
    # A kinked neuron of zero norm has no derivatives, except the first by the variance of the other neuron.
    exists = jnp.where(present1, 1.0, jnp.nan if first.kink else 1.0)

    moments = _single(second, jnp.where(present1, determinant / q11, c.q22), nodes)
    density = 2 * first.kink / jnp.sqrt(2 * math.pi * q11) * exists
    tilt = c.q12 / q11

    # Integrals over the half-lines: value, q12, q22, q12q22, q22q22.
    factors = (jnp.ones_like(exists), exists, jnp.where(present2, 1.0, exists) / 2, exists / 2, exists / 4)
    orders = ((0, 0), (1, 1), (0, 2), (1, 3), (0, 4))
    summands = [k[..., None] * weight * smoothed[i] * outer[j] for k, (i, j) in zip(factors, orders, strict=True)]
    value, by_12, by_22, by_12_22, by_22_22 = _sums(jnp.stack(summands), along, jnp.tile(_ends(len(along) // 2), 2))
    # Expectations given x = 0: q11, the two parts of q11q11, q11q12, q12q12.
    factors = (density / 2, density * tilt**2 / 4, -density / (4 * q11), -density * tilt / 2, density)
    summands = [k[..., None] * moments[j] for k, j in zip(factors, (0, 2, 0, 2, 2), strict=True)]
    by_11, bent, bare, by_11_12, by_12_12 = _sums(jnp.stack(summands), at, _ends(nodes))
    return [value, by_11, by_12, by_22, bent.plus(bare), by_11_12, by_12_12, by_12_22, by_22_22]


def _single(activation: Activation, q: Array, nodes: int) -> list[Array]:
    """Summands of E[σ^(j)(√q z)] for j = 0…4 on a line of nodes, the last axis."""
    r = jnp.sqrt(q)
    cut = reach(activation, activation)
    scale = 1 / jnp.maximum(1.0, activation.steepness * r)
    z, weight = _line(nodes, scale, jnp.full_like(scale, -cut), jnp.full_like(scale, cut))
    weight = weight * _density(z)
    return [weight * f for f in activation.derivatives(r[..., None] * z)]


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


def _estimate(
    sums: Float[Array, "*shape 3"], size: Float[Array, "*shape"], ends: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """An upper estimate of the error of a rule from its sums at all, half and a quarter of the nodes.

    Let ρ = |best - half| / |half - quarter|. Where the rule converges geometrically, halving the step squares the
    error, and what is left is about |best - half| ρ; 4 |best - half| √ρ leaves room for phases that happen to cancel.
    If ρ > ¼ the rule does not converge yet, and the estimate is four times the largest change. If that is more than a
    millionth of the size, oscillations may be aliased at every stride, and the estimate is the size itself.
    Rounding adds a few units in the last place of the sum of absolute values.

    The rule has no nodes beyond its ends. A summand there is about f·φ·R·step with the cut R ≥ 9 and R·step ≥ ¼, and
    the tail of f·φ is below f(R)φ(R) if f grows by less than e^(R-1) per unit: four summands bound it. Where that is
    more than a thousandth of the sum, the integrand has not decayed, and the error may be anything.
    """
    best, half, quarter = sums[..., 0], sums[..., 1], sums[..., 2]
    change, earlier = jnp.abs(best - half), jnp.abs(half - quarter)
    ratio = change / jnp.where(earlier > 0, earlier, 1.0)
    largest = jnp.maximum(change, earlier)
    unresolved = 4 * largest + jnp.where(largest > 1e-6 * size, size, 0.0)
    discretisation = jnp.where(ratio <= 0.25, 4 * change * jnp.sqrt(ratio), unresolved)
    truncation = jnp.where(4 * ends > 1e-3 * size, jnp.inf, 4 * ends)
    rounding = 64 * jnp.finfo(float).eps * size
    # Changes within the rounding say nothing about convergence.
    return jnp.where(largest <= rounding, 0.0, discretisation) + truncation + rounding
