"""Claim `untrained`: how well students of each width match teachers before any training, the null of every gain by
width.
"""

from __future__ import annotations

from typing import Any

from understudy.papers.alignment.students import TWO_LAYER_FULL, TWO_LAYER_QUICK, train
from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.alignment.correlations import RECOVERED

    overs = settings["overs"]
    # The strength of the teachers' outputs does not enter correlations, so one polarity stands for all.
    best = {
        o: train(settings, over=o, polarity=1.0, record=[0])["best_of_teacher_1"].values[:, 0]
        for o in progress.over(overs)
    }
    means = np.array([best[o].mean(axis=1) for o in overs])  # widths, seeds
    steps = np.diff(means, axis=0)
    errors = steps.std(axis=1, ddof=1) / np.sqrt(steps.shape[1])
    largest = [float(best[o].max()) for o in overs]
    checks = [
        at_most("largest correlation of a teacher with an untrained student, every width", largest, bound=RECOVERED),
        at_least(
            "mean best correlation from one width to the next, less two standard errors",
            steps.mean(axis=1) - 2 * errors,
            bound=0.0,
        ),
    ]
    measured = {
        f"{o:g}x": f"mean best correlation {m.mean():.3f} ± {m.std(ddof=1):.3f} over seeds, largest {high:.3f}, "
        f"{100 * float((best[o] > RECOVERED).mean()):.0f} % recovered"
        for o, m, high in zip(overs, means, largest, strict=True)
    }
    return Measurement(
        checks,
        measured,
        {"overs": np.array(overs), "means": means},
        notes=(
            f"{settings['teacher'][0]} teachers, {settings['dim']} inputs, {settings['evaluation']:,} samples, "
            f"{settings['seeds']} seeds. A maximum over more students is larger by itself. Counted by the threshold "
            f"{RECOVERED}, as in Fig. 7 and 10, untrained students recover nothing; a mean of correlations, as in "
            "Fig. 13, has to be compared with theirs."
        ),
    )


def _draw(measurement: Measurement, figure: Any) -> None:
    import numpy as np

    data = measurement.data
    axes = figure.subplots()
    means = np.asarray(data["means"])
    axes.errorbar(data["overs"], means.mean(axis=1), means.std(axis=1, ddof=1), fmt="o-", capsize=3)
    axes.set(xlabel="times the teachers' number", ylabel="mean best correlation", title="Students before any training")


CLAIM = Claim(
    paper="alignment",
    id="untrained",
    where="Sec. 6.2, Fig. 7, 10, 13",
    statement=(
        "Wider students match teachers better before any training, by the maximum over more nodes alone; above a "
        "correlation of 0.95 they match none."
    ),
    paper_value="untrained students are not shown",
    measured_by=(
        "Best correlations of every teacher with students at their random start, at the paper's two-layer scale."
    ),
    tolerance="two standard errors over seeds",
    tolerance_reason="Differences between widths are paired by seed.",
    quick=TWO_LAYER_QUICK | {"overs": [1.0, 2.0, 5.0, 10.0], "samples": 16},
    full=TWO_LAYER_FULL | {"teacher": [20], "overs": [1.0, 2.0, 5.0, 10.0], "samples": 16, "keep": False},
    measure=_measure,
    figure=_draw,
)
