r"""Closed forms with biases: E[σ1(m1 + x) σ2(m2 + y)], (x, y) ~ N(0, Q), and the expectations of derivatives.

All follow from E_ij = E[σ1^(i) σ2^(j)] of low order and one identity. For erf, σ'' = -xσ', and Stein's lemma gives
(1 + q11) E_20 + q12 E_11 + m1 E_10 = 0; differentiate by m1 and m2 for the others. For a kinked σ1, σ1'' is a point
mass at 0, so that E[(m1 + x) σ1'' …] = 0. This is the same identity with q11 in place of 1 + q11, one order higher.

- erf: E_00 = S(h)S(k) + 4 ∫_0^ρ φ2, S = erf(·/√2), h = m1/√(1+q11), k = m2/√(1+q22), ρ = q12/√((1+q11)(1+q22));
  E_10 and E_11 are elementary.
- slope·x + kink·|x| = right·x₊ + left·(-x)₊: sums of E[(m1 + x)₊(m2 + y)₊] (`bivariate`) over signs of x and y.
- polynomials: E_ij = Σ_m q12^m/m! A_(m+i) B_(m+j), A_m = E[σ1^(m)(m1 + x)]; in Hermite polynomials of variance v,
  e_j = E[He_j(m1 + x)] obeys e_(j+1) = m1 e_j + j (q11 - v) e_(j-1).
"""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.activations import PiecewiseLinear, Polynomial
from understudy.gaussian import bivariate
from understudy.gaussian.bivariate import density, distribution, excess, quadrant
from understudy.gaussian.partials import BiasedPartials, BiasedSelfPartials, Covariance

Means = tuple[Array, Array]
_Expectations = dict[tuple[int, int], Array]


def _swap(e: _Expectations) -> _Expectations:
    return {(j, i): x for (i, j), x in e.items()}


def _differentiate(e: _Expectations, mean: Array, q12: Array, own: Array, sign: float, extra: float) -> None:
    """E_30 and E_40 from own·E_20 + q12 E_11 + mean·E_10 = 0 (`extra` 1), or from one order higher (`extra` 0)."""
    e[3, 0] = sign * (extra * e[1, 0] + mean * e[2, 0] + q12 * e[2, 1]) / own
    e[4, 0] = sign * ((1 + extra) * e[2, 0] + mean * e[3, 0] + q12 * e[3, 1]) / own


def erf_partials(c: Covariance, means: Means, nodes: int = bivariate.QUICK) -> tuple[BiasedPartials, BiasedPartials]:
    """Both activations erf(x/√2): the partials, and the sums of their summands' absolute values."""
    m1, m2 = means
    a, b, q12 = 1 + c.q11, 1 + c.q22, c.q12
    gap = 1 + c.q11 + c.q22 + jnp.maximum(c.determinant, 0.0)  # (1+q11)(1+q22) - q12², without cancellation
    root_a, root_b, root = jnp.sqrt(a), jnp.sqrt(b), jnp.sqrt(gap)
    h, k, length = m1 / root_a, m2 / root_b, root_a * root_b
    cosine, sine = q12 / length, root / length
    joint = 4 * _joint(h, k, cosine, sine, nodes)
    apart = _sign(h) * _sign(k)
    # The density of (m1 + x, m2 + y) at 0 with unit noise; t1, t2 are the tilts (I + Q)^-1 m.
    along1, along2 = bivariate.across(h, k, cosine, sine)
    e11 = 2 / math.pi / root * jnp.exp(-(h**2 + along1**2) / 2)
    e10, e01 = 2 * density(h) / root_a * _sign(along1), 2 * density(k) / root_b * _sign(along2)
    apart, joint, e11, e10, e01 = bivariate.keep(apart, joint, e11, e10, e01)
    base = {(0, 0): apart + joint, (1, 1): e11, (1, 0): e10, (0, 1): e01}
    sizes = {key: jnp.abs(x) for key, x in base.items()}
    sizes[0, 0] = jnp.abs(apart) + jnp.abs(joint)
    found = []
    for e, absolute in ((base, False), (sizes, True)):
        u1, u2, q = (jnp.abs(x) if absolute else x for x in (m1, m2, q12))
        s = 1.0 if absolute else -1.0
        t1, t2 = (b * u1 + s * q * u2) / gap, (a * u2 + s * q * u1) / gap
        e[2, 1], e[1, 2] = s * t1 * e11, s * t2 * e11
        e[2, 2] = (t1 * t2 + q / gap) * e11
        e[3, 1], e[1, 3] = (t1**2 + s * b / gap) * e11, (t2**2 + s * a / gap) * e11
        e[2, 0] = s * (u1 * e[1, 0] + q * e11) / a
        e[0, 2] = s * (u2 * e[0, 1] + q * e11) / b
        _differentiate(e, u1, q, a, s, 1.0)
        swapped = _swap(e)
        _differentiate(swapped, u2, q, b, s, 1.0)
        found.append(BiasedPartials.from_expectations(_swap(swapped)))
    return found[0], found[1]


