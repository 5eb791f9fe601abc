"""Claim `certificates`: verdicts on random critical points of every kind of task, beside spectra computed another
way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from understudy.papers.cells import compute
from understudy.papers.check import Check, at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement
from understudy.papers.promises.comparison import comparison_cell
from understudy.papers.promises.fresh import CERTIFICATES_SEED

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

NAMES = (
    "erf",
    "erf, fixed outgoing",
    "erf, two outputs, tilted inputs",
    "erf, more dimensions than neurons",
    "relu",
    "relu, fixed outgoing",
    "quadratic",
    "softplus",
    "tanh",
    "gelu",
    "erf from tanh",
    "data, two layers",
    "data, two outputs, log cosh",
    "data, deep",
    "regularised, deep tanh",
    "regularised, relu",
    "sphere, squared",
    "sphere, correlation",
)

QUICK = ["erf", "relu", "softplus", "data, two layers", "regularised, deep tanh", "sphere, squared"]

WITHOUT_SADDLES = ("regularised, relu",)
"""Kinds of tasks without strict saddles where there are derivatives.

With two layers and ReLU ∂L/∂w = 0 makes the residuals' part of the Hessian ∓2λŵ between w and its outgoing weight, ŵ =
w/‖w‖; with the penalty's 2λ that is 2λ[[I, ∓ŵ], [∓ŵᵀ, 1]] ≥ 0, and 2JᵀJ/N comes on top.
"""


def _cells(settings: Settings) -> list[dict[str, Any]]:
    """Lots of at most `cell` points of each kind of task."""
    lots = [min(settings["cell"], settings["points"] - i) for i in range(0, settings["points"], settings["cell"])]
    return [
        {"kind": "certificates", "task": task, "points": points, "seed": settings["seed"], "part": part}
        for task in settings["kinds"]
        for part, points in enumerate(lots)
    ]


class Tally(NamedTuple):
    """Of the points of each kind of task: outcomes, verdicts of the reference, and outcomes of the regular ones.

    Regular points are critical to rounding and not degenerate. `clear`: outcomes of all points without an eigenvalue in
    the gap.
    """

    outcomes: dict[str, Counter]
    truths: dict[str, Counter]
    regular: dict[str, Counter]
    clear: Counter


def _measure(settings: Settings, progress: Progress) -> Measurement:
    points = _points(settings, progress)
    tally = Tally(
        {kind: Counter(rows["outcome"].values.tolist()) for kind, rows in points.items()},
        {kind: Counter(rows["truth"].values.tolist()) for kind, rows in points.items()},
        {kind: _where(rows, rows["regular"].values) for kind, rows in points.items()},
        sum((_where(rows, ~rows["unclear_spectrum"].values.astype(bool)) for rows in points.values()), Counter()),
    )
    gradients = np.concatenate([rows["gradient"].values for rows in points.values()])
    checks = [
        *_checks(tally, settings["points"]),
        at_most("gradient norm of the points, by the plain losses", gradients, bound=1e-9),
    ]
    sources = sum((Counter(rows["source"].values.tolist()) for rows in points.values()), Counter())
    measured = {**_measured(tally), "from": dict(sources)}
    sizes = np.concatenate([rows["sizes"].values.ravel() for rows in points.values()])
    data = {
        "sizes": sizes[~np.isnan(sizes)],
        "kinds": np.array(list(tally.outcomes)),
        "right": np.array([c["right"] for c in tally.outcomes.values()]),
        "minima": np.array([c["minimum"] for c in tally.truths.values()]),
        "strict": np.array([c["strict saddle"] for c in tally.truths.values()]),
        "other": np.array([c["non-strict saddle"] + c["saddle"] + c["unclear"] for c in tally.truths.values()]),
    }
    return Measurement(checks, measured, data=data, notes="; ".join(_wrong(points)[:20]))


def _points(settings: Settings, progress: Progress) -> dict[str, xr.Dataset]:
    """The points of each kind of task, with both verdicts."""
    import xarray as xr

    cells = _cells(settings)
    found = compute(comparison_cell, cells, progress, keep=settings["keep"])
    parts: dict[str, list[xr.Dataset]] = {}
    for cell, lot in zip(cells, found, strict=True):
        parts.setdefault(cell["task"], []).append(lot)
    return {kind: xr.concat(lots, "point") for kind, lots in parts.items()}


def _checks(tally: Tally, points: int) -> list[Check]:
    """Whether no verdict is wrong, there are enough points of each kind, and few are left undecided."""
    outcomes, truths, regular, clear = tally
    shares = {what: [c[what] / c.total() for c in outcomes.values()] for what in ("undecided", "unclear")}
    return [
        equal("wrong verdicts", 0, sum(c["wrong"] for c in outcomes.values())),
        at_least("points of each kind of task", [c.total() for c in outcomes.values()], bound=points),
        at_least("minima of each kind of task", [c["minimum"] for c in truths.values()], bound=1),
        at_least(
            "strict saddles of each kind of task that has any",
            [c["strict saddle"] for kind, c in truths.items() if kind not in WITHOUT_SADDLES],
            bound=1,
        ),
        at_most("share left undecided by the certificate, of each kind of task", shares["undecided"], bound=0.1),
        at_most(
            "share left undecided of points that are critical to rounding and not degenerate, of each kind of task",
            [c["undecided"] / max(c.total(), 1) for c in regular.values()],
            bound=0.01,
        ),
        at_most(
            "share left undecided of all points without an eigenvalue in the gap",
            clear["undecided"] / clear.total(),
            bound=0.01,
        ),
        at_most("share that the reference cannot tell, of each kind of task", shares["unclear"], bound=0.1),
    ]


def _measured(tally: Tally) -> dict[str, Any]:
    """What is set beside the paper's value."""
    outcomes, truths, regular, clear = tally
    total, kinds = sum(outcomes.values(), Counter()), sum(truths.values(), Counter())
    return {
        "kinds of tasks": len(outcomes),
        "points": total.total(),
        "wrong verdicts": total["wrong"],
        "left undecided": total["undecided"],
        "left undecided without an eigenvalue in the gap": f"{clear['undecided']} of {clear.total()}",
        "left undecided of those critical to rounding and not degenerate": {
            kind: f"{c['undecided']} of {c.total()}" for kind, c in regular.items()
        },
        "beyond the reference": total["unclear"],
        **{
            f"{kind}, by the reference": kinds[kind]
            for kind in ("minimum", "strict saddle", "non-strict saddle", "saddle")
        },
        "undecided by kind": {kind: c["undecided"] for kind, c in outcomes.items() if c["undecided"]} or "none",
        "beyond the reference, by kind": {kind: c["unclear"] for kind, c in outcomes.items() if c["unclear"]} or "none",
    }


