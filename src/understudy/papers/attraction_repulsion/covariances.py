"""Claim `covariances`: the loss as a function of hidden covariances, its cone, its convexity, its global minimum."""

from typing import TYPE_CHECKING, Any

from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _values(count: int) -> list[float]:
    """Largest relative difference of L^k and L^r on random homogeneous networks."""
    from understudy.papers.attraction_repulsion.problems import random_network
    from understudy.regularised.covariance import covariance_loss, covariances
    from understudy.regularised.representation import representation_loss, to_representations

    found = []
    for seed in range(count):
        task, vector = random_network(seed)
        if task.activation.homogeneity != 1:
            continue
        pairs, output = covariances(task, vector)
        reference = representation_loss(task, to_representations(task, vector))
        found.append(abs(covariance_loss(task, pairs, output) - reference) / reference)
    return found


def _membership(samples: int, tries: int) -> tuple[Any, Any, float]:
    """Verdicts on pairs made of generators, and on pairs with K^σ enlarged beyond K; the least separation of the
    latter.
    """
    import numpy as np

    from understudy import activations
    from understudy.regularised.covariance import in_cone

    relu = activations.get("relu")
    inside, outside, separations = [], [], []
    rng = np.random.default_rng(5)
    for _ in range(tries):
        z = rng.normal(size=(samples**2, samples))
        active = np.maximum(z, 0)
        pair = (z.T @ z, active.T @ active + 1.0)
        inside.append(in_cone(pair, bias=1.0, activation=relu).verdict)
        # Tr K^σ ≤ Tr K on the cone: twice K^σ of positive z is outside.
        positive = np.abs(z)
        wrong = (positive.T @ positive, 1.05 * positive.T @ positive + 1.0)
        verdict = in_cone(wrong, bias=1.0, activation=relu)
        outside.append(verdict.verdict)
        separations.append(verdict.separation)
    return inside, outside, float(min(separations))


