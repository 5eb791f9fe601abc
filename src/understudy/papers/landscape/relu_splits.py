"""Claim `relu-splits`: what becomes of spurious ReLU minima of n = k when students have one neuron more."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_least, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.landscape.rows import as_dataset, as_rows
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUSH = 1e-2
"""How far the two halves are pushed apart, relative to the neuron."""


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.papers.cells import compute

    cells = [
        {"kind": "relu-splits", "k": int(k), "seeds": settings["seeds"], "most": settings["most"],
         "more": settings["more"]}
        for k in settings["widths"]
    ]  # fmt: skip
    found = as_rows(compute(width_cell, cells, progress, keep=settings["keep"]))
    rows = [row for part in found for row in part["minima"]]
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
        f"k = {part['k']}": part["stuck"] for part in found
    }
    data = {
        "k": np.array([r["k"] for r in rows]),
        "saddles": np.array(saddles),
        "stay": np.array([row["neurons that stay minima"] for row in rows]),
    }
    return Measurement(checks, measured, data=data)


def width_cell(cell: dict[str, Any]) -> Any:
    """One k: what becomes of its spurious minima, and how many seeds end at one with more students."""
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    k = cell["k"]
    minima = [_wider(k, network, share) for network, share in _spurious(k, cell)]
    stuck = {f"n = {k + more}": _stuck(k, k + more, cell["seeds"]) for more in cell["more"]}
    return as_dataset({"k": k, "minima": minima, "stuck": stuck})


def _stuck(k: int, n: int, seeds: int) -> float:
    """The share of seeds that end at a minimum with a positive loss."""
    import understudy as us

    runs = us.fit(us.Population(us.Teacher.orthonormal(k, activation="relu"), n), seeds=seeds)
    return sum(run.certificate.kind == "minimum" and run.loss > 1e-9 for run in runs) / len(runs)


def _spurious(k: int, settings: Settings) -> list[tuple[Any, float]]:
    """The spurious minima that seeds find, one network per loss, with the share of seeds at each; most frequent first.

    At most `settings["most"]` of them.
    """
    import understudy as us

    runs = us.fit(us.Population(us.Teacher.orthonormal(k, activation="relu"), k), seeds=settings["seeds"])
    trapped = [run for run in runs if run.certificate.kind == "minimum" and run.loss > 1e-9]
    groups: dict[float, list[Any]] = {}
    for run in trapped:
        groups.setdefault(round(run.loss, 8), []).append(run)
    ordered = sorted(groups.values(), key=len, reverse=True)[: settings["most"]]
    return [(group[0].parameters, len(group) / len(runs)) for group in ordered]


def _wider(k: int, network: Any, share: float) -> dict[str, Any]:
    """Split every neuron of a minimum into halves; certify, and follow the steepest way out of the softest one."""
    import understudy as us
    from understudy.points.splitting import split_matrices
    from understudy.surgery import split

    teacher = us.Teacher.orthonormal(k, activation="relu")
    task, wide = us.Population(teacher, k), us.Population(teacher, k + 1)
    matrices = [split_matrices(task, network, i) for i in range(k)]
    spectra = [np.linalg.eigh(m.curvature) for m in matrices]
    halves = [split(network, {i: [0.5, 0.5]}) for i in range(k)]
    kinds = [us.certify(wide, half).kind for half in halves]
    stay = [i for i, kind in enumerate(kinds) if kind == "minimum"]
    thirds = [us.certify(us.Population(teacher, k + 2), split(network, {i: [1 / 3] * 3})).kind for i in stay]
    falling = [bool(values[0] < -m.threshold) for (values, _), m in zip(spectra, matrices, strict=True)]
    softest = int(np.argmin([values[0] for values, _ in spectra]))
    values, vectors = spectra[softest]
    direction = vectors[:, 0]
    after = _after(wide, halves[softest], softest, direction)
    w = np.asarray(network.incoming)[softest]
    teachers = np.asarray(teacher.incoming)
    own = float(np.abs(teachers @ direction).max())
    loss = float(task.loss(network))
    return {
        "k": k,
        "loss": loss,
        "share of seeds": share,
        "kinds": kinds,
        "contradicted": sum((kind == "strict saddle") != falls for kind, falls in zip(kinds, falling, strict=True)),
        "neurons whose split is a saddle": f"{sum(falling)} of {k}",
        "neurons that stay minima": len(stay),
        "lost": sum(kind != "minimum" for kind in thirds),
        "least curvature Y": round(float(values[0]), 6),
        "direction": f"apart along u of neuron {softest}: |u·w|/‖w‖ = {abs(direction @ w) / np.linalg.norm(w):.2f}, "
        f"largest |u·v_j| = {own:.3f}, correlation of the neuron with its closest teacher "
        f"{float((teachers @ w).max() / np.linalg.norm(w)):.3f}",
        "loss after it": [float(f"{x:.6g}") for x in after],
        "not down": sum(x >= loss for x in after) if any(falling) else 0,
    }


def _after(task: Any, half: Any, neuron: int, direction: np.ndarray) -> list[float]:
    """Losses where the flow ends after the halves are pushed apart by ± the direction.

    `split` puts the parts of a neuron in its place, one after the other.
    """
    import understudy as us

    starts = []
    for sign in (1.0, -1.0):
        w = np.array(half.incoming)
        step = sign * PUSH * np.linalg.norm(w[neuron]) * direction
        w[neuron] += step
        w[neuron + 1] -= step
        starts.append(np.asarray(task.flatten(us.TwoLayer(w, np.asarray(half.outgoing)))))
    return [run.loss for run in us.fit(task, seeds=2, init=np.stack(starts))]


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
    statement="With one neuron more, spurious ReLU minima of n = k = 6 … 10 become saddles when certain neurons are split.",
    paper_value="gradient flow gets stuck at n = k; splits of minima are minima, saddles or both by the signs of Y",
    measured_by="Spurious minima of seeds; Y of every neuron, the certificate of every halved neuron, and the flow from "
    "both sides of the steepest way out. Seeds of wider students.",
    tolerance="exact",
    tolerance_reason="Signs of certified eigenvalues. ReLU's Y has the zero eigenvalue of rescaling, which is no sign.",
    quick={"widths": [6], "seeds": 24, "most": 2, "more": [0, 1], "keep": False},
    full={"widths": [6, 7, 8, 9, 10], "seeds": 60, "most": 4, "more": [0, 1, 2, 3], "keep": True},
    measure=_measure,
    figure=_figure,
    cost=lambda s: float(s["seeds"] * sum(k**3 for k in s["widths"])),
)
