r"""Which activations satisfy Assumption 3.1 of Simsek et al. 2023, on which their one-neuron theory rests.

For every norm r1 > 0 and correlation u in (-1, 1), with x, y standard Gaussians of correlation u:

(i)  ∂_u g(r1, r2, u) = r1 r2 E[σ'(r1 x) σ'(r2 y)] > 0;
(ii) u ∂²_u g(r1, 1, u) < ∂_u g(r1, 1, u), that is r1 u E[σ''(r1 x) σ''(y)] < E[σ'(r1 x) σ'(y)].

If σ' > 0, (ii) follows from σ'(x) - x σ''(x) + σ'''(x) ≥ 0 for all x, not identically 0 (their Lemma F.2, Eq. 74).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr

from understudy import activations
from understudy.activations import Activation
from understudy.gaussian import hermite, partials


class Margins(NamedTuple):
    """`first`: E[σ'(r x) σ'(y)], positive if (i) holds; `second`: 1 - u ∂²_u g/∂_u g, positive if (ii) holds.

    Rows are norms, columns correlations.
    """

    first: np.ndarray
    second: np.ndarray


def margins(activation: str | Activation, norms: np.ndarray, correlations: np.ndarray) -> Margins:
    """By how much the two assumptions hold on a grid of norms r1 (with r2 = 1) and correlations in (-1, 1)."""
    sigma = activations.get(activation)
    r, u = np.asarray(norms, float), np.asarray(correlations, float)
    if hermite.in_reach(sigma, r).all():
        scale = hermite.table_scale(sigma.steepness * max(float(r.max()), 1.0))
        student, teacher = (hermite.coefficients(sigma, x, scale, 3) for x in (r, np.ones(1)))
        powers = u[:, None] ** np.arange(student.shape[-1])
        slopes, bends = ((student[i] * teacher[i]) @ powers.T for i in (1, 2))
    else:
        found = partials(sigma, r[:, None], 1.0, u[None, :]).partials
        slopes, bends = np.asarray(found.q12), np.asarray(found.q12q12)
    return Margins(slopes, 1 - r[:, None] * u[None, :] * bends / slopes)


def margins_at_infinity(activation: str | Activation, correlations: np.ndarray) -> np.ndarray:
    """The second margin in the limit r1 → ∞, where σ'(r1 x) becomes a spike (bounded σ) or a step (softplus) at 0.

    With s = √(1-u²): 1 + u² E[σ⁽³⁾(sz)]/E[σ'(sz)] for bounded σ, because r1² σ''(r1 x) tends to the derivative of a
    spike; 1 - u φ(0) E[σ''(sz)]/E[σ'(y) Φ(uy/s)] for softplus.
    """
    sigma, u = activations.get(activation), np.asarray(correlations, float)
    s = np.sqrt(1 - u**2)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    z, weight = 12 * nodes, 12 * weights * np.exp(-((12 * nodes) ** 2) / 2) / math.sqrt(2 * math.pi)
    _, first, second, third = hermite.derivatives(sigma, s[:, None] * z, 4)
    if not sigma.name.startswith("softplus"):
        return np.asarray(1 + u**2 * (third @ weight) / (first @ weight))
    steps = hermite.derivatives(sigma, z, 2)[1] * ndtr(u[:, None] * z / s[:, None])
    return np.asarray(1 - u / math.sqrt(2 * math.pi) * (second @ weight) / (steps @ weight))


def sufficient(activation: str | Activation, x: np.ndarray) -> np.ndarray:
    """σ'(x) - x σ''(x) + σ'''(x), whose sign Lemma F.2 asks for (Eq. 74)."""
    _, first, second, third = hermite.derivatives(activations.get(activation), np.asarray(x, float), 4)
    return first - x * second + third


def softplus_threshold() -> tuple[float, float]:
    """The largest β for which softplus:β satisfies Eq. 74, and the y = βx at which the next one fails.

    With the logistic function s, Eq. 74 at y = βx reads s - y s' + β² s'' > 0; s'' < 0 for y > 0 only, so β² may
    grow to the minimum of (s - y s')/(-s'') over y > 0.
    """

    def bound(y: float) -> float:
        s = 1 / (1 + math.exp(-y))
        slope = s * (1 - s)
        return (s - y * slope) / (-slope * (1 - 2 * s))

    best = minimize_scalar(bound, bounds=(0.1, 10.0), method="bounded", options={"xatol": 1e-12})
    return math.sqrt(best.fun), float(best.x)


def relu_threshold() -> float:
    """The correlation above which ReLU violates (ii): the root of u/√(1-u²) = π/2 + asin u."""
    return float(brentq(lambda u: u / math.sqrt(1 - u * u) - math.pi / 2 - math.asin(u), 0.5, 0.999, xtol=1e-15))


def softplus_second_threshold(largest_norm: float = 200.0) -> tuple[float, float]:
    """The β at which softplus:β first violates (ii) itself, and the norm r1 at which it does.

    Violations begin at u → 1, where (ii) reads r β² E[s'(βrx) s'(βx)] < E[s(βrx) s(βx)]: one-dimensional integrals,
    split at the scale 1/(βr) of the steeper factor.
    """
    nodes, weights = np.polynomial.legendre.leggauss(60)

    def margin(beta: float, r: float) -> float:
        fine = np.geomspace(1e-3, 12.0, 40) / max(beta * r, 1.0)
        edges = np.unique(np.concatenate([fine, np.linspace(0.0, 12.0, 49)]))
        left, right = edges[:-1, None], edges[1:, None]
        z = ((right - left) / 2 * nodes + (right + left) / 2).ravel()
        weight = ((right - left) / 2 * weights).ravel() * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        steep, flat = (1 / (1 + np.exp(-np.minimum(c * z, 700.0))) for c in (beta * r, beta))
        slopes = 2 * np.sum(weight * steep * (1 - steep) * flat * (1 - flat))
        values = np.sum(weight * (steep * flat + (1 - steep) * (1 - flat)))
        return float(1 - r * beta**2 * slopes / values)

    def least(beta: float) -> tuple[float, float]:
        norms = np.geomspace(0.05, largest_norm, 60)
        found = [margin(beta, r) for r in norms]
        i = int(np.argmin(found))
        return found[i], float(norms[i])

    beta = brentq(lambda b: least(b)[0], 1.0, 20.0, xtol=1e-10)
    return float(beta), least(beta)[1]
