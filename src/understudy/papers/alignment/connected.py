"""Claim `connected`: trained students are joined by line segments of low loss, and not by one straight line."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from understudy.networks import Deep

POINTS = 21  # on each segment


def representatives(student: Deep, teacher: Deep, x: Any) -> list[int]:
    """For each teacher the student of the lowest layer that correlates most with it, all different."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    from understudy.alignment.correlations import correlate

    rho = np.asarray(correlate(teacher.layers(x, "relu")[0], student.layers(x, "relu")[0]))
    return [int(k) for k in linear_sum_assignment(-rho)[1]]


def refit(student: Deep, nodes: list[int], x: Any, y: Any) -> Deep:
    """The student with fan-out for these nodes only, and the output's bias, fitted by least squares."""
    import jax.numpy as jnp
    import numpy as np

    from understudy.networks import Deep

    active = np.asarray(student.layers(x, "relu")[0])[:, nodes]
    design = np.concatenate([active, np.ones((len(active), 1))], axis=1)
    found = np.linalg.lstsq(design, np.asarray(y), rcond=None)[0]
    out = np.zeros(student.weights[1].shape)
    out[:, nodes] = found[:-1].T
    return Deep((student.weights[0], jnp.asarray(out)), (student.biases[0], jnp.asarray(found[-1])))


def _with_incoming(student: Deep, nodes: list[int], source: Deep, of: list[int]) -> Deep:
    """The student with incoming weights and biases of some nodes taken from another one."""
    import jax.numpy as jnp

    from understudy.networks import Deep

    into, where = jnp.asarray(nodes), jnp.asarray(of)
    w = student.weights[0].at[into].set(source.weights[0][where])
    b = student.biases[0].at[into].set(source.biases[0][where])
    return Deep((w, student.weights[1]), (b, student.biases[1]))


def _moved(student: Deep, source: list[int], target: list[int]) -> Deep:
    """The fan-out of some nodes moved to others."""
    import jax.numpy as jnp

    from understudy.networks import Deep

    out, old, new = student.weights[1], jnp.asarray(source), jnp.asarray(target)
    return Deep((student.weights[0], out.at[:, old].set(0.0).at[:, new].set(out[:, old])), student.biases)


def corners(first: Deep, last: Deep, teacher: Deep, x: Any, y: Any) -> list[Deep]:
    """Eight networks, each joined to the next by a segment along which only fan-out or only unused nodes change.

    On a segment of fan-out the loss is convex, so its largest value is at an end. Unused nodes change nothing.
    """
    width = first.weights[0].shape[0]
    at_first, at_last = (representatives(network, teacher, x) for network in (first, last))
    spare = [k for k in range(width) if k not in {*at_first, *at_last}][: len(at_first)]
    if len(spare) < len(at_first):
        raise ValueError(f"the students need three times as many nodes as the teacher; received {width}")
    others = [k for k in range(width) if k not in spare]
    gathered = refit(first, at_first, x, y)
    copied = _with_incoming(gathered, spare, gathered, at_first)
    shifted = _moved(copied, at_first, spare)
    turned = _with_incoming(shifted, others, last, others)
    goal = refit(last, at_last, x, y)
    arrived = _with_incoming(goal, spare, turned, spare)
    return [first, gathered, copied, shifted, turned, arrived, goal, last]


