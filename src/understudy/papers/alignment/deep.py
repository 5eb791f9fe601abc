"""Claims `align-deep` and `noisy`: the lowest layer of deep students, and how alignment sharpens as gradients
shrink.
"""

from __future__ import annotations

from typing import Any

from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _nearest(student: Any, teacher: Any) -> tuple[Any, Any]:
    """Of every teacher in the lowest layer and its nearest student: sin of the angle of the weights without bias,
    and the distance of biases, both scaled to unit weights.
    """
    import numpy as np

    def scaled(network: Any) -> tuple[Any, Any]:
        w, b = np.asarray(network.weights[0]), np.asarray(network.biases[0])
        lengths = np.linalg.norm(w, axis=1)
        return w / lengths[:, None], b / lengths

    (w, b), (v, a) = scaled(student), scaled(teacher)
    across = np.stack(
        [np.linalg.norm(w - (w @ u)[:, None] * u, axis=1) for u in v]
    )  # sin θ, without the loss of 1 - cos²
    gap = np.abs(b[None, :] - a[:, None])
    near = np.argmin(np.where(v @ w.T > 0, np.hypot(across, gap), np.inf), axis=1)
    return across[np.arange(len(v)), near], gap[np.arange(len(v)), near]


def _observed(student: Any, teacher: Any, x: Any) -> Any:
    """For every teacher: how many students observe it on samples where α_kj(R) ≠ 0, and the largest |α_kj| among
    them (mean over samples).
    """
    import jax.numpy as jnp
    import numpy as np

    from understudy.alignment import observations, view

    s, t = view(student, x)[0], view(teacher, x)[0]
    seen = observations(s.activations, t.activations) > 0
    alpha = np.asarray(jnp.sqrt(jnp.mean(jnp.einsum("sck,scj->skj", s.fan_out, t.fan_out) ** 2, axis=0)))
    return (seen & (alpha > 0)).sum(axis=0), np.where(seen, alpha, 0).max(axis=0)


def _largest_gradient(student: Any, teacher: Any, x: Any) -> float:
    """ε: the largest entry of g_1 over the samples."""
    import jax.numpy as jnp

    from understudy.alignment import backpropagated, view

    return float(jnp.max(jnp.abs(backpropagated(view(student, x), view(teacher, x))[0])))


def _measure_deep(settings: Settings, progress: Progress) -> Measurement:
    import jax.numpy as jnp
    import numpy as np

    from understudy.alignment.correlations import align
    from understudy.experiments.aligning import draw, run, students_of, train_on
    from understudy.papers.alignment.students import experiment_of

    experiment = experiment_of(settings)
    seeds = list(range(settings["seeds"]))
    rows = run(experiment, seeds, progress=lambda s: progress(0.4 * s, "first-order steps"))
    losses, sines, seen, above, best = [], [], [], [], []
    for seed, student in zip(seeds, students_of(rows), strict=True):
        progress(0.4 + 0.6 * seed / len(seeds), f"seed {seed}: all samples at once")
        problem = draw(experiment, seed)
        student, loss = train_on(student, problem, below=settings["below"], iterations=settings["iterations"])
        losses.append(loss)
        sines.append(_nearest(student, problem.teacher)[0])
        seen.append(_observed(student, problem.teacher, jnp.asarray(problem.evaluation[:500]))[0])
        layers = align(student, problem.teacher, jnp.asarray(problem.evaluation))
        best.append(layers[0].best_of_teacher)
        above.append([float(layer.mean) for layer in layers])
    reached = np.array(losses) < settings["enough"]
    lowest = np.array(best)
    shown = lowest[reached] if reached.any() else np.zeros((1, 1))
    checks = [
        at_least(
            f"seeds with a training loss below {settings['enough']:g}", int(reached.sum()), bound=settings["least"]
        ),
        at_least("students that observe a teacher with α ≠ 0, least", np.array(seen).min(), bound=1),
        at_least(
            "correlation of every observed teacher with its best student, seeds that reached it", shown, bound=0.99
        ),
        at_most(
            "sin of the angle to the nearest student, every teacher, seeds that reached it",
            np.array(sines)[reached] if reached.any() else [1.0],
            bound=0.05,
        ),
    ]
    measured = {
        "training losses": [float(f"{v:.2g}") for v in losses],
        "least correlation of a teacher, lowest layer, by seed": [float(f"{v:.5g}") for v in lowest.min(axis=1)],
        "largest sin of an angle, by seed": [float(f"{v.max():.2g}") for v in sines],
        "mean best correlation by layer": [float(v) for v in np.mean(above, axis=0)],
    }
    return Measurement(
        checks,
        measured,
        {"best": lowest, "losses": np.array(losses)},
        notes=(
            f"Teacher {settings['dim']}-{'-'.join(str(m) for m in settings['teacher'])}-{settings['outputs']}, "
            f"students {settings['over']:g}x, {settings['samples']} samples, {settings['seeds']} seeds; "
            f"{settings['optimizer']}, then L-BFGS on all samples. Up to sign, see align-2layer. The "
            "check of angles took the median over teachers first."
        ),
    )