def _joint(h: Array, k: Array, cosine: Array, sine: Array, nodes: int) -> Array:
    """∫_0^ρ φ2(h, k; t) dt, to rounding if `nodes` is `QUICK`, else relatively exact in the tails."""
    if nodes == bivariate.QUICK:
        return bivariate.joint(h, k, cosine, sine)
    sign = jnp.where(cosine < 0, -1.0, 1.0)
    end, beyond = bivariate.hyperbolic(cosine, sine), jnp.zeros(h.shape, bool)
    return sign * bivariate.integrals(h, sign * k, end, beyond, nodes).zeroth


def _sign(h: Array) -> Array:
    """E[sign(h + z)] = erf(h/√2)."""
    return jax.lax.erf(h / math.sqrt(2))


def piecewise_linear_partials(
    first: PiecewiseLinear, second: PiecewiseLinear, c: Covariance, means: Means, nodes: int = bivariate.QUICK
) -> tuple[BiasedPartials, BiasedPartials]:
    """Both activations slope·x + kink·|x|: the partials (NaN where they do not exist), and their summands' sizes.

    A kinked neuron of zero norm is smooth unless its bias is zero as well. At u = ±1 the second partials do not exist
    where both kinks lie at the same input.
    """
    (m1, m2), q12 = means, c.q12
    r1, r2, s = jnp.sqrt(c.q11), jnp.sqrt(c.q22), jnp.sqrt(jnp.maximum(c.determinant, 0.0))
    h, k = _threshold(m1, r1), _threshold(m2, r2)
    tails = nodes > bivariate.QUICK
    forward, meeting = _at_kink(first, second, (m1, h, r1, c.q11), m2, q12, s, tails)
    backward, _ = _at_kink(second, first, (m2, k, r2, c.q22), m1, q12, s, tails)
    quadrants: Any
    if tails:
        quadrants = _quadrants(first, second, c, (m1, m2), (h, k), s, nodes)
    else:
        both = _slopes_together(first, second, (h, k), q12, s)
        *kinks, both = bivariate.keep(*forward, *backward, both)
        forward, backward = (kinks[0], kinks[1], kinks[2]), (kinks[3], kinks[4], kinks[5])
        quadrants = ((None, both), (None, jnp.abs(both)))
    forward = (*forward[:2], jnp.where(meeting, jnp.nan, forward[2]))
    lost = [(kink != 0) & (r == 0) & (m == 0) for kink, r, m in ((first.kink, r1, m1), (second.kink, r2, m2))]
    found = []
    for absolute, (value, both) in enumerate(quadrants):
        e: _Expectations = {(1, 1): both}
        e[2, 0], e[2, 1], e[2, 2] = (jnp.abs(x) if absolute else x for x in forward)
        e[0, 2], e[1, 2], _ = (jnp.abs(x) if absolute else x for x in backward)
        u1, u2, q = (jnp.abs(x) if absolute else x for x in (m1, m2, q12))
        e = _from_kinks(e, c, u1, u2, q, 1.0 if absolute else -1.0)
        e[0, 0] = u1 * e[1, 0] + c.q11 * e[2, 0] + q * e[1, 1] if value is None else value
        for order in (0, 1):
            e = {key: jnp.where(lost[order], jnp.nan, x) if key[order] > 0 else x for key, x in e.items()}
        found.append(BiasedPartials.from_expectations(e))
    return found[0], found[1]


