"""Claim `few-students`: every critical point of one student, and of two students with up to four teachers."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.landscape.rows import as_dataset, as_rows
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DEGENERATE = "relu, n = 1, k = 1"
"""Here the only point besides the copy is the student opposite to the teacher, with outgoing weight zero.

At an angle π - δ to the teacher the gradient by the incoming vector is of order δ⁵, because E[σ(w·x)σ(v·x)] falls like
δ³. So searches end at δ up to 1e-2, and curvatures there have any size up to δ⁴: one point counts as many classes.
"""


def _classes(graph: Any) -> set[tuple[Any, ...]]:
    """The classes that two lists are compared by: loss to nine digits, and whether it is a minimum.

    Isolated classes also by index and orbit.
    """
    return {
        (round(p.loss, 9) + 0.0, p.kind == "minimum", *((p.index, p.orbit) if p.isolated else ())) for p in graph.points
    }


def case_cell(cell: dict[str, Any]) -> Any:
    """Two explorations of one case: the points of the first, and how the second differs."""
    import understudy as us
    from understudy.compilation import keep_compiled_programs
    from understudy.landscape.table import joins

    keep_compiled_programs()
    sigma, n, k = cell["activation"], cell["n"], cell["k"]
    # On a line a ReLU student is off on a whole half of it, so that one teacher has two dimensions too.
    task = us.Population(us.Teacher.orthonormal(k, dim=max(k, 2), activation=sigma), n)
    first, second = (us.explore(task, starts=cell["starts"], seed=seed) for seed in cell["seeds"])
    ways = {p.number: [joins(c) for c in first.connections if c.saddle == p.number] for p in first.points}
    return as_dataset(
        {
            "name": f"{sigma}, n = {n}, k = {k}",
            "n": n,
            "differing": len(_classes(first) ^ _classes(second)),
            "uncertified": sum(not c.certified for c in first.connections),
            "missing": first.completeness.estimate - first.completeness.classes,
            "minima": [p.loss for p in first.minima],
            "wanted": us.theory.one_neuron(sigma, k).loss,
            "points": [
                f"{p.number}: {p.label}, {p.kind}, index {'/'.join(map(str, p.indices))}, loss {p.loss:.9f}"
                + (f", family {p.family}" if p.family else f", orbit {p.orbit}")
                + (f", joins {', '.join(ways[p.number])}" if ways[p.number] else "")
                for p in first.points
            ],
            "heights": [[p.index, p.loss] for p in first.points],
        }
    )


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.papers.cells import compute

    cases = [(sigma, 1, int(k)) for sigma in settings["activations"] for k in settings["one"]]
    cases += [(sigma, 2, int(k)) for sigma in settings["activations"] for k in settings["two"]]
    cells = [
        {"kind": "few-students", "activation": sigma, "n": n, "k": k, "starts": settings["starts"],
         "seeds": settings["seeds"]}
        for sigma, n, k in cases
    ]  # fmt: skip
    rows = as_rows(compute(case_cell, cells, progress, keep=settings["keep"]))
    single = [row for row in rows if row["n"] == 1]
    checks = [
        equal("cases whose two explorations differ", [], [
            f"{row['name']}: {row['differing']}" for row in rows if row["differing"]]),
        equal("n = 1: number of minima up to symmetry", [1] * len(single), [len(row["minima"]) for row in single]),
        close("n = 1: loss of the minimum against theory", [row["wanted"] for row in single], [
            row["minima"][0] for row in single], 1e-11),
        equal("connections that are not certified", 0, sum(row["uncertified"] for row in rows)),
        at_most(
            "most classes that Chao's estimate misses, without one ReLU student of one teacher",
            [row["missing"] for row in rows if row["name"] != DEGENERATE], bound=0.5),
    ]  # fmt: skip
    heights = {row["name"]: np.array(row["heights"]) for row in rows if row["n"] == 2}
    return Measurement(checks, {row["name"]: row["points"] for row in rows}, data=heights)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    ax = figure.subplots()
    for i, (name, points) in enumerate(measurement.data.items()):
        ax.plot(points[:, 0] + 0.06 * (i - len(measurement.data) / 2), points[:, 1], "o", ms=5, label=name)
    ax.set(xlabel="index", ylabel="loss", yscale="symlog")
    ax.set_yscale("symlog", linthresh=1e-3)
    ax.legend(fontsize=7)


CLAIM = Claim(
    paper="landscape",
    id="few-students",
    where="copy-average, Sections 4 and 5: one student, and two students of up to four teachers; erf and ReLU",
    statement="One student has one minimum up to symmetry; two students have the listed critical points and ways down.",
    paper_value="minima only: the average for n = 1, copy-average and perturbed copies for n = 2",
    measured_by="Two independent explorations per case, compared class by class; one student against the theory.",
    tolerance="losses to 1e-9; n = 1 against theory to 1e-11",
    tolerance_reason="Points are polished to rounding. That no class is missing is an estimate from repeats, not a "
    "proof.",
    quick={"activations": ["erf", "relu"], "one": [2], "two": [2], "starts": 128, "seeds": [0, 1], "keep": False},
    full={
        "activations": ["erf", "relu"],
        "one": [1, 2, 3, 4, 8],
        "two": [1, 2, 3, 4],
        "starts": 384,
        "seeds": [0, 1],
        "keep": True,
    },
    measure=_measure,
    figure=_figure,
    cost=lambda s: float(s["starts"] * (len(s["one"]) + 3 * len(s["two"]))),
)