def _stages(settings: Settings, progress: Progress) -> tuple[Any, Any, Any, Any]:
    """ε (seeds, stages), sin θ and gaps of biases (seeds, stages, teachers) along the training, and the largest |α| of
    every teacher at its end (seeds, teachers).
    """
    import jax.numpy as jnp
    import numpy as np

    from understudy.experiments.aligning import draw, run, students_of, train_on
    from understudy.papers.alignment.students import experiment_of

    experiment = experiment_of(settings)
    seeds = list(range(settings["seeds"]))
    rows = run(experiment, seeds, progress=lambda s: progress(0.3 * s, "SGD"))
    bounds, sines, gaps, strengths = [], [], [], []
    for seed, student in zip(seeds, students_of(rows), strict=True):
        problem = draw(experiment, seed)
        x = jnp.asarray(problem.inputs)
        line = []
        for turn in range(settings["stages"]):
            progress(0.3 + 0.7 * (seed + turn / settings["stages"]) / len(seeds), f"seed {seed}")
            if turn:
                student, _ = train_on(student, problem, below=0.0, iterations=settings["iterations"], rounds=1)
            line.append((_largest_gradient(student, problem.teacher, x), *_nearest(student, problem.teacher)))
        bounds.append([b for b, _, _ in line])
        sines.append([s for _, s, _ in line])
        gaps.append([g for _, _, g in line])
        strengths.append(_observed(student, problem.teacher, x[:500])[1])
    return np.array(bounds), np.array(sines), np.array(gaps), np.array(strengths)