def _slopes_together(
    first: PiecewiseLinear, second: PiecewiseLinear, at: Means, q12: Array, s: Array
) -> Float[Array, "*shape"]:
    """E_11: the product of the mean slopes, plus 4 kink1 kink2 times the covariance of the two steps."""
    h, k = at
    apart = mixed_slope(_sides(first), h) * mixed_slope(_sides(second), k)
    weight = 4 * first.kink * second.kink
    if not weight:
        return apart
    length = jnp.sqrt(q12**2 + s**2)
    there = length > 0
    safe = jnp.where(there, length, 1.0)
    return apart + weight * bivariate.joint(h, k, q12 / safe, jnp.where(there, s / safe, 1.0))


def _from_kinks(e: _Expectations, c: Covariance, m1: Array, m2: Array, q12: Array, sign: float) -> _Expectations:
    """The other expectations: σ = (m + x)σ' gives E_10 and E_01, (m + x)σ'' = 0 those of higher order.

    E_00 follows in the same way, but cancels in the tails; `_quadrants` computes it without cancellation.
    """
    own1, own2 = jnp.where(c.q11 > 0, c.q11, 1.0), jnp.where(c.q22 > 0, c.q22, 1.0)
    e[1, 0] = m2 * e[1, 1] + q12 * e[2, 1] + c.q22 * e[1, 2]
    e[0, 1] = m1 * e[1, 1] + q12 * e[1, 2] + c.q11 * e[2, 1]
    e[3, 1] = sign * (m1 * e[2, 1] + q12 * e[2, 2]) / own1
    e[1, 3] = sign * (m2 * e[1, 2] + q12 * e[2, 2]) / own2
    _differentiate(e, m1, q12, own1, sign, 0.0)
    swapped = _swap(e)
    _differentiate(swapped, m2, q12, own2, sign, 0.0)
    return _swap(swapped)


def _threshold(mean: Array, norm: Array) -> Array:
    """mean/norm. If the norm is 0, a number so large that every density vanishes, or 0 if the mean is 0."""
    return jnp.where(norm > 0, mean / jnp.where(norm > 0, norm, 1.0), 1e30 * jnp.sign(mean))


def mixed(sides: tuple[float, float], mean: Array, norm: Array, h: Array, tails: bool = False) -> Array:
    """E[σ(mean + norm z)] of σ = right·x₊ + left·(-x)₊; `tails` as in `excess`."""
    (right, left), zero = sides, jnp.zeros_like(h)
    up = right * excess(mean, norm, h, tails) if right else zero
    return up + left * excess(-mean, norm, -h, tails) if left else up


def mixed_slope(sides: tuple[float, float], h: Array) -> Array:
    """E[σ'(mean + norm z)] of σ = right·x₊ + left·(-x)₊. The odd part is an error function, so nothing cancels."""
    (right, left), common = sides, min(sides)
    return common * _sign(h) + (right - common) * distribution(h) - (left - common) * distribution(-h)


def _sides(activation: PiecewiseLinear) -> tuple[float, float]:
    """Slopes of σ(x) = right·x₊ + left·(-x)₊."""
    return activation.kink + activation.slope, activation.kink - activation.slope


