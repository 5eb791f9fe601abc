"""Claim `plane`: two teachers and six students in the plane, trained until the loss is rounding."""

from __future__ import annotations

from typing import Any

from understudy.papers.alignment.students import unit_rows
from understudy.papers.check import Check, at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

FEW = 3
"""Boundaries that at most this many training samples tell apart count as one: two students can share a
teacher's bend between them although a sample lies in between.
"""


def _patterns(network: Any, x: Any) -> Any:
    """Which samples switch each node of the lowest layer on: nodes × samples. The first sample is made off, so that
    nodes with one boundary have one pattern whichever way they face; the second result says which were turned.
    """
    import numpy as np

    on = np.asarray(network.layers(x, "relu")[0]).T > 0
    turned = on[:, 0].copy()
    return on ^ turned[:, None], turned


def _jumps(network: Any, turned: Any) -> Any:
    """How much the linear map of the network changes across each node's boundary: nodes × (outputs · inputs with 1)."""
    import numpy as np

    rows = np.concatenate([np.asarray(network.weights[0]), np.asarray(network.biases[0])[:, None]], axis=1)
    signs = np.where(turned, -1.0, 1.0)
    return (signs[:, None, None] * np.asarray(network.weights[1]).T[:, :, None] * rows[:, None, :]).reshape(
        len(rows), -1
    )


def _seed(student: Any, teacher: Any, x: Any) -> dict[str, Any]:
    """Of one seed, with jumps relative to the largest of a student: what teachers' boundaries lack, and the jumps of
    unaligned students with a boundary in the data, alone or summed over a group that shares its boundary.
    """
    import numpy as np

    (seen, turned), (wanted, facing) = _patterns(student, x), _patterns(teacher, x)
    jumps, targets = _jumps(student, turned), _jumps(teacher, facing)
    sizes = np.linalg.norm(jumps, axis=1)
    samples = seen.shape[1]
    left = [k for k, pattern in enumerate(seen) if FEW < pattern.sum() < samples - FEW]  # a boundary in the data

    def taken(pattern: Any) -> list[int]:
        nonlocal left
        near = [k for k in left if np.sum(seen[k] != pattern) <= FEW]
        left = [k for k in left if k not in near]
        return near

    missing = []
    for pattern, target in zip(wanted, targets, strict=True):
        missing.append(float(np.linalg.norm(target - jumps[taken(pattern)].sum(axis=0)) / np.linalg.norm(target)))
    alone, shared = [], []
    while left:
        group = taken(seen[left[0]])
        if len(group) == 1:
            alone.append(float(sizes[group[0]] / sizes.max()))
        else:
            total = np.linalg.norm(jumps[group].sum(axis=0))
            shared.append((float(total / sizes.max()), float(sizes[group].max() / sizes.max())))
    cosines = unit_rows(teacher) @ unit_rows(student).T
    return {
        "cosine": float(cosines.max(axis=1).min()),
        "up to sign": float(np.abs(cosines).max(axis=1).min()),
        "missing": missing,
        "alone": alone,
        "shared": shared,
    }


def _trained(settings: Settings, progress: Progress) -> tuple[list[float], list[dict[str, Any]], list[tuple[Any, Any]]]:
    """Of every seed the training loss at the end, what `_seed` finds, and student and teacher."""
    import jax.numpy as jnp

    from understudy.experiments.aligning import draw, run, students_of, train_on
    from understudy.papers.alignment.students import experiment_of

    experiment = experiment_of(settings)
    seeds = list(range(settings["seeds"]))
    rows = run(experiment, seeds, progress=lambda s: progress(0.5 * s, "SGD"))
    losses, cases, networks = [], [], []
    for seed, student in zip(seeds, students_of(rows), strict=True):
        progress(0.5 + 0.5 * seed / len(seeds), f"seed {seed}: all samples at once")
        problem = draw(experiment, seed)
        student, loss = train_on(student, problem, below=settings["below"], iterations=settings["iterations"], rounds=3)
        losses.append(loss)
        cases.append(_seed(student, problem.teacher, jnp.asarray(problem.inputs)))
        networks.append((student, problem.teacher))
    return losses, cases, networks


