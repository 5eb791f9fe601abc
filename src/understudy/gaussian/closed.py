r"""Closed forms: erf, piecewise linear (ReLU, |x|, x) and polynomial activations, for any norms and correlation.

With (x, y) ~ N(0, Q), s = √(q11 q22 - q12²):

- erf: G = (2/π) asin(q12 / √((1+q11)(1+q22))) (Saad and Solla 1995; Simsek et al. 2023, Eq. 125), written as
  (2/π) atan2(q12, √(1 + q11 + q22 + s²)) so that nothing cancels at parallel or antiparallel neurons.
- ReLU: G = (r1 r2/2π)(sin φ - φ cos φ) with φ = atan2(s, -q12) = π - angle, the arc-cosine kernel (Cho and Saul 2009;
  Simsek et al. 2023, after Eq. 9). Any slope·x + kink·|x| is a sum of ReLU(x) and ReLU(-x) with weights kink ± slope,
  so that nothing cancels near u = -1 either. The second partials contain 1/s and do not exist at s = 0.
- polynomials: the Taylor series of G in q12 ends, G = Σ_m q12^m/m! A_m(q11) B_m(q22), A_m(q) = E[σ1^(m)(√q z)];
  in Hermite polynomials of variance v, E[He_j(√q z)] = (j-1)!! (q-v)^(j/2) for even j, and 0 for odd j.
"""

from __future__ import annotations

import math
from dataclasses import replace

import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.activations import Activation, Erf, Gelu, PiecewiseLinear, Polynomial
from understudy.gaussian.partials import Covariance, Partials, SelfPartials


def has_closed_form(first: Activation, second: Activation, biased: bool = False) -> bool:
    """Whether both are erf, piecewise linear or polynomial, or gelu without biases."""
    families: tuple[type[Activation], ...] = (Erf, PiecewiseLinear, Polynomial, *(() if biased else (Gelu,)))
    return any(isinstance(first, family) and isinstance(second, family) for family in families)


def erf_partials(c: Covariance) -> Partials:
    """Both activations erf(x/√2). Every partial exists everywhere, at zero norms too."""
    noise1, noise2 = 1 / jnp.sqrt(1 + c.q11), 1 / jnp.sqrt(1 + c.q22)
    gap = 1 + c.q11 + c.q22 + jnp.maximum(c.determinant, 0.0)  # (1+q11)(1+q22) - q12², without cancellation
    return _erf_from_angle(c.q12 * noise1 * noise2, jnp.sqrt(gap) * noise1 * noise2, noise1, noise2)


def erf_partials_of_norms(r1: Array, r2: Array, u: Array) -> Partials:
    """The same from norms and correlation, for norms up to the largest float: nothing is squared that may overflow."""
    length1, length2 = jnp.hypot(1.0, r1), jnp.hypot(1.0, r2)
    noise1, noise2, share1, share2 = 1 / length1, 1 / length2, r1 / length1, r2 / length2
    sine = jnp.hypot(jnp.hypot(noise1, share1 * noise2), share1 * share2 * jnp.sqrt((1 - u) * (1 + u)))
    return _erf_from_angle(share1 * share2 * u, sine, noise1, noise2)


def _erf_from_angle(cosine: Array, sine: Array, noise1: Array, noise2: Array) -> Partials:
    """From ρ = q12/√((1+q11)(1+q22)), √(1 - ρ²), 1/√(1+q11) and 1/√(1+q22)."""
    bend = (1 + 2 * sine**2) / sine**3
    scaled = Partials(
        value=jnp.arctan2(cosine, sine),
        q11=-cosine * noise1**2 / (2 * sine),
        q12=noise1 * noise2 / sine,
        q22=-cosine * noise2**2 / (2 * sine),
        q11q11=cosine * bend * noise1**4 / 4,
        q11q12=-(noise1**3) * noise2 / (2 * sine**3),
        q12q12=cosine * noise1**2 * noise2**2 / sine**3,
        q12q22=-noise1 * noise2**3 / (2 * sine**3),
        q22q22=cosine * bend * noise2**4 / 4,
    )
    return Partials(*(2 / math.pi * x for x in scaled))


def erf_self_partials(q: Float[Array, "*shape"]) -> SelfPartials:
    """D(q) = (2/π) asin(q/(1+q)) = (2/π) atan2(q, √(1+2q))."""
    root = jnp.sqrt(1 + 2 * q)
    return SelfPartials(
        2 / math.pi * jnp.arctan2(q, root),
        2 / math.pi / ((1 + q) * root),
        -2 / math.pi * (2 + 3 * q) / ((1 + q) ** 2 * root**3),
    )


