"""Claim `potentials`: which activations satisfy Assumption 3.1 (Lemma B.2), and a step of its proof.

Expectations are sums over an equidistant grid, which converge faster than any power of the spacing for analytic
functions. The second route is differences of the engine's potential.
"""

from typing import Any

import numpy as np

from understudy.papers.check import at_least, at_most, close
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

NODES = np.linspace(-12, 12, 241)
WEIGHTS = np.exp(-(NODES**2) / 2) / np.sum(np.exp(-(NODES**2) / 2))
STEP = 3e-4


def _gate(t: Any) -> Any:
    return 1 / (1 + np.exp(-t))


def _slope_and_bend(name: str, t: Any) -> tuple[Any, Any]:
    """σ' and σ'' of a smooth activation."""
    if name == "tanh":
        return 1 - np.tanh(t) ** 2, -2 * np.tanh(t) * (1 - np.tanh(t) ** 2)
    gate = _gate(t)
    if name == "softplus":
        return gate, gate * (1 - gate)
    return gate * (1 - gate), gate * (1 - gate) * (1 - 2 * gate)


def derivatives(name: str, r1: float, r2: float, u: float) -> tuple[float, float]:
    """∂_u g = r1 r2 E[σ'(r1 x)σ'(r2 y)] and ∂²_u g = r1² r2² E[σ''(r1 x)σ''(r2 y)] (Lemma B.1); ReLU: Eq. 30."""
    if name == "relu":
        return r1 * r2 * (np.pi - np.arccos(u)) / (2 * np.pi), r1 * r2 / (2 * np.pi * np.sqrt(1 - u * u))
    x, y = NODES[:, None], u * NODES[:, None] + np.sqrt(1 - u * u) * NODES
    slope1, bend1 = _slope_and_bend(name, r1 * x)
    slope2, bend2 = _slope_and_bend(name, r2 * y)
    first, second = (float(WEIGHTS @ values @ WEIGHTS) for values in (slope1 * slope2, bend1 * bend2))
    return r1 * r2 * first, (r1 * r2) ** 2 * second


def by_differences(name: str, grid: Any) -> Any:
    """The same from the engine's potential, one row for each (r1, r2, u) of the grid."""
    import understudy as us

    r1, r2, u = np.array(grid).T
    behind, here, ahead = (np.asarray(us.interaction(name, r1, r2, u + shift)) for shift in (-STEP, 0.0, STEP))
    return np.stack([(ahead - behind) / (2 * STEP), (ahead - 2 * here + behind) / STEP**2], axis=1)


def half_planes(name: str, r1: float, r2: float, u: float) -> tuple[float, float]:
    """The parts of E|σ''(r1 x)σ''(r2 y)| with xy > 0 and with xy ≤ 0."""
    x, y = NODES[:, None], u * NODES[:, None] + np.sqrt(1 - u * u) * NODES
    values = np.abs(_slope_and_bend(name, r1 * x)[1] * _slope_and_bend(name, r2 * y)[1])
    same, opposite = (float(WEIGHTS @ np.where(chosen, values, 0.0) @ WEIGHTS) for chosen in (x * y > 0, x * y <= 0))
    return same, opposite


