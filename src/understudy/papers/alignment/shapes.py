"""Claims `l-shape` and `focus-shift`: unaligned students have small fan-out; strong teachers are learned first, and
students move on to weak ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from understudy.papers.alignment.recovery import scale_of
from understudy.papers.alignment.students import TWO_LAYER_FULL, TWO_LAYER_QUICK, train, train_cells
from understudy.papers.check import Check, at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

UNALIGNED, ALIGNED = 0.6, 0.95
"""Best correlations below and above which a student counts as unaligned and aligned; those between are on their way."""

CHASED = 0.6
"""A student that correlates more than this with a teacher follows it."""


class _Cell(NamedTuple):
    """The students of one polarity and width at the end."""

    best: Any  # correlation with a teacher
    norms: Any  # of their fan-out
    unaligned: Any  # the norms of unaligned students
    aligned: Any  # the norms of aligned ones
    recovered: float  # share of the teachers
    untrained: float  # share that untrained students recover


def _cell(rows: Any) -> _Cell:
    """What the rows of one cell say."""
    from understudy.alignment.correlations import RECOVERED

    best, norms = rows["best_of_student_1"].values[:, -1], rows["fan_out_1"].values[:, -1]
    recovered = (rows["best_of_teacher_1"].values > RECOVERED).mean(axis=(0, 2))
    low, high = norms[best < UNALIGNED], norms[best > ALIGNED]
    return _Cell(best, norms, low, high, float(recovered[-1]), float(recovered[0]))


def _told(cell: _Cell) -> str:
    """One cell in words."""
    import numpy as np

    low, high = cell.unaligned, cell.aligned
    return (
        f"{high.size} aligned, median fan-out {np.median(high) if high.size else np.nan:.2g}; {low.size} unaligned"
        + (f", median {np.median(low):.2g}" if low.size else "")
        + f"; {100 * cell.recovered:.0f} % of teachers recovered"
    )


def _checks_of_norms(ranks: list[float], ratio: float, medians: dict[float, list[float]]) -> list[Check]:
    """That unaligned students have small fan-out: over all, and by polarity between the medians of every cell."""
    return [
        at_least("rank correlation of best correlation and fan-out norm, over-parameterised cells", ranks, bound=0.3),
        at_most(
            f"fan-out of unaligned students (best correlation < {UNALIGNED}) over the median of aligned ones (> "
            f"{ALIGNED}) of their cell: median over all",
            ratio,
            bound=0.5,
        ),
        *(
            at_most(
                f"p = {p:g}: median fan-out of unaligned over that of aligned students, every over-parameterised cell",
                found,
                bound=0.5,
            )
            for p, found in medians.items()
            if found
        ),
    ]


def _checks_of_recovery(
    cells: dict[tuple[float, float], _Cell], overs: list[float], least: float, largest: float
) -> list[Check]:
    """That teachers are harder to recover at the largest polarity, in particular for the narrowest students."""
    wide, narrow = cells[(largest, overs[-1])], cells[(largest, overs[0])]
    return [
        at_least(
            "teachers recovered at the least p less at the largest, every width",
            [cells[(least, o)].recovered - cells[(largest, o)].recovered for o in overs],
            bound=0.0,
        ),
        at_least("at the largest p: widest less 1x", wide.recovered - narrow.recovered, bound=0.0),
        at_least(
            "the same net of untrained students",
            (wide.recovered - wide.untrained) - (narrow.recovered - narrow.untrained),
            bound=0.0,
        ),
    ]


def _measure_shape(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np
    from scipy.stats import spearmanr

    overs, polarities = settings["overs"], settings["polarities"]
    cells = {key: _cell(rows) for key, rows in train_cells(settings, overs, polarities, progress).items()}
    wider = {key: cell for key, cell in cells.items() if key[1] > 1}
    ranks = [spearmanr(cell.best.ravel(), cell.norms.ravel()).statistic for cell in wider.values()]
    ratios = [ratio for cell in wider.values() for ratio in (cell.unaligned / np.median(cell.aligned)).tolist()]
    medians: dict[float, list[float]] = {p: [] for p in polarities}
    for (p, _), cell in wider.items():
        if cell.unaligned.size:
            medians[p].append(float(np.median(cell.unaligned) / np.median(cell.aligned)))
    return Measurement(
        [
            *_checks_of_norms(ranks, float(np.median(ratios)) if ratios else np.nan, medians),
            *_checks_of_recovery(cells, overs, polarities[0], polarities[-1]),
        ],
        {
            **{f"p = {p:g}, {o:g}x": _told(cell) for (p, o), cell in cells.items()},
            "unaligned over aligned fan-out, median over all": float(np.median(ratios)) if ratios else "none unaligned",
            "largest ratio of a cell's medians": max((r for found in medians.values() for r in found), default=0.0),
            "untrained students: largest share of teachers recovered": max(cell.untrained for cell in cells.values()),
            "least rank correlation": float(min(ranks)),
        },
        {
            **{f"best {p:g} {o:g}": cell.best for (p, o), cell in cells.items()},
            **{f"norms {p:g} {o:g}": cell.norms for (p, o), cell in cells.items()},
            "overs": np.array(overs),
            "polarities": np.array(polarities),
        },
        notes=f"{scale_of(settings)}.",
    )


def _draw_shape(measurement: Measurement, figure: Any) -> None:
    import numpy as np

    from understudy.plots.style import COLOURS

    data = measurement.data
    overs, polarities = data["overs"], data["polarities"]
    figure.set_size_inches(max(7.0, 2.5 * len(overs)), max(4.2, 2.0 * len(polarities)))
    panels = np.atleast_2d(figure.subplots(len(polarities), len(overs), sharex=True, squeeze=False))
    for i, p in enumerate(polarities):
        for j, o in enumerate(overs):
            axes = panels[i, j]
            for seed, (x, y) in enumerate(zip(data[f"best {p:g} {o:g}"], data[f"norms {p:g} {o:g}"], strict=True)):
                axes.plot(x, y, ".", ms=4.5, mew=0, alpha=0.6, color=COLOURS[seed % len(COLOURS)])
            axes.set_title(f"p = {p:g}, {o:g}x", fontsize=9)
            axes.tick_params(labelsize=8)
    figure.supxlabel("best correlation with a teacher", fontsize=10)
    figure.supylabel("fan-out norm", fontsize=10)


def _first_time(best: Any, epochs: Any) -> Any:
    """Epoch at which each teacher's best correlation first exceeds `ALIGNED`, infinity if never; best is (seeds,
    epochs, teachers).
    """
    import numpy as np

    passed = best > ALIGNED
    return np.where(passed.any(axis=1), epochs[np.argmax(passed, axis=1)], np.inf)


def _trained(settings: Settings, progress: Progress) -> tuple[Any, Any]:
    """Rows of a few seeds that are watched closely, with the correlations of all pairs, and of all seeds."""

    def part(low: float, high: float) -> Any:
        return lambda share: progress(low + (high - low) * share, "training")

    few = {**settings, "seeds": settings["watched"]["seeds"]}
    watched = train(
        few, tell=part(0.0, 0.4), correlations=True, **{k: v for k, v in settings["watched"].items() if k != "seeds"}
    )
    return watched, train(settings, tell=part(0.4, 1.0), over=settings["over"], polarity=settings["polarity"])


def _shifting(rho: Any) -> tuple[Any, Any]:
    """Of every seed and student, from correlations (seeds, epochs, teachers, students): whether it followed the
    strongest teacher and ended aligned with another, and how far its correlation with the strongest fell.
    """
    chased_first = rho[:, :, 0].max(axis=1) > CHASED
    ends = rho[:, -1]
    elsewhere = (ends.argmax(axis=1) != 0) & (ends.max(axis=1) > ALIGNED)
    return chased_first & elsewhere, rho[:, :, 0].max(axis=1) - ends[:, 0]


def _closest_early(rho: Any) -> float:
    """The largest share of students whose best teacher is the strongest, over the first half of the records."""
    closest = (rho.argmax(axis=2) == 0).mean(axis=(0, 2))
    return float(closest[1 : max(len(closest) // 2, 2)].max())


def _measure_focus(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np
    from scipy.stats import spearmanr

    watched, rows = _trained(settings, progress)
    rho = np.asarray(watched["correlations"].values)  # seeds, epochs, teachers, students
    shifted, drop = _shifting(rho)
    epochs = rows["epoch"].values
    medians = np.median(_first_time(rows["best_of_teacher_1"].values, epochs), axis=0)
    finite = np.where(np.isfinite(medians), medians, 2 * epochs[-1])
    order = spearmanr(np.arange(len(finite)), finite).statistic
    early = _closest_early(rho)
    checks = [
        at_least(
            "rank correlation of a teacher's number (weaker and weaker) and the median time of its recovery",
            order,
            bound=0.9,
        ),
        at_least(
            "largest share of students closest to the strongest teacher early on, over chance",
            early * rho.shape[2],
            bound=1.5,
        ),
        at_least(
            "students that first followed the strongest teacher and ended aligned with another",
            int(shifted.sum()),
            bound=1,
        ),
        at_least(
            "drop of their correlation with the strongest teacher", drop[shifted] if shifted.any() else [0.0], bound=0.2
        ),
    ]
    measured = {
        "median epoch of recovery by teacher": ["never" if not np.isfinite(m) else float(m) for m in medians],
        "students that shifted, by seed": [int(n) for n in shifted.sum(axis=1)],
        "largest share closest to the strongest teacher": early,
        "rank correlation": float(order),
    }
    return Measurement(
        checks,
        measured,
        {
            "rho": rho.astype(np.float32),
            "epochs": watched["epoch"].values,
            "best": np.median(rows["best_of_teacher_1"].values, axis=0),
            "best_epochs": epochs,
            "shifted": shifted,
        },
        notes=(
            f"{scale_of(settings)}, {settings['over']:g}x, p = {settings['polarity']:g}; watched closely: "
            f"{settings['watched']['seeds']} seeds of {settings['watched']['teacher'][0]} teachers."
        ),
    )


def _draw_focus(measurement: Measurement, figure: Any) -> None:
    import matplotlib
    import numpy as np

    from understudy.plots.style import COLOURS

    data = measurement.data
    rho, epochs, shifted = data["rho"], data["epochs"], data["shifted"]
    seed = int(np.argmax(shifted.sum(axis=1)))
    movers = np.flatnonzero(shifted[seed])[: len(COLOURS)]
    goals = [int(rho[seed, -1, :, k].argmax()) for k in movers]
    panels = figure.subplot_mosaic([["first", "goal"], ["best", "best"]])
    for name, title in (("first", "strongest teacher"), ("goal", "teacher they end with")):
        axes = panels[name]
        for colour, k, goal in zip(COLOURS, movers, goals, strict=False):
            j = 0 if name == "first" else goal
            axes.plot(epochs, rho[seed, :, j, k], color=colour, lw=1.3, label=f"student {k} → teacher {goal + 1}")
        axes.set(xlabel="epoch", ylabel="correlation")
        axes.set_title(f"Students that shift: {title}", fontsize=9)
    if len(movers):
        panels["goal"].legend(fontsize=6.5, loc="lower right")
    best = data["best"]
    shades = matplotlib.colormaps["viridis"](np.linspace(0, 0.95, best.shape[1]))
    for j in range(best.shape[1]):
        panels["best"].plot(data["best_epochs"], best[:, j], color=shades[j], lw=1.2)
    panels["best"].set(xlabel="epoch", ylabel="best correlation")
    panels["best"].set_title(
        "Each teacher's best student, median over seeds: dark the strongest, bright the weakest", fontsize=9
    )


L_SHAPE = Claim(
    paper="alignment",
    id="l-shape",
    where="Sec. 6.1, Fig. 7",
    statement=(
        "Students that correlate with no teacher have small fan-out weights, those that align with one have large "
        "ones; a higher p makes recovery harder, in particular without over-parameterisation."
    ),
    paper_value="scatter plots for 10 teachers, 1x/2x/5x/10x, p = 0, 1, 2, 32 seeds",
    measured_by="Best correlation and fan-out norm of every student at the end.",
    tolerance="rank correlation ≥ 0.3; medians apart by a factor 2",
    tolerance_reason=(
        "The figure has no numbers; aligned students of weak teachers rightly have small fan-out too, which keeps rank "
        "correlations below 1 for p > 0."
    ),
    quick=TWO_LAYER_QUICK | {"overs": [1.0, 5.0], "polarities": [0.0, 1.5]},
    full=TWO_LAYER_FULL | {"teacher": [10], "overs": [1.0, 2.0, 5.0, 10.0], "polarities": [0.0, 1.0, 2.0]},
    measure=_measure_shape,
    figure=_draw_shape,
)

_DENSE = [0, *(round(0.1 * i, 1) for i in range(1, 20)), 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10, 12, 15, 20]
FOCUS_SHIFT = Claim(
    paper="alignment",
    id="focus-shift",
    where="Sec. 5.3, 6.1, Fig. 8, 12",
    statement=(
        "Strong teachers are learned first, and by many students; some of these shift to weaker teachers later, which "
        "are recovered last."
    ),
    paper_value="curves of correlation against time: p = 1, 10 and 20 teachers, 5x",
    measured_by=(
        "Correlations of all pairs along the training of a few seeds; the time of recovery of every teacher over all "
        "seeds."
    ),
    tolerance="rank correlation ≥ 0.9; at least one student that shifts",
    tolerance_reason="The figures show single seeds and no numbers.",
    quick=TWO_LAYER_QUICK
    | {
        "over": 5.0,
        "polarity": 1.0,
        "watched": {"teacher": [8], "over": 5.0, "polarity": 1.0, "seeds": 4, "record": _DENSE},
    },
    full=TWO_LAYER_FULL
    | {
        "teacher": [20],
        "over": 5.0,
        "polarity": 1.0,
        "watched": {"teacher": [10], "over": 5.0, "polarity": 1.0, "seeds": 4, "record": _DENSE},
    },
    measure=_measure_focus,
    figure=_draw_focus,
)