def _checks(reached: list[dict[str, Any]], alone: list[float], shared: list[Any], settings: Settings) -> list[Check]:
    """What holds of the seeds that reached a loss of rounding, of their lone unaligned students and of the groups."""
    import numpy as np

    return [
        at_least(
            f"share of seeds with a training loss below {settings['enough']:g}",
            len(reached) / settings["seeds"],
            bound=0.8,
        ),
        at_least(
            "cosine of every teacher with its best student, up to sign",
            [c["up to sign"] for c in reached],
            bound=0.9999,
        ),
        at_most(
            "students on a teacher's boundary have its jump of slopes, relative distance",
            [value for c in reached for value in c["missing"]],
            bound=1e-5,
        ),
        at_least("unaligned students that share their boundary with no other", len(alone), bound=settings["least"]),
        at_most("their jump of slopes over the largest of their seed", alone or [np.inf], bound=1e-5),
        at_least("groups of unaligned students on one boundary", len(shared), bound=settings["least"]),
        at_most("jump of slopes summed over such a group", [total for total, _ in shared] or [np.inf], bound=1e-5),
        at_least(
            "in such a group the largest single jump, median",
            float(np.median([largest for _, largest in shared])) if shared else 0.0,
            bound=1e-2,
        ),
    ]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    losses, cases, networks = _trained(settings, progress)
    reached = [case for case, loss in zip(cases, losses, strict=True) if loss < settings["enough"]]
    alone = [found for case in reached for found in case["alone"]]
    shared = [found for case in reached for found in case["shared"]]
    shown = int(np.argmax([10 * bool(c["alone"] and c["shared"]) + len(c["alone"]) + len(c["shared"]) for c in cases]))
    student, teacher = networks[shown]
    return Measurement(
        checks=_checks(reached, alone, shared, settings),
        measured={
            "seeds below, lone unaligned students, unaligned groups": [len(reached), len(alone), len(shared)],
            "largest training loss": float(max(losses)),
            "least cosine up to sign": float(min(c["up to sign"] for c in reached)),
            "seeds with a teacher that only students facing away are aligned with": sum(
                c["cosine"] < 0.9999 for c in reached
            ),
            "largest jump of a lone one": float(max(alone, default=np.nan)),
            "largest sum over a group": float(max((t for t, _ in shared), default=np.nan)),
        },
        data={
            "students": unit_rows(student),
            "teachers": unit_rows(teacher),
            "norms": np.linalg.norm(np.asarray(student.weights[1]), axis=0),
        },
        notes=(
            f"Two teachers, six students, {settings['outputs']} outputs, {settings['samples']} inputs N(0, 1.5² I) in "
            f"the plane, {settings['seeds']} seeds; SGD, then L-BFGS. Students share a boundary if they "
            f"switch on the same training inputs, or the others, up to {FEW} of them; those on for all or none have no "
            f"boundary in the data."
        ),
        printed=[
            at_least(
                "Thm 2: w_k = γw_j with γ > 0: cosine of every teacher with its best student, every seed",
                [c["cosine"] for c in reached],
                bound=0.9999,
            )
        ],
        erratum_note=(
            "Alignment holds up to sign, as the claim align-2layer shows by construction. Training ends there too: in "
            "some seeds the only student on a teacher's boundary faces away from it, and other students make up the "
            "linear function that is the difference."
        ),
    )


def _draw(measurement: Measurement, figure: Any) -> None:
    import numpy as np

    from understudy.plots.style import COLOURS

    axes = figure.subplots()
    data = measurement.data
    reach = np.array([-4.0, 4.0])

    def line(row: Any, **style: Any) -> None:
        middle = -row[2] * row[:2] / np.sum(row[:2] ** 2)
        along = np.array([-row[1], row[0]]) / np.linalg.norm(row[:2])
        points = middle + reach[:, None] * along
        axes.plot(points[:, 0], points[:, 1], **style)

    for j, row in enumerate(data["teachers"]):
        line(row, color="0.6", lw=4, label=f"teacher {j + 1}")
    for k, (row, norm) in enumerate(zip(data["students"], data["norms"], strict=True)):
        line(row, color=COLOURS[k % len(COLOURS)], lw=1.4, ls="--", label=f"‖v‖ = {norm:.2g}")
    axes.set(
        xlabel="x₁", ylabel="x₂", title="Boundaries of two teachers and six students after training", aspect="equal"
    )
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


_COMMON: dict[str, Any] = {
    "teacher": [2], "over": 3.0, "dim": 2, "outputs": 2, "samples": 2000, "evaluation": 2000, "steps": 500,
    "record": [0, 20], "init": 0.5, "rate": 0.02, "polarity": 0.0, "below": 1e-20, "enough": 1e-16, "iterations": 1000,
}  # fmt: skip

CLAIM = Claim(
    paper="alignment",
    id="plane",
    where="Fig. 3, Thm 2, 3",
    statement=(
        "In the plane, with two teachers and six students, both teachers are aligned with a student at the end, and "
        "the fan-out of students that are aligned with none goes to zero."
    ),
    paper_value="‖v_k‖ → 0 for students that are not aligned (a figure of one run)",
    measured_by=(
        "SGD and then L-BFGS until the loss is rounding; which inputs switch each student on, and how much the slopes "
        "of the network jump across its boundary, v‖w‖, alone and summed over students on one boundary."
    ),
    tolerance="1e-4 on cosines; 1e-5 on jumps of slopes",
    tolerance_reason=(
        "Boundaries are known up to the spacing of samples, about 1e-2. Losses below 1e-16 fix the function to 1e-8, "
        "and slopes to 1e-8 over a distance of 1e-3."
    ),
    quick=_COMMON | {"seeds": 14, "least": 2},
    full=_COMMON | {"seeds": 48, "least": 10},
    measure=_measure,
    figure=_draw,
)
