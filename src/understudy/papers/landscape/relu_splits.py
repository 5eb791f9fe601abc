"""Claim `relu-splits`: what becomes of spurious ReLU minima of n = k when students have one neuron more."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.landscape.rows import as_rows
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.papers.cells import compute
    from understudy.papers.landscape.relu_case import minima_cell, stuck_cell

    widths, seeds, keep = [int(k) for k in settings["widths"]], settings["seeds"], settings["keep"]
    cells = [{"kind": "relu-minima", "k": k, "seeds": seeds, "most": settings["most"]} for k in widths]
    rows = [
        row for part in as_rows(compute(minima_cell, cells, progress, keep=keep, until=0.5)) for row in part["minima"]
    ]
    wider = [{"kind": "relu-stuck", "k": k, "n": k + more, "seeds": seeds} for k in widths for more in settings["more"]]
    stuck = as_rows(compute(stuck_cell, wider, progress, keep=keep))
    saddles = [sum(kind == "strict saddle" for kind in row["kinds"]) for row in rows]
    checks = [
        equal("widths with a spurious minimum", settings["widths"], sorted({row["k"] for row in rows})),
        equal("splits whose certificate contradicts the sign of Y", 0, sum(row["contradicted"] for row in rows)),
        at_least("neurons per minimum whose split is a strict saddle", saddles, bound=1),
        equal("splits along the least curvature from which the flow does not go down", 0, sum(
            row["not down"] for row in rows)),
        equal("neurons whose halves are a minimum, but whose thirds are not", 0, sum(row["lost"] for row in rows)),
    ]  # fmt: skip
    measured: dict[str, Any] = {
        f"n = k = {row['k']}, loss {row['loss']:.9f}": {
            name: row[name]
            for name in (
                "share of seeds",
                "neurons whose split is a saddle",
                "neurons that stay minima",
                "least curvature Y",
                "direction",
                "loss after it",
            )
        }
        for row in rows
    }
    measured["share of seeds at spurious minima, by the number of students"] = {
        f"k = {k}": {f"n = {part['n']}": part["stuck"] for part in stuck if part["k"] == k} for k in widths
    }
    data = {
        "k": np.array([r["k"] for r in rows]),
        "saddles": np.array(saddles),
        "stay": np.array([row["neurons that stay minima"] for row in rows]),
    }
    return Measurement(checks, measured, data=data)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    ax = figure.subplots()
    place = np.arange(len(data["k"]))
    ax.bar(place, data["saddles"], label="neurons whose split is a saddle")
    ax.bar(place, data["stay"], bottom=data["saddles"], label="neurons whose split stays a minimum")
    ax.set_xticks(place, [f"k = {k}" for k in data["k"]], fontsize=8)
    ax.set(xlabel="spurious minima of n = k", ylabel="neurons")
    ax.legend(fontsize=8)


CLAIM = Claim(
    paper="landscape",
    id="relu-splits",
    where="few-neurons, Section 4, for the spurious ReLU minima that copy-average mentions at n = k",
    statement="With one neuron more, spurious ReLU minima of n = k = 6 … 10 become saddles when certain neurons are "
    "split.",
    paper_value="gradient flow gets stuck at n = k; splits of minima are minima, saddles or both by the signs of Y",
    measured_by="Spurious minima of seeds; Y of every neuron, the certificate of every halved neuron, and the flow "
    "from both sides of the steepest way out. Seeds of wider students.",
    tolerance="exact",
    tolerance_reason="Signs of certified eigenvalues. ReLU's Y has the zero eigenvalue of rescaling, which is no sign.",
    quick={"widths": [6], "seeds": 24, "most": 2, "more": [0, 1], "keep": False},
    full={"widths": [6, 7, 8, 9, 10], "seeds": 60, "most": 4, "more": [0, 1, 2], "keep": True},
    measure=_measure,
    figure=_figure,
    cost=lambda s: float(s["seeds"] * sum(k**3 for k in s["widths"])),
)
