"""Claim `few-students`: every critical point of one student, and of two students with up to four teachers."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _classes(graph: Any) -> set[tuple[Any, ...]]:
    """The classes that two lists are compared by: loss to nine digits, and whether it is a minimum.

    Isolated classes also by index and orbit.
    """
    return {
        (round(p.loss, 9) + 0.0, p.kind == "minimum", *((p.index, p.orbit) if p.isolated else ())) for p in graph.points
    }


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us
    from understudy.landscape.table import joins

    cases = [(sigma, 1, int(k)) for sigma in settings["activations"] for k in settings["one"]]
    cases += [(sigma, 2, int(k)) for sigma in settings["activations"] for k in settings["two"]]
    differing, single, wanted, missing, uncertified = [], [], [], [], 0
    measured: dict[str, Any] = {}
    heights: dict[str, np.ndarray] = {}
    for sigma, n, k in progress.over(cases, "(activation, n, k) ="):
        task = us.Population(us.Teacher.orthonormal(k, activation=sigma), n)
        first, second = (us.explore(task, starts=settings["starts"], seed=seed) for seed in settings["seeds"])
        name = f"{sigma}, n = {n}, k = {k}"
        if _classes(first) != _classes(second):
            differing.append(f"{name}: {len(_classes(first) ^ _classes(second))}")
        uncertified += sum(not c.certified for c in first.connections)
        missing.append(first.completeness.estimate - first.completeness.classes)
        if n == 1:
            single.append([p.loss for p in first.minima])
            wanted.append([us.theory.one_neuron(sigma, k).loss])
        ways = {p.number: [joins(c) for c in first.connections if c.saddle == p.number] for p in first.points}
        measured[name] = [
            f"{p.number}: {p.label}, {p.kind}, index {'/'.join(map(str, p.indices))}, loss {p.loss:.9f}"
            + (f", family {p.family}" if p.family else f", orbit {p.orbit}")
            + (f", joins {', '.join(ways[p.number])}" if ways[p.number] else "")
            for p in first.points
        ]
        heights[name] = np.array([[p.index, p.loss] for p in first.points])
    checks = [
        equal("cases whose two explorations differ", [], differing),
        equal("n = 1: number of minima up to symmetry", [1] * len(single), [len(x) for x in single]),
        close("n = 1: loss of the minimum against theory", [x[0] for x in wanted], [x[0] for x in single], 1e-11),
        equal("connections that are not certified", 0, uncertified),
        at_most("most classes that Chao's estimate misses", missing, bound=0.5),
    ]
    return Measurement(checks, measured, data={n: h for n, h in heights.items() if "n = 2" in n})


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
    tolerance_reason="Points are polished to rounding. That no class is missing is an estimate from repeats, not a proof.",
    quick={"activations": ["erf", "relu"], "one": [2], "two": [2], "starts": 128, "seeds": [0, 1]},
    full={"activations": ["erf", "relu"], "one": [1, 2, 3, 4, 8], "two": [1, 2, 3, 4], "starts": 384, "seeds": [0, 1]},
    measure=_measure,
    figure=_figure,
    cost=lambda s: float(s["starts"] * (len(s["one"]) + 3 * len(s["two"]))),
)
