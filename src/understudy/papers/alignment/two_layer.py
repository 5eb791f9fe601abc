"""Claim `align-2layer`: trained two-layer students align with every teacher they observe, and the others can be
pruned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from understudy.papers.alignment.recovery import scale_of
from understudy.papers.alignment.students import TWO_LAYER_FULL, TWO_LAYER_QUICK, experiment_of, train, unit_rows
from understudy.papers.check import Check, at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

COLINEAR = 0.05
"""Distance of unit vectors up to which trained students count as co-linear: on finite data students whose boundaries
have no sample between them are not told apart.
"""


def opposite_student() -> tuple[Any, Any]:
    """A teacher of one node σ(u) and a student without it that computes the same everywhere: σ(u) = σ(-u) + u, and u
    = a + (u - a) from two opposite pairs.
    """
    import jax.numpy as jnp

    from understudy.networks import Deep

    u, a = jnp.asarray([1.0, 0.0, 0.2]), jnp.asarray([0.3, 0.8, -0.1])  # the bias last
    rows = jnp.stack([-u, a, -a, u - a, a - u])
    teacher = Deep((u[None, :2], jnp.ones((1, 1))), (u[2:], jnp.zeros(1)))
    student = Deep((rows[:, :2], jnp.asarray([[1.0, 1.0, -1.0, 1.0, -1.0]])), (rows[:, 2], jnp.zeros(1)))
    return teacher, student


def _counterexample() -> dict[str, float]:
    """The opposite student by numbers: its error, its best cosines with the teacher, two-sided and one-sided sums,
    and the shape of what pruning leaves.
    """
    import jax.numpy as jnp
    import numpy as np

    from understudy.alignment import backpropagated, group_sums, observations, view

    teacher, student = opposite_student()
    x = jnp.asarray(2 * np.random.default_rng(0).normal(size=(2000, 2)))
    gap = np.asarray(teacher(x, "relu") - student(x, "relu"))
    gradients = backpropagated(view(student, x), view(teacher, x))
    cosines = (unit_rows(teacher) @ unit_rows(student).T)[0]
    seen = observations(student.layers(x, "relu")[0], teacher.layers(x, "relu")[0])
    sums = dict(group_sums(student, tolerance=1e-9))
    strangers = [value for group, value in sums.items() if 0 not in group]
    rest = np.asarray(student.layers(x, "relu")[0])[:, 1:] @ np.asarray(student.weights[1])[0, 1:]
    design = np.concatenate([np.asarray(x), np.ones((len(x), 1))], axis=1)
    left = rest - design @ np.linalg.lstsq(design, rest, rcond=None)[0]
    return {
        "error": float(np.max(np.abs(gap))),
        "gradient": max(float(jnp.max(jnp.abs(g))) for g in gradients),
        "observers": int((seen > 0).sum()),
        "best cosine": float(cosines.max()),
        "best cosine up to sign": float(np.abs(cosines).max()),
        "two-sided sums of unaligned": max(strangers),
        "fan-out of unaligned": float(np.abs(np.asarray(student.weights[1])[0, 1:]).max()),
        "contribution of unaligned": float(np.sqrt(np.mean(rest**2))),
        "their contribution that is not linear": float(np.sqrt(np.mean(left**2))),
    }


class _Student(NamedTuple):
    """What is measured of a trained student."""

    loss: float
    cosines: Any  # of every teacher with its best student
    observers: Any  # of every teacher
    best: Any  # correlation of every student with a teacher
    norms: Any  # of every student's fan-out
    alone: int  # unaligned groups with a boundary in the data
    ratio: float  # their largest sum of fan-out over that of all groups
    pruned: Any
    plain: Any  # pruned without moving constants to the bias
    merged: Any  # pruned, and co-linear nodes merged too


def _look_at(student: Any, problem: Any, loss: float) -> _Student:
    """Compare a trained student with its teacher on held-out data."""
    import jax.numpy as jnp
    import numpy as np

    from understudy.alignment import observations, prune_unaligned
    from understudy.alignment.correlations import align

    teacher, x = problem.teacher, jnp.asarray(problem.evaluation)
    best = align(student, teacher, x)[0].best_of_student
    on = [np.asarray(n.layers(x, "relu")[0]) for n in (student, teacher)]
    alone, ratio = _unaligned_sums(student, best, (on[0] > 0).mean(axis=0))
    return _Student(
        loss=loss,
        cosines=(unit_rows(teacher) @ unit_rows(student).T).max(axis=1),
        observers=(observations(*on) > 0).sum(axis=0),
        best=best,
        norms=np.linalg.norm(student.weights[1], axis=0),
        alone=alone,
        ratio=ratio,
        pruned=prune_unaligned(student, teacher, x, largest_change=np.inf),
        plain=prune_unaligned(student, teacher, x, fold=False, largest_change=np.inf),
        merged=prune_unaligned(student, teacher, x, tolerance=COLINEAR, largest_change=np.inf),
    )


def _unaligned_sums(student: Any, best: Any, inside: Any) -> tuple[int, float]:
    """How many co-linear groups are unaligned with a boundary in the data, and their largest sum over that of all.

    `inside`: the share of inputs that switch each node on.
    """
    import numpy as np

    from understudy.alignment import group_sums

    sums = group_sums(student, tolerance=COLINEAR)
    lone = [
        value
        for group, value in sums
        if best[list(group)].max() < 0.95 and np.all((inside[list(group)] > 0) & (inside[list(group)] < 1))
    ]
    return len(lone), max(lone, default=0.0) / max(value for _, value in sums)


def _trained(settings: Settings, progress: Progress) -> list[_Student]:
    """Students of all seeds after SGD and then L-BFGS on all samples."""
    from understudy.experiments.aligning import draw, students_of, train_on

    told = {"over": settings["over"], "polarity": settings["polarity"]}
    experiment = experiment_of(settings, **told)
    students = students_of(train(settings, tell=lambda s: progress(0.5 * s, "SGD"), **told))
    found = []
    for seed, student in enumerate(students):
        progress(0.5 + 0.5 * seed / len(students), f"seed {seed}: all samples at once")
        problem = draw(experiment, seed)
        student, loss = train_on(student, problem, below=settings["below"], iterations=settings["iterations"])
        found.append(_look_at(student, problem, loss))
    return found


def _checks_of_students(found: list[_Student]) -> list[Check]:
    """That trained students are aligned, and what pruning the others changes."""
    import numpy as np

    return [
        at_most("training loss, every seed", [s.loss for s in found], bound=1e-8),
        at_least("seeds", len(found), bound=5),
        at_least(
            "students that observe a teacher, least over teachers and seeds",
            np.array([s.observers for s in found]).min(),
            bound=1,
        ),
        at_least(
            "cosine of every teacher with its best student, weights and bias",
            np.array([s.cosines for s in found]),
            bound=0.999,
        ),
        at_most(
            "unaligned students with a boundary in the data: sum of fan-out per co-linear group, relative to the "
            "largest",
            [s.ratio for s in found],
            bound=1e-3,
        ),
        at_most(
            "unaligned students pruned: relative change of the function on held-out data",
            [s.pruned.report.relative_change for s in found],
            bound=1e-3,
        ),
    ]


def _checks_of_opposite(twist: dict[str, float]) -> list[Check]:
    """That the opposite student computes what the teacher does, aligned with it up to sign."""
    return [
        at_most(
            "opposite student: error and gradients of every sample", [twist["error"], twist["gradient"]], bound=1e-12
        ),
        at_least("opposite student: observers of the teacher", twist["observers"], bound=1),
        at_least(
            "opposite student: best cosine with the teacher up to sign",
            twist["best cosine up to sign"],
            bound=1 - 1e-12,
        ),
        at_most(
            "opposite student: sums of unaligned groups over both signs",
            twist["two-sided sums of unaligned"],
            bound=1e-12,
        ),
        at_most(
            "opposite student: what unaligned nodes contribute beyond a linear function",
            twist["their contribution that is not linear"],
            bound=1e-12,
        ),
    ]


def _checks_as_printed(twist: dict[str, float]) -> list[Check]:
    """Theorems 2 and 3 with γ > 0, of the opposite student."""
    return [
        at_least(
            "Thm 2: an observed teacher has a student w = γw*, γ > 0: best cosine in the opposite student",
            twist["best cosine"],
            bound=0.999,
        ),
        at_most(
            "Thm 3, Cor. 2: unaligned students contribute nothing, in the opposite student",
            twist["contribution of unaligned"],
            bound=1e-3,
        ),
    ]


def _summary(found: list[_Student], twist: dict[str, float]) -> dict[str, Any]:
    """What was measured, by seed, and the opposite student."""
    import numpy as np

    pruned, plain, merged = ([getattr(s, name) for s in found] for name in ("pruned", "plain", "merged"))
    return {
        "nodes before and after pruning, by seed": [f"{len(s.best)} → {s.pruned.report.after}" for s in found],
        "unaligned groups with a boundary in the data, by seed": [s.alone for s in found],
        "relative change by pruning": [float(f"{p.report.relative_change:.3g}") for p in pruned],
        "without the constant moved to the bias": [float(f"{p.report.relative_change:.3g}") for p in plain],
        "nodes after merging co-linear ones too, and relative change": [
            f"{p.report.after}: {p.report.relative_change:.1e}" for p in merged
        ],
        "training losses": [float(f"{s.loss:.2g}") for s in found],
        "held-out losses before and after pruning": [f"{p.loss_before:.1e} → {p.loss_after:.1e}" for p in pruned],
        "least cosine of a teacher with its best student": float(np.array([s.cosines for s in found]).min()),
        "opposite student": {k: float(f"{v:.3g}") for k, v in twist.items()},
    }


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    found = _trained(settings, progress)
    twist = _counterexample()
    return Measurement(
        [*_checks_of_students(found), *_checks_of_opposite(twist)],
        _summary(found, twist),
        {"best": np.stack([s.best for s in found]), "norms": np.stack([s.norms for s in found])},
        notes=(
            f"{scale_of(settings)}, {settings['over']:g}x, p = {settings['polarity']:g}; after SGD, L-BFGS on all "
            f"training samples until the loss is below {settings['below']:g}. Students "
            f"with a best correlation of at most 0.95 are pruned; those closer than {COLINEAR} in direction are merged."
        ),
        printed=_checks_as_printed(twist),
        erratum_note=(
            "Alignment holds up to sign. Lemma 2 and 3 call nodes independent unless w_j = γw_j' with γ > 0, but "
            "opposite nodes share their boundary and σ(u) - σ(-u) - u = 0. So a critical point need "
            "not contain a teacher's direction: σ(u) = σ(-u) + σ(a) - σ(-a) + σ(u-a) - σ(a-u) everywhere. With γ ≠ 0 "
            "of either sign both theorems hold: an observed teacher has a student on its "
            "boundary, v_k‖w_k‖ sums to zero over both signs of an unaligned group, and unaligned students together "
            "contribute a linear function, which vanishes only where none is left of opposite pairs."
        ),
    )


def _draw(measurement: Measurement, figure: Any) -> None:
    from understudy.plots.style import COLOURS

    axes = figure.subplots()
    for seed, (x, y) in enumerate(zip(measurement.data["best"], measurement.data["norms"], strict=True)):
        axes.plot(
            1 - x + 1e-12,
            y + 1e-12,
            "o",
            ms=4,
            alpha=0.7,
            mew=0,
            color=COLOURS[seed % len(COLOURS)],
            label=f"seed {seed}",
        )
    axes.axvline(0.05, color="0.5", lw=0.8, ls="--")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="1 - best correlation with a teacher",
        ylabel="fan-out norm",
        title="Students at a loss below 1e-8; left of the line: pruned",
    )
    axes.invert_xaxis()
    axes.legend(fontsize=8)


CLAIM = Claim(
    paper="alignment",
    id="align-2layer",
    where="Thm 2, 3, Cor. 2, Fig. 3, 4",
    statement=(
        "At an SGD critical point every teacher observed by a student (with α_kj ≠ 0) is aligned with one, w_k = γw_j, "
        "γ > 0; unaligned students with enough observers have zero summed fan-out per co-linear "
        "group and can be pruned without changing the function."
    ),
    paper_value={"relative change by pruning": 0},
    measured_by=(
        "SGD, then L-BFGS to a training loss below 1e-8; observers, cosines, group sums and pruning measured on "
        "held-out data; a student built from opposite nodes."
    ),
    tolerance="cosine 0.999; relative change 1e-3",
    tolerance_reason=(
        "At a loss of 1e-8 the function is right to 1e-4 relative; finite samples leave students of one teacher free "
        "up to the gaps between samples."
    ),
    quick=TWO_LAYER_QUICK
    | {"teacher": [5], "seeds": 5, "over": 5.0, "polarity": 0.5, "epochs": 20, "below": 1e-10, "iterations": 1500},
    full=TWO_LAYER_FULL
    | {"teacher": [10], "seeds": 6, "over": 5.0, "polarity": 1.0, "below": 1e-9, "iterations": 3000},
    measure=_measure,
    figure=_draw,
)
