"""Claim `interaction`: closed forms and the derivative rule."""

import itertools
import math
from typing import Any

import numpy as np

from understudy.papers.check import at_most, close
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy import activations
    from understudy.gaussian import interaction

    rng: Any = np.random.default_rng(0)
    r1, r2 = rng.uniform(0.05, 3.0, (2, settings["points"]))
    u = rng.uniform(-0.98, 0.98, settings["points"])
    closed = {
        "erf": 2 / math.pi * np.arcsin(r1 * r2 * u / np.sqrt((1 + r1**2) * (1 + r2**2))),
        "relu": r1 * r2 / (2 * math.pi) * (np.sqrt(1 - u**2) + (math.pi - np.arccos(u)) * u),
    }
    checks = []
    for name, formula in closed.items():
        integral = [_integrate(activations.get(name), *point) for point in zip(r1, r2, u, strict=True)]
        checks.append(close(f"{name}: printed closed form against a double integral", formula, integral, 1e-8))
        checks.append(
            close(f"{name}: engine against the printed closed form", formula, interaction(name, r1, r2, u), 1e-13)
        )
    gaps, pairs = [], settings["pairs"]
    for first, second in progress.over(pairs, "derivative rule for"):
        for i in range(settings["derivatives"]):
            gaps.append(abs(_derivative_rule_gap(first, second, 1.3, 0.7, 0.9 * u[i])))
    checks.append(at_most("derivative rule (Eq. 9, 69): largest gap to a difference quotient", gaps, bound=1e-9))
    zero = [
        float(interaction(name, 1.7, 0.0, 0.3)) - _integrate(activations.get(name), 1.7, 0.0, 0.3)
        for name in ("erf", "relu", "softplus")
    ]
    checks.append(at_most("zero norm: E[σ(r1 x)]σ(0)", np.abs(zero), bound=1e-9))
    r = np.linspace(0.1, 3.0, 30)
    slope = [_mean_slope(x) for x in r]
    checks.append(close("erf: E[σ'(rx)] = √(2/π)/√(1+r²) (Eq. 54)", np.sqrt(2 / math.pi / (1 + r**2)), slope, 1e-12))
    measured = {"points": settings["points"], "pairs of activations": len(pairs), "largest derivative gap": max(gaps)}
    return Measurement(checks, measured)


def _integrate(sigma: Any, r1: float, r2: float, u: float) -> float:
    """E[σ(r1 x)σ(r2 y)] in polar coordinates, Gauss-Legendre between the angles at which either argument changes sign.

    Along a ray both activations are smooth even where they have a kink at zero, so this converges for ReLU too.
    """
    import jax.numpy as jnp

    angle, radius = np.polynomial.legendre.leggauss(64), np.polynomial.legendre.leggauss(80)
    tilt = math.acos(u)
    edges = np.sort(
        np.mod([math.pi / 2, -math.pi / 2, tilt + math.pi / 2, tilt - math.pi / 2, 0.0, math.pi], 2 * math.pi)
    )
    edges = np.append(edges, edges[0] + 2 * math.pi)
    rho, rho_weight = 5.5 * (radius[0] + 1), 5.5 * radius[1]
    total = 0.0
    for left, right in itertools.pairwise(edges):
        phi = (right - left) / 2 * angle[0] + (right + left) / 2
        weight = (right - left) / 2 * angle[1]
        x = rho[None, :] * np.cos(phi)[:, None]
        y = rho[None, :] * np.cos(phi - tilt)[:, None]
        values = np.asarray(sigma(jnp.asarray(r1 * x))) * np.asarray(sigma(jnp.asarray(r2 * y)))
        total += float(np.sum(weight[:, None] * (rho_weight * rho * np.exp(-(rho**2) / 2))[None, :] * values))
    return total / (2 * math.pi)


def _derivative_rule_gap(first: str, second: str, r1: float, r2: float, u: float, step: float = 1e-3) -> float:
    """∂_u E[σ1(r1 x) σ2(r2 y)] by a fourth-order difference, minus r1 r2 E[σ1'(r1 x) σ2'(r2 y)] (Lemma F.1)."""
    from understudy.gaussian import interaction, partials

    shifts = np.array([-2.0, -1.0, 1.0, 2.0])
    values = np.asarray(interaction(first, r1, r2, u + step * shifts, second))
    difference = float(values @ np.array([1.0, -8.0, 8.0, -1.0])) / (12 * step)
    return difference - r1 * r2 * float(partials(first, r1, r2, u, second).partials.q12)


def _mean_slope(r: float) -> float:
    z = np.linspace(-12, 12, 2401)
    return float(np.sum(np.exp(-(z**2) / 2) * np.exp(-((r * z) ** 2) / 2)) * 0.01 / math.pi)


CLAIM = Claim(
    paper="copy-average",
    id="interaction",
    where="Eq. 7, 9, 52-54, 69, 125, Lemma F.1",
    statement=(
        "The expectation of the product of two neurons has a closed form for erf and ReLU; its derivative with respect "
        "to the correlation is r1 r2 times the expectation of the product of the slopes, for two different activations "
        "too; a neuron of zero norm contributes its value at zero."
    ),
    paper_value="(2/π) asin(r1 r2 u/√((1+r1²)(1+r2²))), r1 r2 h(u); ∂_u E[σ1σ2] = r1 r2 E[σ1'σ2']",
    measured_by="Polar quadrature of the definition, fourth-order difference quotients, and the engine's own formulas.",
    tolerance=1e-8,
    tolerance_reason=(
        "Polar quadrature with 64 × 80 nodes per sector, cut at radius 11; difference quotients with step 1e-3."
    ),
    quick={"points": 12, "derivatives": 2, "pairs": [["erf", "erf"], ["relu", "relu"], ["erf", "softplus"]]},
    full={
        "points": 200,
        "derivatives": 8,
        "pairs": [
            ["erf", "erf"],
            ["relu", "relu"],
            ["softplus", "softplus"],
            ["tanh:0.5", "tanh:0.5"],
            ["sigmoid", "sigmoid"],
            ["erf", "softplus"],
            ["erf", "relu"],
            ["tanh", "sigmoid"],
        ],
    },
    measure=_measure,
)