def _where(rows: xr.Dataset, chosen: np.ndarray) -> Counter:
    """Outcomes of the chosen points."""
    return Counter(rows["outcome"].values[chosen.astype(bool)].tolist())


def _wrong(points: Mapping[str, xr.Dataset]) -> list[str]:
    """Where the two disagree."""
    told = []
    for kind, rows in points.items():
        wrong = rows.isel(point=np.flatnonzero(rows["outcome"].values == "wrong"))
        columns = (wrong[name].values.tolist() for name in ("source", "verdict", "truth"))
        told += [f"{kind}, {source}: {verdict} for {truth}" for source, verdict, truth in zip(*columns, strict=True)]
    return told


def _draw(measurement: Measurement, figure: Figure) -> None:
    from understudy.papers.promises.reference import CLEAR, ZERO

    data = measurement.data
    figure.set_size_inches(10.0, 4.8)
    left, right = figure.subplots(1, 2)
    left.hist(np.log10(np.maximum(data["sizes"], 1e-19)), bins=100)
    left.axvspan(np.log10(ZERO), np.log10(CLEAR), color="C1", alpha=0.3, label="gap of the reference")
    left.set(
        yscale="log", xlabel="log₁₀ |eigenvalue| / largest", ylabel="eigenvalues", title="Zero eigenvalues and others"
    )
    left.legend(loc="upper left")
    rows, start = np.arange(len(data["kinds"])), np.zeros(len(data["kinds"]))
    for name, label in (("minima", "minimum"), ("strict", "strict saddle"), ("other", "no sign in the Hessian")):
        right.barh(rows, data[name], left=start, label=label)
        start = start + data[name]
    right.set_yticks(rows, [str(kind) for kind in data["kinds"]], fontsize=7)
    right.invert_yaxis()
    right.set(xlabel="points", title=f"{measurement.measured['wrong verdicts']} wrong verdicts")
    right.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.4, -0.12), ncols=3)


CLAIM = Claim(
    paper="promises",
    id="certificates",
    where="README, us.certify",
    statement=(
        "A certificate is never wrong: its inertia is the Hessian's, and what it calls a minimum, a strict or a "
        "non-strict saddle is one. Where it cannot tell it says so."
    ),
    paper_value="0 wrong of 1,000 for every kind of task",
    measured_by=(
        "Random critical points of random tasks: searched by Levenberg-Marquardt on the gradient from random starts "
        "and after descents, split at random μ and at 0 and 1, with dead neurons, copy-average points. For each the "
        "Hessian by automatic differentiation of a loss written a second time (interactions, or the trapezoidal rule "
        "over inputs), its eigenvalues by LAPACK, zero below 1e-13 of the largest and another number above 1e-7; where "
        "others remain, descent from 24 starts in balls of radius 0.1 to 0.0003. Where a minimum could be narrower "
        "than these balls or falls are below rounding, the reference does not tell. Points are critical to rounding if "
        "the gradient's norm is at most 1e3 eps times the largest eigenvalue times 1 + the largest weight, and not "
        "degenerate at their own scale if no eigenvalue is between these bounds nor below ten times the root of the "
        "gradient's norm."
    ),
    tolerance="no wrong verdict; of each kind, 99 of 100 points that are critical to rounding and not degenerate "
    "decided by the certificate; nine of ten points of each kind decided by it, and nine of ten by the reference",
    tolerance_reason=(
        "Verdicts are compared exactly, and so are inertias where no eigenvalue is in the gap: there it may be "
        "rounding, the distance to the critical point, or itself."
    ),
    quick={"points": 30, "cell": 30, "keep": False, "seed": 0, "kinds": QUICK},
    full={"points": 1000, "cell": 250, "keep": True, "seed": CERTIFICATES_SEED, "kinds": list(NAMES)},
    measure=_measure,
    figure=_draw,
)
