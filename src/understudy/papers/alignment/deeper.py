"""Claim `deeper`: a student deeper than its teacher aligns with it in the lowest layer."""

from typing import Any

from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import jax.numpy as jnp
    import numpy as np

    from understudy.alignment import observations
    from understudy.alignment.correlations import correlate
    from understudy.experiments.aligning import draw, train_on
    from understudy.networks import Deep
    from understudy.papers.alignment.deep import _nearest
    from understudy.papers.alignment.students import experiment_of

    experiment = experiment_of(settings)
    (width,) = experiment.student
    cases = [(layers, seed) for layers in settings["layers"] for seed in range(settings["seeds"])]
    found: dict[str, list[Any]] = {n: [] for n in ("layers", "loss", "best", "sine", "seen", "untrained")}
    for layers, seed in progress.over(cases, "hidden layers, seed ="):
        problem = draw(experiment, seed)
        start = Deep.glorot([experiment.dim, *[width] * layers, experiment.outputs], seed=10**6 + seed)
        student, loss = train_on(start, problem, below=settings["below"], iterations=settings["iterations"], rounds=3)
        x = jnp.asarray(problem.evaluation)
        on = problem.teacher.layers(x, "relu")[0]
        found["layers"].append(layers)
        found["loss"].append(loss)
        for name, network in (("best", student), ("untrained", start)):
            found[name].append(np.asarray(correlate(on, network.layers(x, "relu")[0])).max(axis=1))
        found["sine"].append(_nearest(student, problem.teacher)[0])
        found["seen"].append((observations(student.layers(x, "relu")[0], on) > 0).sum(axis=0))
    reached = np.array(found["loss"]) < settings["enough"]
    depths = np.array(found["layers"])
    kept = np.flatnonzero(reached) if reached.any() else np.arange(len(cases))
    best, sines, untrained = (np.array(found[name])[kept] for name in ("best", "sine", "untrained"))
    return Measurement(
        checks=[
            at_least(
                f"share of students with a training loss below {settings['enough']:g}, every depth",
                [float(reached[depths == layers].mean()) for layers in settings["layers"]],
                bound=0.5,
            ),
            at_least("students that observe a teacher, least", np.array(found["seen"]), bound=1),
            at_least("correlation of every teacher with its best student", best, bound=0.99),
            at_most("sin of the angle to the nearest student, every teacher", sines, bound=0.05),
            at_least(
                "mean best correlation less that of the untrained student, every student",
                (best - untrained).mean(axis=1),
                bound=0.2,
            ),
        ],
        measured={
            "training losses": [float(f"{v:.2g}") for v in found["loss"]],
            "least correlation of a teacher, by student": [float(f"{v.min():.5g}") for v in found["best"]],
            "largest sin of an angle, by student": [float(f"{v.max():.2g}") for v in found["sine"]],
            "untrained students: mean best correlation": float(np.mean(found["untrained"])),
        },
        notes=(
            f"Two-layer teacher of {settings['teacher'][0]} nodes, {settings['dim']} inputs, {settings['outputs']} "
            f"outputs; students with {' or '.join(map(str, settings['layers']))} hidden layers of {width}, "
            f"{settings['samples']} samples, {settings['seeds']} seeds each; L-BFGS from Glorot's start."
        ),
    )


CLAIM = Claim(
    paper="alignment",
    id="deeper",
    where="Sec. 4.4, Thm 4",
    statement=(
        "Thm 4 holds for a student that is deeper than its teacher: identity layers can be added to the teacher. So "
        "the lowest layer of the student matches that of the teacher even if they have different numbers of layers."
    ),
    paper_value="alignment of the lowest layer",
    measured_by=(
        "Students with two and three hidden layers trained on teachers with one, to a small loss; correlations, angles "
        "without bias and observers of the lowest layer on held-out data, beside untrained students."
    ),
    tolerance="correlation 0.99; sin θ 0.05",
    tolerance_reason="The rule of align-deep, for every teacher instead of the median.",
    quick={
        "teacher": [4], "over": 3.0, "dim": 6, "outputs": 4, "samples": 1000, "evaluation": 1000, "polarity": 0.0,
        "record": [0, 1], "seeds": 2, "layers": [2], "below": 1e-11, "enough": 1e-7, "iterations": 1000,
    },
    full={
        "teacher": [6], "over": 3.0, "dim": 10, "outputs": 8, "samples": 4000, "evaluation": 2000, "polarity": 0.0,
        "record": [0, 1], "seeds": 3, "layers": [2, 3], "below": 1e-11, "enough": 1e-7, "iterations": 1500,
    },
    measure=_measure,
)  # fmt: skip