def _losses(start: Deep, end: Deep, x: Any, y: Any) -> Any:
    """Losses at points of the segment from one network to another."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    found = []
    for t in np.linspace(0, 1, POINTS):
        between = jax.tree.map(lambda a, b, t=t: (1 - t) * a + t * b, start, end)
        found.append(float(0.5 * jnp.mean(jnp.sum((between(x, "relu") - y) ** 2, axis=1))))
    return np.array(found)


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import jax.numpy as jnp
    import numpy as np

    from understudy.experiments.aligning import draw, train_on
    from understudy.networks import Deep
    from understudy.papers.alignment.students import experiment_of

    experiment = experiment_of(settings)
    widths = [experiment.dim, *experiment.student, experiment.outputs]
    ends, paths, lines, shown = [], [], [], []
    for seed in progress.over(range(settings["seeds"]), "teacher"):
        problem = draw(experiment, seed)
        pair = []
        for turn in range(2):
            start = Deep.gaussian(widths, seed=10**6 + 10 * seed + turn, std=settings["start"])
            trained = train_on(start, problem, below=settings["below"], iterations=settings["iterations"], rounds=3)
            pair.append(trained)
        x, held_out = jnp.asarray(problem.inputs), jnp.asarray(problem.evaluation)
        y = problem.teacher(held_out, "relu")
        unit = float(0.5 * jnp.mean(jnp.sum((y - jnp.mean(y, axis=0)) ** 2, axis=1)))
        nodes = corners(pair[0][0], pair[1][0], problem.teacher, x, problem.targets)
        segments = [_losses(a, b, held_out, y) / unit for a, b in itertools.pairwise(nodes)]
        straight = _losses(pair[0][0], pair[1][0], held_out, y) / unit
        ends.append([loss for _, loss in pair])
        paths.append(float(np.max(segments)))
        lines.append(float(np.max(straight)))
        shown.append((np.concatenate(segments), straight))
    reached = np.max(ends, axis=1) < settings["enough"]
    kept = np.flatnonzero(reached)
    low = np.array(paths)[kept] if len(kept) else np.array([np.inf])
    high = np.array(lines)[kept] if len(kept) else np.array([0.0])
    return Measurement(
        checks=[
            at_least(
                f"share of pairs with both training losses below {settings['enough']:g}",
                float(reached.mean()),
                bound=0.5,
            ),
            at_most("segments: largest loss on held-out inputs, relative to the best constant", low, bound=1e-4),
            at_least("straight line: largest loss, relative to the best constant", high, bound=1e-2),
            at_most("largest loss on the segments over that on the straight line", low / high, bound=1e-3),
        ],
        measured={
            "pairs that reached it": f"{len(kept)} of {len(ends)}",
            "largest relative loss on segments, by pair": [float(f"{v:.2g}") for v in paths],
            "largest relative loss on the line, by pair": [float(f"{v:.2g}") for v in lines],
        },
        data={
            "segments": np.stack([a for a, _ in shown]),
            "lines": np.stack([b for _, b in shown]),
            "reached": reached,
        },
        notes=(
            f"{settings['teacher'][0]} teachers, {settings['over']:g}x, {settings['dim']} inputs, "
            f"{settings['outputs']} outputs, {settings['samples']} samples; two starts per teacher, L-BFGS. Seven "
            f"segments: fan-out is gathered in one student per teacher, moved to spare students, and distributed again."
        ),
    )


def _draw(measurement: Measurement, figure: Any) -> None:
    import numpy as np

    from understudy.plots.style import COLOURS

    data = measurement.data
    axes = figure.subplots()
    position = np.concatenate([k + np.linspace(0, 1, POINTS) for k in range(7)])
    for i, (path, line) in enumerate(zip(data["segments"], data["lines"], strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        axes.semilogy(position, np.maximum(path, 1e-18), color=colour, lw=1.3)
        axes.semilogy(np.linspace(0, 7, POINTS), np.maximum(line, 1e-18), color=colour, lw=1.0, ls="--")
    axes.set(
        xlabel="segment (dashed: one straight line between the same ends)",
        ylabel="loss, relative to the best constant",
        title="Two students of one teacher, joined by seven segments",
    )


CLAIM = Claim(
    paper="alignment",
    id="connected",
    where="Sec. 4.3",
    statement=(
        "The patterns of alignment explain why critical points of low cost are connected by line segments of low cost, "
        "but not by a single straight line, without the assumption of dropout stability."
    ),
    paper_value="low cost along line segments; not along one straight line",
    measured_by=(
        "Pairs of students trained from two starts; the segments that Thm 2 and 3 suggest; losses on held-out inputs "
        "along them and along the straight line."
    ),
    tolerance="segments 1e-4 of the best constant's loss, 1e-3 of the straight line's; straight line above 1e-2",
    tolerance_reason=(
        "With 3,000 samples one student stands for the students of a teacher up to the spacing of samples. The paper "
        "gives no numbers: four orders of magnitude separate \"low\" from what a constant reaches."
    ),
    quick={
        "teacher": [4], "over": 3.0, "dim": 6, "outputs": 4, "samples": 1000, "evaluation": 1000, "polarity": 0.0,
        "record": [0, 1], "seeds": 2, "start": 0.3, "below": 1e-14, "enough": 1e-8, "iterations": 1000,
    },
    full={
        "teacher": [5], "over": 4.0, "dim": 10, "outputs": 8, "samples": 3000, "evaluation": 3000, "polarity": 0.5,
        "record": [0, 1], "seeds": 5, "start": 0.3, "below": 1e-14, "enough": 1e-8, "iterations": 1500,
    },
    measure=_measure,
    figure=_draw,
)  # fmt: skip
