"""Claim `assumptions`: who satisfies Assumption 3.1, and the steepness at which softplus stops."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import Check, at_least, at_most, close, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEMMA = ("erf", "sigmoid", "tanh:0.5", "softplus:0.5", "softplus", "softplus:2")


def _checks_of(name: str, settings: Settings, norms: Any, correlations: Any) -> tuple[list[Check], float]:
    """Both assumptions and Eq. 74 for one activation, also far out; and the least margin of (ii) on the grid."""
    from understudy.papers.copy_average import activation_conditions as assumptions

    found = assumptions.margins(name, norms, correlations)
    far = np.linspace(-0.999, 0.999, 81)
    limit = assumptions.margins_at_infinity(name, far)
    sufficient = assumptions.sufficient(name, np.linspace(-30, 30, settings["grid"]))
    checks = [
        at_least(f"{name}: σ' - xσ'' + σ''' (Eq. 74)", sufficient, bound=-1e-15),
        at_least(f"{name}: (i), E[σ'σ']", found.first, bound=1e-12),
        at_least(f"{name}: (ii), 1 - u g''/g'", found.second, bound=1e-9),
        at_least(f"{name}: (ii) as r1 → ∞", limit, bound=1e-9),
    ]
    if settings["far"]:
        large = assumptions.margins(name, np.array(settings["far"]), far).second
        gap = float(np.abs(large[-1] - limit).max())
        checks += [
            at_least(f"{name}: (ii) at norms r1 = {settings['far']}", large, bound=1e-9),
            at_most(f"{name}: at r1 = {settings['far'][-1]:g} the margin less its limit", gap, bound=1e-3),
        ]
    return checks, float(found.second.min())


def _checks_of_steepness(beta: float, where: float) -> list[Check]:
    """The sign of Eq. 74 changes at the steepness β of softplus, at βx = `where`."""
    from understudy.papers.copy_average import activation_conditions as assumptions

    checks = []
    for factor, sign in ((1 - 1e-6, 1.0), (1 + 1e-6, -1.0)):
        extreme = assumptions.sufficient(f"softplus:{beta * factor!r}", np.array([where / beta]))
        checks.append(
            at_least(
                f"softplus:{beta * factor:.6f}: sign {sign:+.0f} of Eq. 74 at βx = {where:.4f}",
                sign * extreme,
                bound=0.0,
            )
        )
    return checks


def _checks_of_relu() -> list[Check]:
    """The first assumption and the weakened second one for ReLU (Eq. 130)."""
    u = np.linspace(-0.999, 0.9999, 4001)
    slope = (math.pi - np.arccos(u)) / (2 * math.pi)
    bend = 1 / (2 * math.pi * np.sqrt(1 - u**2))
    inside = u <= 1 / math.sqrt(2)
    above = u > 1 / math.sqrt(2)
    ratio = (math.pi - math.acos(1 / math.sqrt(2))) / (2 * math.pi) * math.sqrt(2)
    return [
        at_least("relu: (i)", slope, bound=0.0),
        at_least("relu: (ii) for u ≤ 1/√2 (Eq. 130)", (slope - u * bend)[inside], bound=0.0),
        at_most("relu: h'(u)/u above 1/√2 (Eq. 130 iii)", slope[above] / u[above], bound=ratio),
    ]


def _least_by_steepness(betas: Any) -> Any:
    """min over x > 0 of σ' - xσ'' + σ''' for softplus of every steepness."""
    y = np.linspace(0.01, 6.0, 600)
    s = 1 / (1 + np.exp(-y))
    bend = s * (1 - s) * (1 - 2 * s)
    return np.array([np.min(s - y * s * (1 - s) + b**2 * bend) for b in betas])


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.papers.copy_average import activation_conditions as assumptions

    norms = np.geomspace(0.02, 4.0, settings["norms"])
    correlations = np.linspace(-0.999, 0.999, settings["correlations"])
    checks: list[Check] = []
    least = {}
    for name in progress.over(LEMMA, "assumptions of"):
        found, least[name] = _checks_of(name, settings, norms, correlations)
        checks += found
    beta, where = assumptions.softplus_threshold()
    beyond, norm = assumptions.softplus_second_threshold()
    u0 = assumptions.relu_threshold()
    steep = float(assumptions.margins("tanh", norms, correlations).second.min())
    checks += [
        *_checks_of_steepness(beta, where),
        *_checks_of_relu(),
        holds("tanh(x) itself violates (ii): the lemma's tanh is tanh(x/2)", steep < 0, steep),
        close("relu: (ii) fails above u", 0.9416804581932638, u0, 1e-12),
    ]
    fine = np.linspace(0.5, 5.0, 181)
    measured = {
        "largest β of softplus for Eq. 74": beta,
        "β at which (ii) itself fails": beyond,
        "relu: (ii) holds up to u": u0,
        "least margin of (ii)": least,
    }
    notes = (
        f"Eq. 74 holds for softplus exactly up to β = {beta:.6f} (first violated at βx = {where:.4f}); (ii) itself is "
        f"first violated near β = {beyond:.4f}, as u → 1 and for large norms (searched up to {norm:.0f}). The paper's "
        "proof covers β ≤ 2. tanh(x), twice as steep as the paper's tanh(x/2), violates both: Eq. 74 is -1 at x = 0."
    )
    return Measurement(checks, measured, data={"beta": fine, "least": _least_by_steepness(fine)}, notes=notes)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    ax = figure.subplots()
    ax.plot(measurement.data["beta"], measurement.data["least"])
    ax.axhline(0, color="black", lw=0.8)
    beta = measurement.measured["largest β of softplus for Eq. 74"]
    ax.axvline(beta, color="C1", ls="--", label=f"first violated at β = {beta:.4f}")
    ax.axvspan(0.5, 2.0, color="C2", alpha=0.12, label="proved in the paper: β ≤ 2")
    ax.set(
        xlabel="softplus β",
        ylabel="min over x > 0 of σ' - xσ'' + σ'''",
        title="Sufficient condition of Lemma F.2 for softplus",
    )
    ax.legend()


CLAIM = Claim(
    paper="copy-average",
    id="assumptions",
    where="Assumption 3.1, Lemma F.2, Eq. 74, 130",
    statement=(
        "erf, sigmoid, tanh(x/2) and softplus with β ≤ 2 satisfy both assumptions by way of Eq. 74; ReLU satisfies the "
        "first and a weakened second; for much larger β softplus fails Eq. 74."
    ),
    paper_value="softplus: Eq. 74 holds for β ≤ 2 and breaks for significantly larger β",
    measured_by=(
        "Eq. 74 on a grid; both assumptions on a grid of norms and correlations, (ii) also in the limit of large "
        "norms; the thresholds by minimisation."
    ),
    tolerance="signs",
    tolerance_reason=(
        "Inequalities; grids are fine enough that the functions vary by less than their margin between points."
    ),
    quick={"grid": 6001, "norms": 25, "correlations": 81, "far": []},
    full={"grid": 60001, "norms": 120, "correlations": 801, "far": [8.0, 32.0, 256.0]},
    measure=_measure,
    figure=_figure,
)
