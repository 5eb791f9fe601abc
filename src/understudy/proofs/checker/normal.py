"""Normal distribution functions for the checker.

Φ2(h, k; ρ) = P(x > -h, y > -k) = ∫_{-h}^∞ φ(u) Φ((k + ρu)/√(1 - ρ²)) du, by Arb's rigorous integration up to a point
beyond which the Gaussian tail is added to the error.
"""

from __future__ import annotations

from typing import Any

from flint import acb, arb

from understudy.proofs.checker.jets import Ball

TAIL = 22
"""φ(22) is below 1e-105."""


def density(h: Any) -> Any:
    """φ(h)."""
    return (-h * h / 2).exp() / (2 * arb.pi()).sqrt()


def cumulative(h: Any) -> Any:
    """Φ(h)."""
    return (-h / arb(2).sqrt()).erfc() / 2


def both_above(h: Ball, k: Ball, rho: Ball, rest: Ball) -> Ball:
    """Φ2(h, k; ρ), `rest` = √(1 - ρ²) > 0: at the middles of the balls, and by derivatives in between.

    ∂Φ2/∂h ≤ φ(h), ∂Φ2/∂k ≤ φ(k), and ∂Φ2/∂ρ = φ2(h, k; ρ) ≤ 1/(2π√(1 - ρ²)).
    """
    a, b, c = h.mid(), k.mid(), rho.mid()
    root = (1 - c * c).sqrt()
    start, end = -a, arb(TAIL).max(-a + TAIL).mid()

    def integrand(u: acb, _: bool) -> acb:
        return density(u) * cumulative((b + c * u) / root)

    middle = acb.integral(integrand, start, end).real + arb(0).union(density(end))
    slack = density(h) * abs(h - a) + density(k) * abs(k - b)
    least = rest.min(root)
    slack += abs(rho - c) / (2 * arb.pi() * least)
    return middle + arb(0, slack.abs_upper())