def _measure_noisy(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    epsilon, sine, gap, strengths = _stages(settings, progress)
    usable = epsilon > settings["rounding"]
    slopes = []
    for values in (sine, gap):
        y = np.log(np.median(values, axis=2)[usable])
        slopes.append(float(np.polyfit(np.log(epsilon[usable]), y, 1)[0]))
    strong = strengths[:, None, :].repeat(epsilon.shape[1], axis=1)[usable]
    constant = float(np.max(sine[usable] * strong / epsilon[usable][:, None]))
    falls = epsilon[:, 0] / epsilon[:, -1]
    checks = [
        at_least("ε falls from the first stage to the last, every seed, by a factor", falls, bound=100.0),
        at_least("exponent of ε in sin θ, median over teachers, all seeds", slopes[0], bound=settings["exponent"]),
        at_least("exponent of ε in |b - b*|", slopes[1], bound=settings["exponent"]),
        at_most("sin θ at the least ε, median over teachers", np.median(sine[:, -1], axis=1), bound=1e-2),
        at_most("sin θ · |α| / ε, every teacher and stage: one constant bounds them", constant, bound=2.0),
    ]
    measured = {
        "exponent, angles": slopes[0],
        "exponent, biases": slopes[1],
        "largest sin θ · |α| / ε": constant,
        "ε, first and last stage": [f"{a:.1e} … {b:.1e}" for a, b in zip(epsilon[:, 0], epsilon[:, -1], strict=True)],
        "sin θ at the last stage, largest": float(sine[:, -1].max()),
    }
    return Measurement(
        checks,
        measured,
        {"epsilon": epsilon, "sine": sine, "gap": gap},
        notes=(
            f"{settings['teacher'][0]} teachers, {settings['dim']} inputs, {settings['over']:g}x, "
            f"{settings['samples']} samples, {settings['seeds']} seeds; ε is the largest entry of g_1 over the "
            f"training samples, "
            "which stand for the region of the theorem: below their spacing nothing tells students apart."
        ),
    )


def _draw_noisy(measurement: Measurement, figure: Any) -> None:
    import numpy as np

    from understudy.plots.style import COLOURS

    data = measurement.data
    axes = figure.subplots()
    for name, label, colour in (("sine", "sin θ", COLOURS[0]), ("gap", "|b - b*|", COLOURS[1])):
        middle = np.median(data[name], axis=2)
        for seed in range(len(middle)):
            axes.loglog(
                data["epsilon"][seed],
                middle[seed],
                "o-",
                color=colour,
                lw=0.8,
                ms=3,
                alpha=0.8,
                label=label if seed == 0 else None,
            )
    ends = np.array([data["epsilon"].min(), data["epsilon"].max()])
    top = float(np.median(data["sine"][:, 0]))
    axes.loglog(ends, top * ends / np.median(data["epsilon"][:, 0]), "--", color="0.5", lw=1, label="∝ ε")
    axes.set(
        xlabel=r"$\varepsilon$: largest entry of $g_1$ over the samples",
        ylabel="median over teachers",
        title="Alignment as gradients shrink",
    )
    axes.legend()


ALIGN_DEEP = Claim(
    paper="alignment",
    id="align-deep",
    where="Thm 4, Fig. 5",
    statement=(
        "In a deep network every teacher of the lowest layer that is observed in a region with α_kj(R) ≠ 0 is aligned "
        "with a student at an SGD critical point."
    ),
    paper_value="alignment of the lowest layer",
    measured_by=(
        "Three-layer students trained to a small loss; observers and α from the recursion of Lemma 1, correlations and "
        "angles on held-out data."
    ),
    tolerance="correlation 0.99",
    tolerance_reason="A training loss of the given size on finitely many samples.",
    quick={
        "teacher": [4, 4], "over": 3.0, "dim": 8, "outputs": 6, "samples": 2000, "evaluation": 1000, "steps": 200,
        "batch": 16, "optimizer": "adam", "rate": 3e-3, "init": 0.0,
        "standardise": True, "record": [0, 15], "seeds": 2, "below": 1e-9, "enough": 1e-6, "least": 1,
        "iterations": 1500, "polarity": 0.0,
    },
    full={
        "teacher": [8, 8], "over": 4.0, "dim": 15, "outputs": 10, "samples": 10_000, "evaluation": 5000, "steps": 600,
        "batch": 16, "optimizer": "adam", "rate": 2e-3, "init": 0.0,
        "standardise": True, "record": [0, 30], "seeds": 5, "below": 1e-9, "enough": 1e-6, "least": 2,
        "iterations": 3000, "polarity": 0.0,
    },
    measure=_measure_deep,
)  # fmt: skip

NOISY = Claim(
    paper="alignment",
    id="noisy",
    where="Thm 5, App. 9.7-9.8, 9.13",
    statement=(
        "If every sample's gradient g_1 is at most ε, each observed teacher has a student with sin θ = O(ε^(1-δ)/|α|) "
        "and |b - b*| = O(ε^(1-2δ)/|α|), for any δ > 0."
    ),
    paper_value={"exponent, angles": "1 - δ", "exponent, biases": "1 - 2δ"},
    measured_by=(
        "Two-layer students along their training, SGD and then L-BFGS in stages: ε, angles and biases of each "
        "teacher's nearest student."
    ),
    tolerance="exponent ≥ 0.6",
    tolerance_reason=(
        "The theorem bounds from above, with δ and a constant of its own; finite samples leave angles free below their "
        "spacing, which flattens the last stages."
    ),
    quick={
        "teacher": [5], "over": 3.0, "dim": 10, "outputs": 8, "samples": 2000, "evaluation": 500, "steps": 300,
        "polarity": 0.5, "record": [0, 5], "seeds": 2, "stages": 8,
        "iterations": 40, "rounding": 1e-6, "exponent": 0.6,
    },
    full={
        "teacher": [10], "over": 5.0, "dim": 20, "outputs": 20, "samples": 10_000, "evaluation": 1000, "steps": 1000,
        "polarity": 0.5, "record": [0, 5], "seeds": 8, "stages": 18,
        "iterations": 60, "rounding": 1e-6, "exponent": 0.6,
    },
    measure=_measure_noisy,
    figure=_draw_noisy,
)  # fmt: skip
