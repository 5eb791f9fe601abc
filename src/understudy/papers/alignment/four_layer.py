"""Claim `four-layer`: in a deep student the lowest layer aligns first, and aligned nodes are those the output
listens to.
"""

from __future__ import annotations

from typing import Any

from understudy.papers.check import Check, at_least
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _lowest_layer(experiment: Any, rows: Any, sampled: int) -> tuple[Any, Any, list[float]]:
    """Of the students of the lowest layer at the end of each seed: best correlations, √E[β_kk] over that many samples,
    and the rank correlation of the two.
    """
    import jax.numpy as jnp
    import numpy as np
    from scipy.stats import spearmanr

    from understudy.alignment import importance, view
    from understudy.alignment.correlations import align
    from understudy.experiments.aligning import draw, students_of

    ranks, best, weights = [], [], []
    for seed, student in enumerate(students_of(rows)):
        problem = draw(experiment, seed)
        x = jnp.asarray(problem.evaluation)
        found = align(student, problem.teacher, x)[0].best_of_student
        strength = np.asarray(importance(view(student, x[:sampled])[0]))
        best.append(found)
        weights.append(strength)
        ranks.append(float(spearmanr(found, strength).statistic))
    return np.stack(best), np.stack(weights), ranks


def _checks(means: Any, areas: Any, ranks: list[float], reached: float) -> list[Check]:
    """That the lowest layer comes first, in `means` (seeds, records, layers) and `areas` (seeds, layers)."""
    return [
        at_least(
            "lowest layer less the best of the others: share of its way to correlation 1, mean over the training, "
            "every seed",
            areas[:, 0] - areas[:, 1:].max(axis=1),
            bound=1e-9,
        ),
        at_least(
            "lowest layer less the others at the end, mean best correlation, every seed",
            means[:, -1, 0] - means[:, -1, 1:].max(axis=1),
            bound=1e-9,
        ),
        at_least("mean best correlation of the lowest layer at the end", means[:, -1, 0], bound=reached),
        at_least(
            "layers above the lowest: mean best correlation at the end less that of the untrained student",
            (means[:, -1, 1:] - means[:, 0, 1:]).min(),
            bound=0.1,
        ),
        at_least("rank correlation of √E[β_kk] and best correlation, lowest layer", ranks, bound=0.3),
    ]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.papers.alignment.students import experiment_of, train

    experiment = experiment_of(settings)
    rows = train(settings, tell=lambda s: progress(0.9 * s, "training"))
    depth = len(experiment.teacher)
    means = np.stack(
        [rows[f"best_of_teacher_{l}"].values.mean(axis=2) for l in range(1, depth + 1)], axis=2
    )  # seeds, epochs, layers
    gained = (means - means[:, :1]) / (1 - means[:, :1])
    best, weights, ranks = _lowest_layer(experiment, rows, settings["sampled"])
    measured = {f"layer {l + 1}": " → ".join(f"{v:.3f}" for v in means[:, :, l].mean(axis=0)) for l in range(depth)} | {
        "share of the way to 1 at the first record, by layer": [round(float(v), 3) for v in gained[:, 1].mean(axis=0)],
        "rank correlation": ranks,
        "loss": [float(f"{v:.3g}") for v in rows["loss"].values.mean(axis=0)],
    }
    return Measurement(
        _checks(means, gained[:, 1:].mean(axis=1), ranks, settings["reached"]),
        measured,
        {"means": means, "epochs": rows["epoch"].values, "best": best, "weights": weights},
        notes=(
            f"Teacher {'-'.join(str(m) for m in experiment.teacher)}, student {experiment.over:g}x, {experiment.dim} "
            f"inputs, {experiment.outputs} outputs, {experiment.samples} samples, batches of {experiment.batch}, "
            f"{experiment.steps} an epoch, {experiment.epochs:g} epochs, {settings['seeds']} seeds, "
            f"{experiment.optimizer} at {experiment.rate:g}, Glorot's start. Mean best correlation by layer after "
            f"epochs {', '.join(f'{e:g}' for e in experiment.record)}."
        ),
    )


def _draw(measurement: Measurement, figure: Any) -> None:
    from understudy.plots.style import COLOURS

    data = measurement.data
    left, right = figure.subplots(1, 2)
    for l in range(data["means"].shape[2]):
        left.plot(
            data["epochs"], data["means"][:, :, l].mean(axis=0), "o-", ms=4, color=COLOURS[l], label=f"layer {l + 1}"
        )
    left.set(xlabel="epoch", ylabel="mean best correlation of a teacher", title="The lowest layer learns first")
    left.legend()
    for seed, (x, y) in enumerate(zip(data["best"], data["weights"], strict=True)):
        right.plot(x, y, ".", ms=6, alpha=0.6, mew=0, color=COLOURS[seed % len(COLOURS)])
    right.set(
        xlabel="best correlation with a teacher",
        ylabel=r"$\sqrt{E[\beta_{kk}]}$",
        title="Students of layer 1 at the end",
    )


CLAIM = Claim(
    paper="alignment",
    id="four-layer",
    where="Sec. 6.1, Fig. 9",
    statement=(
        "In a deep student the lowest layer aligns first, the layers above follow; nodes of low correlation have a "
        "small √E[β_kk]."
    ),
    paper_value="scatter plots by layer and epoch: teacher 50-75-100-125, student 10x",
    measured_by=(
        "Best correlations of every layer along the training; √E[β_kk] from the exact recursion over the layers above."
    ),
    tolerance="order of the layers, every seed; rank correlation ≥ 0.3",
    tolerance_reason="The figure has no numbers.",
    quick={
        "teacher": [8, 10, 12, 14], "over": 5.0, "dim": 20, "outputs": 10, "samples": 5000, "evaluation": 1000,
        "steps": 300, "batch": 16, "rate": 0.03, "init": 0.0, "standardise": True,
        "record": [0, 1, 2, 4, 8], "seeds": 2, "polarity": 0.0, "sampled": 200, "reached": 0.9, "keep": False,
    },
    full={
        "teacher": [50, 75, 100, 125], "over": 10.0, "dim": 100, "outputs": 50, "samples": 50_000, "evaluation": 2000,
        "steps": 1000, "batch": 16, "rate": 0.01, "init": 0.0, "standardise": True,
        "record": [0, 1, 2, 3, 4, 6, 8, 10], "seeds": 2, "polarity": 0.0, "sampled": 100, "reached": 0.6, "keep": True,
    },
    measure=_measure,
    figure=_draw,
)  # fmt: skip