def _convexity(tries: int) -> tuple[list[float], list[float], list[float]]:
    """Least second differences, relative, along segments in one block; jointly at depth 2; and jointly at depth 3.

    Segments with an end where the loss is infinite (covariances of less than full rank) say nothing and are left out.
    """
    import numpy as np

    from understudy.papers.attraction_repulsion.problems import small_problem
    from understudy.regularised.covariance import covariance_loss, covariances

    rng = np.random.default_rng(6)
    block: list[float] = []
    joint2: list[float] = []
    joint3: list[float] = []
    for hidden in ([6], [6, 6]):
        # Wide enough for full rank, nearly always: then the loss is finite.
        task = small_problem(1, hidden=hidden, samples=3, inputs=3)
        for _ in range(tries):
            first, second = rng.normal(size=(2, task.size))
            if len(hidden) == 2:  # Tr[K₂(K₁^σ)⁻¹] bends down where K₂ grows faster than K₁^σ
                w = task.unflatten(first)
                second = task.flatten((1.5 * w[0], 5 * w[1], w[2] / 7.5))
            ends = [covariances(task, point) for point in (first, second)]
            for moving in [*range(len(hidden)), "output", "all"]:
                values = []
                for t in (0.0, 0.25, 0.5, 0.75, 1.0):
                    mix = lambda a, b, t=t: (1 - t) * a + t * b  # noqa: E731
                    pairs = [
                        (mix(p[0], q[0]), mix(p[1], q[1])) if moving in (i, "all") else p
                        for i, (p, q) in enumerate(zip(ends[0][0], ends[1][0], strict=True))
                    ]
                    output = mix(ends[0][1], ends[1][1]) if moving in ("output", "all") else ends[0][1]
                    values.append(covariance_loss(task, pairs, output))
                if not np.isfinite([values[0], values[-1]]).all():
                    continue
                finite = np.isfinite(values).all()
                bend = float(np.min(np.diff(values, 2)) / np.max(np.abs(values))) if finite else -np.inf
                (block if moving != "all" else joint2 if len(hidden) == 1 else joint3).append(bend)
    return block, joint2, joint3


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.papers.attraction_repulsion.problems import best_minimum, small_problem
    from understudy.regularised.frank_wolfe import minimise_globally

    values = _values(settings["networks"])
    inside, outside, separation = _membership(settings["cone_samples"], settings["cone_tries"])
    block, joint2, joint3 = _convexity(settings["segments"])
    gaps, excess, histories, widths_of, bounds = [], [], [], [], []
    for samples in progress.over(settings["samples"], "gap, N ="):
        kind = {"samples": samples, "outputs": settings["outputs"], "inputs": 3}
        found = minimise_globally(small_problem(samples, **kind), tolerance=1e-4)
        gaps.append(found.gap / found.value)
        histories.append(found.history)
        for width in settings["widths"]:
            task = small_problem(samples, **(kind | {"hidden": [width]}))
            excess.append(best_minimum(task, settings).loss / (found.value - found.gap) - 1)
            widths_of.append(width)
            bounds.append(samples)
    optima = []
    for seed in progress.over(range(settings["problems"]), "optimum, problem"):
        task = small_problem(seed)
        optima.append(minimise_globally(task, tolerance=2e-7).value / best_minimum(task, settings).loss - 1)
    checks = [
        at_most(f"L^k against L^r on {len(values)} random homogeneous networks, relative", values, bound=1e-8),
        equal("pairs made of generators: verdicts", ["inside"], sorted(set(inside))),
        equal("pairs with Tr K^σ > Tr K: verdicts", ["outside"], sorted(set(outside))),
        at_least("segments, jointly at depth 2 and 3", [len(joint2), len(joint3)], bound=settings["segments"] / 2),
        at_least("least second difference in one block, relative", block, bound=-1e-12),
        at_least("least second difference jointly at depth 2, relative", joint2, bound=-1e-12),
        at_most("depth 3 is not jointly convex: least second difference, relative", min(joint3), bound=-1e-6),
        at_most(f"relative gap at N = {settings['samples']}, exact oracle", gaps, bound=1e-4),
        at_least("trained losses of all widths above value - gap: least relative excess", excess, bound=-1e-12),
        at_least("problems with both optima", len(optima), bound=10),
        at_most("covariance optimum / weight optimum - 1, size", np.abs(optima), bound=1e-6),
    ]
    measured = {
        "relative gaps": {f"N = {n}": g for n, g in zip(settings["samples"], gaps, strict=True)},
        "least excess of a trained network": float(min(excess)),
        "optima, largest difference": float(np.max(np.abs(optima))),
        "least separation of pairs outside": separation,
        "joint second difference at depth 3": min(joint3),
    }
    data: dict[str, Any] = {f"history{n}": h for n, h in zip(settings["samples"], histories, strict=True)}
    data |= {"excess": np.array(excess), "widths": np.array(widths_of), "bounds": np.array(bounds)}
    data["samples"] = np.array(settings["samples"])
    return Measurement(checks, measured, data=data)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    import numpy as np

    left, right = figure.subplots(1, 2)
    data = measurement.data
    for i, n in enumerate(data["samples"]):
        history = np.asarray(data[f"history{n}"])
        gap = np.maximum((history[:, 0] - history[:, 1]) / history[:, 0], 1e-16)
        left.semilogy(np.arange(1, len(gap) + 1), gap, "o-", ms=3, color=f"C{i}", label=f"N = {n}")
        chosen = np.asarray(data["bounds"]) == n
        right.loglog(
            np.asarray(data["widths"])[chosen],
            np.maximum(data["excess"][chosen], 1e-7),
            "o-",
            color=f"C{i}",
            label=f"N = {n}",
        )
    left.axhline(1e-4, color="black", lw=0.8, ls="--")
    left.set(xlabel="Frank-Wolfe iteration", ylabel="relative gap", title="The gap closes")
    left.legend()
    widths = sorted({int(w) for w in data["widths"]})
    right.set_xticks(widths, [str(w) for w in widths])
    right.minorticks_off()
    right.set(xlabel="width", ylabel="best loss above the bound, relative", title="Trained: never below the bound")
    right.legend()


CLAIM = Claim(
    paper="attraction-repulsion",
    id="covariances",
    where="Prop. 3, 5, 17, App. C",
    statement=(
        "For homogeneous activations the loss is one of hidden covariances over a translated convex cone, convex in "
        "each block; its optimum is that of training wide networks."
    ),
    paper_value="equal infima; partially convex",
    measured_by=(
        "Random networks; the exact oracle over sign vectors for membership and Frank-Wolfe; trained networks of many "
        "widths."
    ),
    tolerance="gap 1e-4; optima 1e-6",
    tolerance_reason="The gap is the stopping rule of Frank-Wolfe, 1e-4, and 5e-7 for the comparison of optima.",
    quick={
        "networks": 60,
        "cone_samples": 3,
        "cone_tries": 3,
        "segments": 20,
        "samples": [4, 6],
        "outputs": 2,
        "widths": [1, 2, 8],
        "starts": 64,
        "settled": 2,
        "steps": 3000,
        "problems": 10,
    },
    full={
        "networks": 400,
        "cone_samples": 4,
        "cone_tries": 10,
        "segments": 200,
        "samples": [4, 6, 8],
        "outputs": 2,
        "widths": [1, 2, 4, 8, 20],
        "starts": 64,
        "settled": 3,
        "steps": 3000,
        "problems": 16,
    },
    measure=_measure,
    figure=_figure,
)
