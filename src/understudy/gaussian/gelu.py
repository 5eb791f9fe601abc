r"""The closed form of two gelu neurons without biases: E[h(x)h(y)], h(x) = xΦ(x), (x, y) ~ N(0, Q).

h'' and all higher derivatives are polynomials times the density φ, and φ(x) times a Gaussian density is another one.
With a = 1 + q11, b = 1 + q22, D = ab - q12², P = 1/√D and Φ(x) = ½(1 + erf(x/√2)),

E[ΦΦ] = (1/2π) atan2(√D, -q12),
E[h h] = q12 E[ΦΦ] + (P/2π)(q11 q22 + q12² (1 - q11 q22)/(ab)),
E[h'h'] = E[ΦΦ] + (P q12/2π)(1/a + 1/b + 1/D),
E[h''h''] = (P/2π)(4 - 2 c11 - 2 c22 + c11 c22 + 2 c12²), C = Q (I + Q)^-1,

and with x and y under φ(x) (variances v = q11/a and t, covariance c = q12/a), expectations of the even derivatives of h
under y, H_0 = t w^-½, H_2 = (2 + t) w^-3/2, H_4 = (7s - 3s² - 4) w^-½ (each over √2π; w = 1 + t = D/a, s = t/w),

E[h''h] = ((2 - v) H_0 - c² H_2)/√(2πa), E[h'''h'] = ((3v - 4) c H_2 + c³ H_4)/√(2πa),
E[h''''h] = ((7v - 3v² - 4) H_0 + (7 - 6v) c² H_2 - c⁴ H_4)/√(2πa).

**Reference**: Tsuchida, Pearce, van der Heide, Roosta, Gallagher 2021, "Avoiding kernel fixed points: computing with
ELU and GELU infinite networks", for E[h h].
"""

import math

import jax.numpy as jnp
from jaxtyping import Array

from understudy.gaussian.partials import Covariance, Partials


def gelu_partials(c: Covariance) -> tuple[Partials, Partials]:
    """The partials, and the sums of their summands' absolute values. Every partial exists everywhere."""
    q11, q12, q22, determinant = c
    determinant = jnp.maximum(determinant, 0.0)
    a, b = 1 + q11, 1 + q22
    gap = 1 + q11 + q22 + determinant  # D without cancellation
    root = jnp.sqrt(gap)
    both = jnp.arctan2(root, -q12) / (2 * math.pi)
    weight = 1 / (2 * math.pi * root)
    mixed = q11 * q22 / (a * b)
    value = [q12 * both, weight * q11 * q22, weight * q12**2 / (a * b), -weight * q12**2 * mixed]
    slope = [both, weight * q12 / a, weight * q12 / b, weight * q12 / gap]
    c11, c22, c12 = (q11 + determinant) / gap, (q22 + determinant) / gap, q12 / gap
    bend = [4 * weight, -2 * weight * c11, -2 * weight * c22, weight * c11 * c22, 2 * weight * c12**2]
    by_11, by_1111, by_1112 = _one_sided(q11, q12, q22 + determinant, gap)
    by_22, by_2222, by_2212 = _one_sided(q22, q12, q11 + determinant, gap)
    terms = (value, by_11, slope, by_22, by_1111, by_1112, bend, by_2212, by_2222)
    factors = (1.0, 0.5, 1.0, 0.5, 0.25, 0.5, 1.0, 0.5, 0.25)
    sums = (factor * sum(parts[1:], start=parts[0]) for factor, parts in zip(factors, terms, strict=True))
    sizes = (
        factor * sum(map(jnp.abs, parts[1:]), start=jnp.abs(parts[0]))
        for factor, parts in zip(factors, terms, strict=True)
    )
    return Partials(*sums), Partials(*sizes)


def _one_sided(q11: Array, q12: Array, own: Array, gap: Array) -> tuple[list[Array], list[Array], list[Array]]:
    """The summands of E[h''h], E[h''''h] and E[h'''h']; `own` is q22 + q11 q22 - q12²."""
    a = 1 + q11
    v, t, w, c = q11 / a, own / a, gap / a, q12 / a
    s, weight = own / gap, 1 / (2 * math.pi * jnp.sqrt(gap))  # 1/√(2πa) times the w^-½/√2π of every H
    h0, h2 = weight * t, weight * (2 + t) / w
    h4 = [7 * weight * s, -3 * weight * s**2, -4 * weight]
    second = [2 * h0, -v * h0, -(c**2) * h2]
    fourth = [7 * v * h0, -3 * v**2 * h0, -4 * h0, 7 * c**2 * h2, -6 * v * c**2 * h2, *(-(c**4) * x for x in h4)]
    third = [3 * v * c * h2, -4 * c * h2, *(c**3 * x for x in h4)]
    return second, fourth, third