def _quadrants(
    first: PiecewiseLinear, second: PiecewiseLinear, c: Covariance, means: Means, at: Means, s: Array, nodes: int
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """E[σ1σ2] and E[σ1'σ2'] as sums over the signs of the two arguments, and the sums of absolute values."""
    (m1, m2), (h, k), r1, r2 = means, at, jnp.sqrt(c.q11), jnp.sqrt(c.q22)
    value, both, value_size, both_size = (jnp.zeros_like(c.q12) for _ in range(4))
    for sign1, side1 in zip((1, -1), _sides(first), strict=True):
        for sign2, side2 in zip((1, -1), _sides(second), strict=True):
            if side1 * side2 == 0:
                continue
            q12, weight = sign1 * sign2 * c.q12, side1 * side2
            q = quadrant(sign1 * h, sign2 * k, q12, s, nodes)
            tails = nodes > bivariate.QUICK
            apart = excess(sign1 * m1, r1, sign1 * h, tails) * excess(sign2 * m2, r2, sign2 * k, tails)
            linear = q12 * distribution(sign1 * h) * distribution(sign2 * k)
            apart, linear = jnp.where(q.bare, 0.0, apart), jnp.where(q.bare, 0.0, linear)
            value += weight * (apart + linear + r1 * r2 * q.rest)
            value_size += abs(weight) * (apart + jnp.abs(linear) + r1 * r2 * q.rest)
            both += sign1 * sign2 * weight * q.probability
            both_size += abs(weight) * q.probability
    return (value, both), (value_size, both_size)


def _at_kink(
    first: PiecewiseLinear,
    second: PiecewiseLinear,
    own: tuple[Array, Array, Array, Array],
    mean2: Array,
    q12: Array,
    s: Array,
    tails: bool,
) -> tuple[tuple[Array, Array, Array], Array]:
    """E_20, E_21 and E_22, where σ1'' = 2 kink δ: expectations of σ2, σ2' and σ2'' given that σ1 is at its kink.

    Also whether both kinks lie at the same input for every input, so that E_22 does not exist.
    """
    mean, h, norm, q11 = own
    zero = jnp.zeros_like(q12)
    if first.kink == 0:
        return (zero, zero, zero), jnp.zeros(q12.shape, bool)
    safe = jnp.where(norm > 0, norm, 1.0)
    weight = 2 * first.kink * density(h) / safe
    mu, tau = mean2 - q12 / jnp.where(q11 > 0, q11, 1.0) * mean, s / safe
    spread = tau > 0
    ratio = jnp.where(spread, mu / jnp.where(spread, tau, 1.0), 1e30 * jnp.sign(mu))
    right, left = _sides(second)
    smoothed = mixed((right, left), mu, tau, ratio, tails)
    slope = mixed_slope((right, left), ratio)
    mass = 2 * second.kink * density(ratio) / jnp.where(spread, tau, 1.0)
    meeting = ~spread & (mu == 0) & (weight != 0) & (second.kink != 0)
    return (weight * smoothed, weight * slope, jnp.where(meeting, 0.0, weight * mass)), meeting


def piecewise_linear_self_partials(
    activation: PiecewiseLinear, q: Float[Array, "*shape"], mean: Float[Array, "*shape"]
) -> BiasedSelfPartials:
    """D = right² E[(m + x)₊²] + left² E[(-m - x)₊²]; at zero norm and bias its derivatives by q do not exist."""
    r = jnp.sqrt(q)
    h = _threshold(mean, r)
    right, left = (side**2 for side in _sides(activation))
    safe = jnp.where(r > 0, r, 1.0)
    bend = (right - left) * density(h) / safe
    exists = jnp.where((r > 0) | (mean != 0) | (right == left), 1.0, jnp.nan)
    return BiasedSelfPartials(
        right * bivariate.squared_excess(mean, r, h) + (left * bivariate.squared_excess(-mean, r, -h) if left else 0.0),
        exists * (right * distribution(h) + left * distribution(-h)),
        exists * -bend * mean / jnp.where(q > 0, q, 1.0) / 2,
        2 * mixed((right, -left), mean, r, h),
        exists * bend,
    )


def polynomial_partials(
    first: Polynomial, second: Polynomial, c: Covariance, means: Means
) -> tuple[BiasedPartials, BiasedPartials]:
    """Both activations polynomials: the partials, and the sums of their summands' absolute values."""
    gaps = c.q11 - first.variance, c.q22 - second.variance
    found = []
    for absolute in (False, True):
        m1, m2, gap1, gap2, q12 = (jnp.abs(x) if absolute else x for x in (*means, *gaps, c.q12))
        one, two = (
            replace(p, coefficients=tuple(map(abs, p.coefficients))) if absolute else p for p in (first, second)
        )
        count = min(len(one.coefficients), len(two.coefficients))
        a, b = (_smoothed(p, g, m, count + 4) for p, g, m in ((one, gap1, m1), (two, gap2, m2)))
        powers = [jnp.ones_like(q12)]
        for m in range(1, count):
            powers.append(powers[-1] * q12 / m)
        found.append(
            BiasedPartials.from_expectations(
                {
                    (i, j): sum((p * a[m + i] * b[m + j] for m, p in enumerate(powers)), start=jnp.zeros_like(q12))
                    for i in range(5)
                    for j in range(5 - i)
                }
            )
        )
    return found[0], found[1]


def _smoothed(activation: Polynomial, gap: Array, mean: Array, count: int) -> list[Array]:
    """A_m = E[σ^(m)(mean + x)] for m < count, from gap = variance of x - variance of the polynomials."""
    moments = [jnp.ones_like(gap), mean]
    for j in range(1, len(activation.coefficients)):
        moments.append(mean * moments[j] + j * gap * moments[j - 1])
    result = []
    for m in range(count):
        terms = [
            coefficient * math.perm(degree, m) * moments[degree - m]
            for degree, coefficient in enumerate(activation.coefficients)
            if coefficient != 0 and degree >= m
        ]
        result.append(sum(terms, start=jnp.zeros_like(gap)))
    return result


def self_from_pair(p: BiasedPartials) -> BiasedSelfPartials:
    """D(q, m) = G(q, q, q, m, m)."""
    return BiasedSelfPartials(
        p.value,
        p.q11 + p.q12 + p.q22,
        p.q11q11 + p.q22q22 + 2 * (p.q11q12 + p.q12q22) + 1.5 * p.q12q12,
        p.m1 + p.m2,
        p.q11m1 + p.q22m2 + 1.5 * (p.q12m1 + p.q12m2),
    )


def erf_single(q: Float[Array, "*shape"], mean: Float[Array, "*shape"]) -> list[Array]:
    """E[σ^(j)(mean + √q z)] of erf(·/√2), j = 0…4."""
    length = jnp.sqrt(1 + q)
    h = mean / length
    bump = 2 * density(h) / length
    return [_sign(h), bump, -h * bump / length, (h**2 - 1) * bump / length**2, (3 - h**2) * h * bump / length**3]


def piecewise_linear_single(
    activation: PiecewiseLinear, q: Float[Array, "*shape"], mean: Float[Array, "*shape"]
) -> list[Array]:
    """E[σ^(j)(mean + √q z)] of slope·x + kink·|x|, j = 0…4; NaN where norm and bias are zero."""
    r = jnp.sqrt(q)
    h, safe = _threshold(mean, r), jnp.where(r > 0, r, 1.0)
    right, left = _sides(activation)
    exists = jnp.where((r > 0) | (mean != 0) | (activation.kink == 0), 1.0, jnp.nan)
    bump = exists * 2 * activation.kink * density(h) / safe
    tilt = jnp.where(bump == 0, 0.0, h / safe)
    return [
        mixed((right, left), mean, r, h),
        exists * mixed_slope((right, left), h),
        bump,
        -tilt * bump,
        (tilt**2 - 1 / safe**2) * bump,
    ]


def polynomial_single(activation: Polynomial, q: Float[Array, "*shape"], mean: Float[Array, "*shape"]) -> list[Array]:
    """E[σ^(j)(mean + √q z)] of a polynomial, j = 0…4."""
    return _smoothed(activation, q - activation.variance, mean, 5)
