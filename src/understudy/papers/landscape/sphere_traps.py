"""Claim `sphere-traps`: which structures trap students on the sphere, how often, and which start avoids them."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, between, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONE = float(np.sqrt(0.5))
"""Cone starts have w_i·v_i above this: every student is closer to its own teacher than to any other."""


def _measure(settings: Settings, progress: Progress) -> Measurement:
    cases = [(int(k), int(degree)) for k in settings["widths"] for degree in settings["degrees"]]
    rows = [_case(k, degree, settings) for k, degree in progress.over(cases, "(n = k, ρ) =")]
    unknown = sum(row["unknown"] for row in rows)
    cones = [row["cone"] for row in rows]
    counts = [row["balanced"] for row in rows if row["k"] == 2]
    tight = [row["traps"].get("1-tight-pair", 0.0) for row in rows if row["k"] == 2 and row["degree"] in (6, 8, 10)]
    checks = [
        equal("runs that end at a minimum which the exploration does not have", 0, unknown),
        equal("n = k = 2: explorations whose Morse count exists and comes out wrong", 0, counts.count(False)),
        at_least("n = k = 2: explorations whose Morse count comes out right", counts.count(True), bound=1),
        equal("starts in the cones of the own teachers that end in a trap", 0, sum(c[1] - c[0] for c in cones)),
        between("n = k = 2, even ρ ≥ 6: share of uniform starts that end at tight balance", tight, low=0.3, high=0.5),
    ]
    measured = {
        f"n = k = {row['k']}, ρ = {row['degree']}": {
            "minima": row["minima"],
            "share of runs at copies": row["copies"],
            "traps": row["traps"],
            "Morse count of the exploration": {True: "right", False: "wrong: saddles are missing", None: "none"}[
                row["balanced"]
            ],
        }
        for row in rows
    }
    data = {name: np.array([row[name] for row in rows]) for name in ("k", "degree", "copies")}
    return Measurement(checks, measured, data=data)


def _case(k: int, degree: int, settings: Settings) -> dict[str, Any]:
    """One size and degree: the minima by exploration, shares from uniform starts, and starts in cones."""
    import understudy as us
    from understudy.papers.tight_balance.cone_starts import uniform_in_cones

    task = us.Sphere(np.eye(k), width=k, activation=f"hermite:{degree}")
    graph = us.explore(task, starts=settings["starts"], descents=False)
    minima = graph.minima
    known = np.array([p.loss for p in minima])
    runs = us.fit(task, seeds=settings["seeds"])
    ended = [run for run in runs if run.certificate.kind == "minimum"]
    unknown = sum(bool(np.min(np.abs(known - run.loss)) > 1e-8) for run in ended)
    labels = Counter(_end(run) for run in runs)
    copies = labels.pop("copies", 0)
    within = us.fit(task, seeds=settings["seeds"], init=uniform_in_cones(task, settings["seeds"], CONE))
    return {
        "k": k,
        "degree": degree,
        "minima": [f"{p.label}, loss {p.loss:.6f}, orbit {p.orbit}" for p in minima],
        "balanced": graph.completeness.balanced,
        "unknown": unknown,
        "copies": copies / len(runs),
        "traps": {name: count / len(runs) for name, count in sorted(labels.items())},
        "cone": (sum(run.loss < 1e-9 for run in within), len(within)),
    }


def _end(run: Any) -> str:
    """Where a run ended: copies, a trap by its label, or another point by label and verdict."""
    if run.loss <= 1e-9:
        return "copies"
    kind = run.certificate.kind
    return str(run.structure.label) if kind == "minimum" else f"{run.structure.label} ({kind})"


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    ax = figure.subplots()
    for k in sorted(set(data["k"])):
        here = data["k"] == k
        ax.plot(data["degree"][here], 1 - data["copies"][here], "o-", label=f"n = k = {k}")
    ax.set(xlabel="degree ρ", ylabel="share of uniform starts that do not reach copies", ylim=(-0.03, 1))
    ax.legend()


CLAIM = Claim(
    paper="landscape",
    id="sphere-traps",
    where="tight-balance, Section 3: ρ = 4 … 10, n = k ≤ 4",
    statement="Besides copies, only certain structures are minima; starts in the cones of the own teachers avoid them.",
    paper_value="tight balance traps two students of two teachers for a while; global convergence is observed",
    measured_by="Explorations with Morse counts; runs of the flow from uniform starts and from starts in cones.",
    tolerance="exact; losses to 1e-8",
    tolerance_reason="Every end is certified. 0.3 and 0.5 are the earlier share (38 to 41 % of 500 starts) ± about 0.1.",
    quick={"widths": [2, 3], "degrees": [4, 6], "starts": 128, "seeds": 60},
    full={"widths": [2, 3, 4], "degrees": [4, 5, 6, 7, 8, 9, 10], "starts": 256, "seeds": 200},
    measure=_measure,
    figure=_figure,
    cost=lambda s: float(len(s["widths"]) * len(s["degrees"]) * (s["starts"] + s["seeds"])),
)
