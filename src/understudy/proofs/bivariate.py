"""P(x > -h, y > -k) and the like for standard normal x, y, in balls, by rigorous integration (Arb)."""

from __future__ import annotations

from understudy.proofs.balls import Ball, ball, flint, within


def normal_density(h: Ball) -> Ball:
    """φ(h)."""
    return (-h * h / 2).exp() / (2 * ball.pi()).sqrt()


def mean_sign(h: Ball) -> Ball:
    """E[sign(h + x)] = erf(h/√2)."""
    return (h / ball(2).sqrt()).erf()


def mean_signs(h: Ball, k: Ball, cosine: Ball, sine: Ball) -> Ball:
    """E[sign(h + x) sign(k + y)] for the correlation `cosine`, with `sine` = √(1 - cosine²) > 0.

    It is S(h) S(k) + (2/π) ∫_0^asin(ρ) exp(-(h² + k² - 2hk sin t)/(2 cos² t)) dt, S(h) = erf(h/√2). The integral is
    taken at the middles of h, k and ρ. The derivatives, at most 2φ(h) and 2φ(k), and the integrand bound the rest.
    """
    m1, m2, lean = h.mid(), k.mid(), (cosine / sine).atan()
    end = lean.mid()
    square, product = m1 * m1 + m2 * m2, 2 * m1 * m2

    def integrand(t: Ball, _: bool) -> Ball:
        c = t.cos()
        return (-(square - product * t.sin()) / (2 * c * c)).exp()

    middle = mean_sign(m1) * mean_sign(m2) + 2 * flint.acb.integral(integrand, 0, end).real / ball.pi()
    by_angle = 2 / ball.pi() * (-(h * h + k * k - 2 * h * k * lean.sin()) / (2 * lean.cos() * lean.cos())).exp()
    rest = 2 * normal_density(h) * abs(h - m1) + 2 * normal_density(k) * abs(k - m2) + by_angle * abs(lean - end)
    return middle + within(rest)