def _measure(settings: Settings, progress: Progress) -> Measurement:
    norms = [(r1, r2) for r1 in settings["norms"] for r2 in settings["norms"]]
    grid = [(r1, r2, u) for r1, r2 in norms for u in settings["correlations"]]
    least: dict[str, list[float]] = {"(i)": [], "(ii)-a": [], "(ii)-b": [], "at 0": []}
    routes: list[float] = []
    for name in progress.over(["softplus", "relu", "sigmoid", "tanh"]):
        found = np.array([derivatives(name, *point) for point in grid])
        engine = by_differences(name, grid)
        routes.append(float(np.max(np.abs(found - engine) / np.abs(found).max(axis=0))))
        unit = np.array([r1 * r2 for r1, r2, _ in grid])
        least["(i)"].append(float(np.min(found[:, 0] / unit)))
        if name in ("softplus", "relu"):
            least["(ii)-a"].append(float(np.min(found[:, 1] / unit)))
        else:
            signs = np.sign([u for *_, u in grid])
            least["(ii)-b"].append(float(np.min((signs * found[:, 1] / unit)[signs != 0])))
            least["at 0"].append(max(abs(derivatives(name, r1, r2, 0.0)[1]) for r1, r2 in norms))
    above = [(*pair, u) for pair in norms for u in settings["correlations"] if u > 0]
    parts = np.array([half_planes(name, *point) for name in ("sigmoid", "tanh") for point in above])
    alike = np.array([0.5 + np.arcsin(u) / np.pi for *_, u in above] * 2)  # the probability of xy > 0
    shares = parts[:, 0] / parts[:, 1]
    ratios = shares * (1 - alike) / alike
    x = np.linspace(-3, 3, 61)
    apart = float(np.max(np.abs(_slope_and_bend("sigmoid", x)[1] - _slope_and_bend("tanh", x)[1])))
    return Measurement(
        checks=[
            at_most("two routes to ∂_u g and ∂²_u g, relative to the largest", routes, bound=1e-4),
            at_least("(i), all four: least ∂_u g/(r1 r2)", least["(i)"], bound=1e-9),
            at_least("(ii)-a, softplus and ReLU: least ∂²_u g/(r1 r2)", least["(ii)-a"], bound=1e-9),
            at_least("(ii)-b, sigmoid and tanh: least sign(u) ∂²_u g/(r1 r2)", least["(ii)-b"], bound=1e-9),
            at_most("(ii)-b, sigmoid and tanh: |∂²_u g| at u = 0", least["at 0"], bound=1e-13),
            at_least("part of E|σ''(x)σ''(y)| with xy > 0 over that with xy ≤ 0, u > 0", shares, bound=1.0),
        ],
        measured={
            "least ∂_u g/(r1 r2)": min(least["(i)"]),
            "mean given xy > 0 over mean given xy ≤ 0, u > 0": f"{ratios.min():.4g} … {ratios.max():.4g}",
        },
        printed=[
            close(
                "Eq. 34 as printed: the means given xy > 0 and given xy ≤ 0 are equal (ratios)",
                1.0,
                [float(ratios.min()), float(ratios.max())],
                0.01,
            ),
            at_most("Eq. 31 as printed: σ'' of sigmoid and tanh are the same (largest difference)", apart, bound=1e-12),
        ],
        erratum_note=(
            "|x| and |y| are not distributed alike given xy > 0 and given xy ≤ 0, and either mean can be the larger "
            "one. The lemma follows without them: at x, y > 0 the density of (x, y) is larger than that of (x, -y) for "
            "u > 0, so the part with xy > 0 outweighs the other. tanh(x) is 2 sigmoid(2x) - 1, not sigmoid plus a "
            "constant."
        ),
    )


CLAIM = Claim(
    paper="few-neurons",
    id="potentials",
    where="Lemma B.2, Assumption 3.1",
    statement=(
        "The potentials of softplus, ReLU, sigmoid and tanh satisfy Assumption 3.1 (i), those of softplus and ReLU "
        "(ii)-a, those of sigmoid and tanh (ii)-b."
    ),
    paper_value="∂_u g > 0; ∂²_u g > 0 (softplus, ReLU), of the sign of u (sigmoid, tanh)",
    measured_by=(
        "Both derivatives on a grid of norms and correlations, by sums with Price's theorem and by differences of the "
        "engine's potential; the two parts of Eq. 34 by sums."
    ),
    tolerance="signs; 1e-4 between the two routes",
    tolerance_reason=(
        "Second differences with a step of 3e-4: the step squared times the fourth derivative over 12. Sums over "
        "half-planes have an error of a tenth of the spacing squared, 1e-3: Eq. 34 is compared to 1 %."
    ),
    quick={"norms": [1.0, 2.0], "correlations": [-0.9, -0.5, -0.1, 0.1, 0.5, 0.9]},
    full={
        "norms": [0.25, 0.5, 1.0, 2.0, 4.0],
        "correlations": [-0.95, -0.8, -0.6, -0.4, -0.2, -0.05, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95],
    },
    measure=_measure,
)
