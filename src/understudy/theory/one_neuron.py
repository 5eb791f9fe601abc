r"""One student neuron and k orthonormal teachers: every critical point, for any activation.

With equal correlations u_j = u = ±1/√k the loss of a student (w, a), r = ‖w‖, is

L(r, a) = a² D(r²) - 2 k a G(r, 1, u) + C,  D(q) = E[σ(√q z)²],  G(r1, r2, u) = E[σ(r1 x) σ(r2 y)],

(Simsek et al. 2023, Eq. 115). The best outgoing weight is a = k G/D, and with it the radial derivative vanishes where

f(r, u) = ½ d/dr log D(r²) - d/dr log G(r, 1, u) = 0                                             (their Eq. 118-120).

If σ satisfies Assumption 3.1 (see `assumptions`), equal correlations are the only ones a critical point with a ≠ 0 and
w ≠ 0 can have (Theorem 5.1), so the zeros of f give all of them; otherwise they give all with equal correlations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy import activations
from understudy.activations import Activation, Erf, Polynomial
from understudy.gaussian import (
    Covariance,
    Partials,
    SelfPartials,
    closed,
    has_closed_form,
    hermite,
    mehler,
    pair_partials,
    partials,
    self_partials,
)
from understudy.gaussian.quadrature import nodes_needed
from understudy.networks import TwoLayer

_GRID = 240
"""Norms in the search for zeros of f; consecutive ones differ by a few percent, f varies on the scale of r itself."""

_SMALLEST = 1e-4
"""Least norm searched. Norms of critical points fall like 1/√(2k): enough for ten million teachers."""

_NOISE = 1e-12
"""r·f is a difference of two numbers of order one, each known to about 1e-14: below this its sign says nothing."""


class NoCriticalPointError(ValueError):
    """The one-neuron problem has no non-trivial critical point in the range that was searched."""


@dataclass(frozen=True)
class OneNeuronPoint:
    """A point with w = norm · (sign of u) · Σ_j v_j/√k and outgoing weight `outgoing`.

    - `correlation`: u = ±1/√k, the correlation with each teacher.
    - `kind`: `"minimum"`, `"saddle"`, `"maximum"`, or `"degenerate"` where the Hessian does not decide.
    - `eigenvalues`: the four distinct eigenvalues of the Hessian: two in the plane of radial direction and outgoing
      weight, one (k - 1 times) along differences of teachers, one (d - k times) outside their span. For homogeneous
      activations one of the first two is zero, because rescaling does not change the function.
    - `invariant`: a r^p for activations of homogeneity p. Only this product is determined, and `norm` is reported as 1.
    """

    norm: float
    outgoing: float
    correlation: float
    loss: float
    kind: Literal["minimum", "saddle", "maximum", "degenerate"]
    eigenvalues: tuple[float, ...] = field(repr=False)
    teachers: int = field(repr=False)
    invariant: float | None = None

    def parameters(self, dim: int | None = None) -> TwoLayer:
        """The point as a network, for the teachers e_1 … e_k in dimension `dim` (k unless given)."""
        width = self.teachers if dim is None else dim
        if width < self.teachers:
            raise ValueError(f"{self.teachers} orthonormal teachers need dim ≥ {self.teachers}; received {dim}.")
        direction = np.zeros(width)
        direction[: self.teachers] = self.norm * self.correlation
        return TwoLayer(jnp.asarray(direction[None]), jnp.asarray([self.outgoing]))


@dataclass(frozen=True)
class OneNeuron(OneNeuronPoint):
    """The optimum, with all `critical_points` that were found for norms in the range `searched`."""

    critical_points: tuple[OneNeuronPoint, ...] = ()
    searched: tuple[float, float] = (0.0, math.inf)


def one_neuron(
    activation: str | Activation, teachers: int, *, largest_norm: float | None = None, closed_form: bool = True
) -> OneNeuron:
    """The best single neuron for k = `teachers` unit-orthonormal teachers, and all other critical points.

    **Arguments**

    - `activation`: by name or object; `teachers`: k ≥ 1.
    - `largest_norm`: norms from 10⁻⁴ up to this one are searched. Default: 1000 for polynomials, 2/steepness for smooth
      activations (Mehler's series is fast there; beyond 4/steepness quadrature takes seconds).
    - `closed_form`: whether erf uses the formulas r = 1/√(2k-1), a = k of Corollary 5.2 instead of the search.

    Homogeneous activations (relu, abs, linear, quadratic) determine only a r^p. Then `norm` is 1, and `invariant` holds
    a r^p. Of equally good points the one with positive correlation is returned. Raises `NoCriticalPointError` if there
    is none, for example for gelu with k ≥ 2, whose loss keeps falling as the norm grows.

    >>> best = one_neuron("erf", teachers=8)
    >>> round(15**0.5 * best.norm, 12), best.outgoing, round(best.loss, 9)
    (1.0, 8.0, 0.118526792)

    **Reference**: Simsek et al. 2023, Theorem 5.1, Corollaries 5.2 and G.5, Eq. 16, 115-129.
    """
    points, searched = _all_points(activations.get(activation), _checked(teachers), largest_norm, closed_form)
    if not points:
        raise NoCriticalPointError(
            f"With {activations.get(activation).name} and {teachers} teachers no neuron with equal correlations and a "
            f"norm between {searched[0]:.3g} and {searched[1]:.3g} is critical: f(r, u) of Eq. 120 has no zero there. "
            "Raise largest_norm to search further, or fit the student by gradient flow and look where it goes."
        )
    best = min(points, key=lambda p: (round(p.loss, 12), -p.correlation))
    values = {name: getattr(best, name) for name in OneNeuronPoint.__dataclass_fields__}
    return OneNeuron(**values, critical_points=points, searched=searched)


def critical_points(
    activation: str | Activation, teachers: int, *, largest_norm: float | None = None, closed_form: bool = True
) -> tuple[OneNeuronPoint, ...]:
    """All non-trivial critical points with equal correlations, least loss first; empty if there are none.

    Arguments as in `one_neuron`.
    """
    return _all_points(activations.get(activation), _checked(teachers), largest_norm, closed_form)[0]


def radial_slope(activation: str | Activation, norms: np.ndarray, correlation: float) -> np.ndarray:
    """f(r, u) = ½ d/dr log E[σ(rx)²] - d/dr log E[σ(rx)σ(y)], corr(x, y) = u (Simsek et al. 2023, Eq. 118-120).

    It has the sign of the derivative of the best loss at norm r. It is NaN where the interaction vanishes (u = 0, odd
    σ).
    """
    r = np.atleast_1d(np.asarray(norms, float))
    own, pair = _profile(activations.get(activation), r, float(correlation))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = r * own.q / own.value - (2 * r * pair.q11 + correlation * pair.q12) / pair.value
    return np.where(np.abs(pair.value) > 0, slope, np.nan)


def _checked(teachers: int) -> int:
    if not isinstance(teachers, (int, np.integer)) or isinstance(teachers, bool) or teachers < 1:
        raise ValueError(f"The number of teachers is a positive integer; received teachers={teachers!r}.")
    return int(teachers)


@lru_cache(maxsize=4096)
def _all_points(
    activation: Activation, k: int, largest_norm: float | None, closed_form: bool
) -> tuple[tuple[OneNeuronPoint, ...], tuple[float, float]]:
    if activation.homogeneity is not None:
        searched = (0.0, math.inf)
        norms = {u: [1.0] for u in (1 / math.sqrt(k), -1 / math.sqrt(k))}
    elif closed_form and isinstance(activation, Erf):
        searched = (0.0, math.inf)
        norms = {u: [1 / math.sqrt(2 * k - 1)] for u in (1 / math.sqrt(k), -1 / math.sqrt(k))}
    else:
        searched = _range(activation, largest_norm)
        norms = {u: _zeros(activation, u, *searched) for u in (1 / math.sqrt(k), -1 / math.sqrt(k))}
    points = [p for u, rs in norms.items() for r in rs if (p := _point(activation, k, r, u)) is not None]
    return tuple(sorted(points, key=lambda p: (round(p.loss, 12), -p.correlation))), searched


def _range(activation: Activation, largest_norm: float | None) -> tuple[float, float]:
    if largest_norm is None:
        far = isinstance(activation, Polynomial)
        return _SMALLEST, 1000.0 if far else max(hermite.LARGEST_SCALE / 2 / activation.steepness, 2.0)
    if not (math.isfinite(largest_norm) and largest_norm > _SMALLEST):
        raise ValueError(f"largest_norm is a finite number above {_SMALLEST:.3g}; received {largest_norm!r}.")
    return _SMALLEST, float(largest_norm)


def _zeros(activation: Activation, u: float, low: float, high: float) -> list[float]:
    """Zeros of f(·, u): sign changes on a logarithmic grid, and extrema between grid points that cross zero."""
    grid = np.geomspace(low, high, _GRID)
    values = _scaled_slope(activation, grid, u)

    def function(x: float) -> float:
        return float(_scaled_slope(activation, np.array([math.exp(x)]), u)[0])

    logs, brackets = np.log(grid), []
    for i in range(_GRID - 1):
        if values[i] * values[i + 1] <= 0 and max(abs(values[i]), abs(values[i + 1])) > _NOISE:
            brackets.append((logs[i], logs[i + 1]))
    for i in range(1, _GRID - 1):
        # A pair of zeros between two grid points shows as an extremum that bends towards zero.
        left, here, right = np.abs(values[i - 1 : i + 2])
        same = values[i - 1] * values[i] > 0 and values[i] * values[i + 1] > 0
        if same and here < left and here < right and here < 0.1 * max(left, right):
            from scipy.optimize import minimize_scalar  # slow to import, and rarely needed

            sign = math.copysign(1.0, values[i])
            extremum = minimize_scalar(
                lambda x, s=sign: s * function(x), bounds=(logs[i - 1], logs[i + 1]), method="bounded"
            )
            if extremum.fun < -_NOISE:
                brackets += [(logs[i - 1], extremum.x), (extremum.x, logs[i + 1])]
    return sorted(math.exp(_bracketed(function, a, b)) for a, b in brackets)


def _bracketed(function: Callable[[float], float], a: float, b: float) -> float:
    for end in (a, b):
        if function(end) == 0:
            return end
    from scipy.optimize import brentq  # slow to import, and not needed for closed forms

    return float(brentq(function, a, b, xtol=1e-15, rtol=4 * np.finfo(float).eps))


def _scaled_slope(activation: Activation, r: np.ndarray, u: float) -> np.ndarray:
    """r f G/√(D(r²) D(1)). It has the zeros of f, and no poles where the interaction G changes sign."""
    series = hermite.in_reach(activation, r)
    values = np.empty(r.shape)
    if np.any(series):
        values[series] = _slope_by_series(activation, r[series], u)
    if not np.all(series):
        far = r[~series]
        own, pair = _profile(activation, far, u)
        size = np.sqrt(own.value * _profile(activation, np.ones(1), u)[0].value)  # |G| ≤ √(D(r²) D(1))
        values[~series] = (far**2 * own.q / own.value * pair.value - far * (2 * far * pair.q11 + u * pair.q12)) / size
    return values


def _slope_by_series(activation: Activation, r: np.ndarray, u: float) -> np.ndarray:
    """The same from Hermite coefficients c_m(r) = E[σ(rx) h_m(x)] and ċ_m = r dc_m/dr.

    With D = Σ c_m² and G = Σ c_m(r) c_m(1) uᵐ, r f = Σ c ċ/D - Σ ċ c(1) uᵐ/G stays the same if ċ is replaced by ċ - λc.
    With λ = ċ_p/c_p of the largest coefficient c_p the terms that nearly cancel disappear. For odd σ and small r these
    terms are 1 - 1 + O(r²), and the zero is at r² ≈ 1/2k.
    """
    values = np.empty(r.shape)
    scales = activation.steepness * np.maximum(r, 1.0)
    tables = np.array([hermite.table_scale(scale) for scale in scales])
    for table in np.unique(tables):
        chosen = tables == table
        c, moving = _hermite_coefficients(activation, tuple(r[chosen].tolist()), float(table))
        one = _hermite_coefficients(activation, (1.0,), float(table))[0][0]
        teacher = one * u ** np.arange(len(one))
        largest = np.argmax(np.abs(c), axis=1)[:, None]
        moving = moving - np.take_along_axis(moving, largest, 1) / np.take_along_axis(c, largest, 1) * c
        own, interaction = np.sum(c**2, axis=1), c @ teacher
        slope = np.sum(c * moving, axis=1) / own * interaction - moving @ teacher
        values[chosen] = slope / np.sqrt(own * np.sum(one**2))
    return values


@lru_cache(maxsize=64)
def _hermite_coefficients(
    activation: Activation, norms: tuple[float, ...], scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """c_m(r) and r dc_m/dr = E[σ'(rx) r x h_m(x)], one row per norm; cached, as they do not depend on the teachers."""
    x, matrix = mehler.transform(scale)
    inputs = np.array(norms)[:, None] * x[None, :]
    value, slope = hermite.derivatives(activation, inputs, 2)
    return value @ matrix, (slope * inputs) @ matrix


def _point(activation: Activation, k: int, r: float, u: float) -> OneNeuronPoint | None:
    own, pair = (jax.tree.map(lambda x: float(x[0]), p) for p in _profile(activation, np.array([r]), u))
    unit, apart = _profile(activation, np.ones(1), 0.0)
    one, mean = float(unit.value[0]), float(apart.value[0])  # E[σ(z)²] and E[σ(z)]²
    if abs(pair.value) <= 1e-14 * math.sqrt(own.value * one):
        return None  # the best outgoing weight is zero: a trivial point
    if isinstance(activation, Erf) and r == 1 / math.sqrt(2 * k - 1):
        a = math.copysign(k, u)
        loss = (2 / math.pi) * (k * math.pi / 6 - k**2 * math.asin(1 / (2 * k)))
    else:
        a = k * pair.value / own.value
        loss = k * one + k * (k - 1) * mean - k**2 * pair.value**2 / own.value
    loss = 0.0 if k == 1 and abs(loss) < 1e-12 else loss
    eigenvalues = _eigenvalues(k, r, u, a, own, pair)
    degree = activation.homogeneity
    return OneNeuronPoint(
        r,
        a,
        u,
        loss,
        _kind(eigenvalues, activation, loss),
        eigenvalues,
        k,
        None if degree is None else a * r**degree,
    )


def _eigenvalues(k: int, r: float, u: float, a: float, own: Any, pair: Any) -> tuple[float, ...]:
    r"""The Hessian of a²D(‖w‖²) - 2a Σ_j G(‖w‖², w_j, 1) at w = r u Σ_j e_j, by the symmetry of the teachers.

    Outside the teachers' span: λ = 2a²D' - 4ka G11. Along e_i - e_j: λ - 2a G12,12. The plane of radius and outgoing
    weight: a symmetric 2 × 2 matrix, whose smaller eigenvalue comes from its determinant (they can be 10¹¹ apart).
    """
    outside = 2 * a**2 * own.q - 4 * k * a * pair.q11
    differences = outside - 2 * a * pair.q12q12
    radial = 2 * a**2 * own.q + 4 * a**2 * own.qq * r**2
    radial -= 2 * a * k * (2 * pair.q11 + 4 * pair.q11q11 * r**2 + 4 * pair.q11q12 * r * u + pair.q12q12 * u**2)
    mixed = 4 * a * own.q * r - 2 * k * (2 * pair.q11 * r + pair.q12 * u)
    determinant = radial * 2 * own.value - mixed**2
    if not math.isfinite(determinant):
        return ()
    if abs(determinant) <= 1e-11 * max(abs(radial * 2 * own.value), mixed**2):
        determinant = 0.0
    middle, half = (radial + 2 * own.value) / 2, math.hypot((radial - 2 * own.value) / 2, mixed)
    larger = middle + math.copysign(half, middle)
    plane = sorted((determinant / larger if larger else 0.0, larger))
    return (*plane, *((differences,) if k > 1 else ()), outside)


def _kind(
    eigenvalues: tuple[float, ...], activation: Activation, loss: float
) -> Literal["minimum", "saddle", "maximum", "degenerate"]:
    if loss <= 0.0:
        return "minimum"  # an exact copy; for kinked activations the Hessian does not exist there
    if not eigenvalues:
        return "degenerate"
    values = np.array(eigenvalues)
    if activation.homogeneity is not None:
        # The rescaling direction is the eigenvalue of least size in the plane; it is zero by symmetry.
        values = np.delete(values, np.argmin(np.abs(values[:2])))
    if np.any(values == 0) or np.any(np.abs(values[-2:]) <= 1e-11 * np.abs(values).max()):
        return "degenerate"
    return "minimum" if np.all(values > 0) else "maximum" if np.all(values < 0) else "saddle"


# -- the interactions of one neuron with itself and with a teacher ---------------------------------------------------


@partial(jax.jit, static_argnums=0)
def _closed_profile(activation: Activation, norms: Array, u: Array) -> tuple[SelfPartials, Partials]:
    """`_profile` in closed form, as one compiled program instead of one per operation."""
    c = Covariance.from_correlation(norms, jnp.asarray(1.0), u)
    return self_partials(activation, norms**2), pair_partials(activation, activation, c)


def _profile(activation: Activation, r: np.ndarray, u: float) -> tuple[SelfPartials, Partials]:
    """Self-interaction of norms r and their interaction with a unit teacher at correlation u."""
    if has_closed_form(activation, activation):
        return jax.tree.map(np.asarray, _closed_profile(activation, r, np.asarray(u, float)))
    norms = jnp.asarray(r)
    if hermite.in_reach(activation, r).all():
        scale = activation.steepness * max(float(np.max(r)), 1.0)
        table = hermite.table_scale(scale)
        student, teacher = (hermite.coefficients(activation, x, table) for x in (r, np.ones(1)))
        own = closed.self_from_pair(hermite.pair_series(student, student, 1.0))
        return own, hermite.pair_series(student, teacher, u)
    nodes = nodes_needed(activation.steepness * max(float(np.max(r)), 1.0))
    return jax.tree.map(
        np.asarray, (self_partials(activation, norms**2, nodes), partials(activation, r, 1.0, u).partials)
    )