def piecewise_linear_partials(first: PiecewiseLinear, second: PiecewiseLinear, c: Covariance) -> Partials:
    """Both activations slope·x + kink·|x|; partials that do not exist are NaN.

    If both are kinked, the second partials do not exist at u = ±1, and at a zero norm only the value and the partial
    with respect to the other neuron's own variance (which is 0) do.
    """
    zero = jnp.zeros_like(c.q12)
    kinked = first.kink * second.kink
    if kinked == 0:
        linear = first.slope * second.slope
        return Partials(linear * c.q12, zero, zero + linear, *(zero for _ in range(6)))
    right1, left1 = first.kink + first.slope, first.kink - first.slope
    right2, left2 = second.kink + second.slope, second.kink - second.slope
    same, opposite = right1 * right2 + left1 * left2, right1 * left2 + left1 * right2
    s = jnp.sqrt(jnp.maximum(c.determinant, 0.0))
    angle, supplement = jnp.arctan2(s, c.q12), jnp.arctan2(s, -c.q12)
    length = jnp.sqrt(c.q11) * jnp.sqrt(c.q22)
    moving = (c.q11 > 0) & (c.q22 > 0)
    curved = moving & (s > 0)
    q11, q22 = jnp.where(c.q11 > 0, c.q11, 1.0), jnp.where(c.q22 > 0, c.q22, 1.0)
    one_over_s = 1 / jnp.where(curved, s, 1.0)

    def where(condition: Array, x: Array) -> Array:
        return jnp.where(condition, kinked / math.pi * x, jnp.nan)

    # same·supplement - opposite·angle with the common part as 2 asin u, so that nothing cancels at u = 0 or u = ±1
    common = min(same, opposite)
    lean = 2 * common * jnp.arctan2(c.q12, s)
    slopes = (lean + (same - common) * supplement - (opposite - common) * angle) / (2 * math.pi)
    across = (c.q12 - s) * (c.q12 + s) * one_over_s / 2  # (q11 q22 - 2s²)/2s
    return Partials(
        value=length * (same * _sine_minus_chord(supplement) + opposite * _sine_minus_chord(angle)) / (2 * math.pi),
        q11=where(c.q11 > 0, s / q11),
        q12=jnp.where(moving, slopes, jnp.nan),
        q22=where(c.q22 > 0, s / q22),
        q11q11=where(curved, across / q11 / q11),
        q11q12=where(curved, -c.q12 * one_over_s / q11),
        q12q12=where(curved, 2 * one_over_s),
        q12q22=where(curved, -c.q12 * one_over_s / q22),
        q22q22=where(curved, across / q22 / q22),
    )


def _sine_minus_chord(angle: Array) -> Array:
    """sin φ - φ cos φ on [0, π]. Below 1, where the two cancel, by the series Σ_k (-1)^(k+1) 2k φ^(2k+1)/(2k+1)!."""
    coefficients = [(-1) ** (k + 1) * 2 * k / math.factorial(2 * k + 1) for k in range(1, 11)]
    square = angle**2
    series = jnp.polyval(jnp.asarray(coefficients[::-1]), square) * angle**3
    return jnp.where(angle < 1, series, jnp.sin(angle) - angle * jnp.cos(angle))


def piecewise_linear_self_partials(activation: PiecewiseLinear, q: Float[Array, "*shape"]) -> SelfPartials:
    """D(q) = (slope² + kink²) q: the cross term is odd."""
    weight = activation.slope**2 + activation.kink**2
    return SelfPartials(weight * q, jnp.full_like(q, weight), jnp.zeros_like(q))


def _smoothed_derivatives(activation: Polynomial, gap: Array, count: int) -> list[Array]:
    """A_m(q) = E[σ^(m)(√q z)] for m < count, from gap = q - variance."""
    powers = [jnp.ones_like(gap)]
    for _ in range(len(activation.coefficients) // 2):
        powers.append(powers[-1] * gap)
    result = []
    for m in range(count):
        terms = [
            c * math.perm(degree, m) * math.prod(range(degree - m - 1, 0, -2)) * powers[(degree - m) // 2]
            for degree, c in enumerate(activation.coefficients)
            if c != 0 and degree >= m and (degree - m) % 2 == 0
        ]
        result.append(sum(terms, start=jnp.zeros_like(gap)))
    return result


def polynomial_partials(first: Polynomial, second: Polynomial, c: Covariance) -> Partials:
    """Both activations polynomials; every partial exists everywhere."""
    return _polynomial_sums(first, second, c.q11 - first.variance, c.q12, c.q22 - second.variance)


def polynomial_sizes(first: Polynomial, second: Polynomial, c: Covariance) -> Partials:
    """The same sums of the summands' absolute values. Times the rounding unit they bound the error of the partials."""
    first, second = (replace(p, coefficients=tuple(map(abs, p.coefficients))) for p in (first, second))
    gap1, gap2 = jnp.abs(c.q11 - first.variance), jnp.abs(c.q22 - second.variance)
    return _polynomial_sums(first, second, gap1, jnp.abs(c.q12), gap2)


def _polynomial_sums(first: Polynomial, second: Polynomial, gap1: Array, q12: Array, gap2: Array) -> Partials:
    terms = min(len(first.coefficients), len(second.coefficients))
    a = _smoothed_derivatives(first, gap1, terms + 4)
    b = _smoothed_derivatives(second, gap2, terms + 4)
    powers = [jnp.ones_like(q12)]
    for m in range(1, terms):
        powers.append(powers[-1] * q12 / m)

    def shifted(i: int, j: int) -> Array:
        """E[σ1^(i) σ2^(j)]."""
        return sum((p * a[m + i] * b[m + j] for m, p in enumerate(powers)), start=jnp.zeros_like(q12))

    return Partials(
        value=shifted(0, 0),
        q11=shifted(2, 0) / 2,
        q12=shifted(1, 1),
        q22=shifted(0, 2) / 2,
        q11q11=shifted(4, 0) / 4,
        q11q12=shifted(3, 1) / 2,
        q12q12=shifted(2, 2),
        q12q22=shifted(1, 3) / 2,
        q22q22=shifted(0, 4) / 4,
    )


def self_from_pair(p: Partials) -> SelfPartials:
    """D(q) = G(q, q, q), so D' = G11 + G12 + G22 and D'' is the second derivative along (1, 1, 1)."""
    return SelfPartials(
        p.value,
        p.q11 + p.q12 + p.q22,
        p.q11q11 + p.q22q22 + 2 * (p.q11q12 + p.q12q22) + 1.5 * p.q12q12,
    )
