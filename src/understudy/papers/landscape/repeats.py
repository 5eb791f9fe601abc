"""Claim `repeats`: how often independent explorations of one case come out with the same graph."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def signature(graph: Any) -> tuple[Any, ...]:
    """What two graphs share if they are the same: classes with loss, index, kind and orbit, and certified ways.

    The orbit of a family is that of the point which represents it, so it does not count.
    """
    points = tuple(
        (round(p.loss, 9) + 0.0, p.kind, p.index, p.label, p.family, p.orbit if p.isolated else 0) for p in graph.points
    )
    return points, tuple(sorted((c.saddle, tuple(sorted(map(str, c.ends))), c.certified) for c in graph.connections))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us

    task = us.Population(us.Teacher.orthonormal(settings["teachers"]), settings["students"])
    seeds = range(settings["first"], settings["first"] + settings["explorations"])
    graphs = [us.explore(task, starts=settings["starts"], seed=seed) for seed in progress.over(seeds, "exploration")]
    (common, count), *_ = Counter(map(signature, graphs)).most_common()
    points, ways = common
    found = np.array([[p.found for p in g.points] for g in graphs if signature(g) == common])
    losses = {loss for g in graphs for loss, *_ in signature(g)[0]}
    average = us.theory.one_neuron("erf", settings["teachers"] - settings["students"] + 1).loss
    checks = [
        equal("explorations whose graph is not the most frequent one", 0, len(graphs) - count),
        equal("losses that some exploration found and the most frequent graph lacks", 0, len(losses) - len(points)),
        equal("connections of the common graph that are not certified", 0, sum(not c for *_, c in ways)),
        close("least loss against that of copies and one average", average, min(p[0] for p in points), 1e-9),
        at_most(
            "largest number of classes that Chao's estimate misses",
            [g.completeness.estimate - g.completeness.classes for g in graphs],
            bound=0.5,
        ),
    ]
    measured = {
        "same graph": f"{count} of {len(graphs)}",
        "classes": [f"{label}: {kind}, index {index}, loss {loss:.9f}" for loss, kind, index, label, *_ in points],
        "connections": [f"{saddle}: {' - '.join(ends)}" for saddle, ends, _ in ways],
        "fewest searches that found a class": int(found.min()),
    }
    return Measurement(checks, measured, data={"found": found, "labels": np.array([p[3] for p in points])})


def _figure(measurement: Measurement, figure: "Figure") -> None:
    data = measurement.data
    ax = figure.subplots()
    ax.boxplot(data["found"], tick_labels=[str(x) for x in data["labels"]], whis=(0, 100))
    ax.set(ylabel="searches per exploration that end there", ylim=(0, None))
    ax.tick_params(axis="x", labelsize=8)


CLAIM = Claim(
    paper="landscape",
    id="repeats",
    where="copy-average, Section 4: two students of four teachers, erf",
    statement="Independent explorations of (k, n) = (4, 2) find the same critical points and the same connections.",
    paper_value="the paper has minima only: 1-copy-1-average",
    measured_by="Explorations from different random starts; each graph is compared class by class and way by way.",
    tolerance="exact; losses to 1e-9",
    tolerance_reason="Points are polished to gradients of 1e-14; losses of different classes differ by 1e-4 or more.",
    quick={"teachers": 4, "students": 2, "explorations": 3, "starts": 192, "first": 100},
    full={"teachers": 4, "students": 2, "explorations": 20, "starts": 256, "first": 100},
    measure=_measure,
    figure=_figure,
    cost=lambda settings: float(settings["explorations"] * settings["starts"]),
)
