"""Claim `fibres`: covariances are a local minimum if all representations that have them are (Prop. 18)."""

from typing import Any

import numpy as np

from understudy.papers.check import Check, at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

CLEAR = 1e-3
"""A response above 1 + CLEAR is a way down. Neurons of a minimum have the response 1, so one within NONE is not; cases
between the two are left out.
"""
NONE = 1e-7


def _two_points(penalty: float, target: float, width: int) -> tuple[Any, list[Any]]:
    """Inputs (1, -1), targets (1, target), and points with the covariances of the neuron √(1-λ).

    They have a_i ≥ 0 with Σa_i² = 1 - λ: points inside this arc or triangle, on its edges, and its corners.
    """
    from understudy.tasks.regularised import Regularised

    task = Regularised([[1.0], [-1.0]], (1.0, target), (width,), penalty=penalty, bias=0.0, weights=[1.0, 1.0])
    shares = [np.full(width, 1 / width), np.arange(1.0, width + 1) / np.sum(np.arange(1.0, width + 1))]
    shares += [np.eye(width)[0], np.eye(width)[-1]]
    rows = [np.sqrt((1 - penalty) * share) for share in shares]
    return task, [(a[:, None], a[None, :]) for a in rows]


def _steepest(task: Any, pair: Any, output: Any) -> float:
    """The least slope of L^k at the covariances along z = (-1, 1), a neuron that is on for the second input only.

    The output moves by τ per unit of the neuron; a bracket of τ is searched on a grid and then by golden section.
    """
    from scipy.optimize import minimize_scalar

    from understudy.regularised.covariance import covariance_loss

    z = np.array([-1.0, 1.0])
    active = np.maximum(z, 0)
    base, step = covariance_loss(task, [pair], output), 1e-6

    def slope(ratio: float) -> float:
        moved = (pair[0] + step * np.outer(z, z), pair[1] + step * np.outer(active, active))
        return float(covariance_loss(task, [moved], output + step * ratio * active[None, :]) - base) / step

    return float(minimize_scalar(slope, bounds=(-20, 20), method="bounded").fun)


def _on_two_points(settings: Settings, progress: Progress) -> dict[str, list[Any]]:
    """For each λ, target and width: whether L^k has a way down, the slope, and the kinds of the representations."""
    from understudy.points import certify
    from understudy.regularised.covariance import covariances

    found: dict[str, list[Any]] = {name: [] for name in ("slope", "predicted", "down", "inside", "corners", "moved")}
    cases = [(p, f, n) for p in settings["penalties"] for f in settings["factors"] for n in settings["widths"]]
    for penalty, factor, width in progress.over(cases, "λ, y/λ, width ="):
        task, points = _two_points(penalty, factor * penalty, width)
        pairs = [covariances(task, point) for point in points]
        flat = np.stack([np.concatenate([k[0].ravel(), k[1].ravel(), out.ravel()]) for (k,), out in pairs])
        (pair,), output = pairs[0]
        slope = _steepest(task, pair, output)
        kinds = [certify(task, point).kind for point in points]
        found["slope"].append(slope)
        found["predicted"].append(penalty * (1 - factor**2))
        found["down"].append(slope < 0)
        found["inside"] += kinds[:2]
        found["corners"].append(sorted(set(kinds[2:])))
        found["moved"].append(float(np.ptp(flat, axis=0).max()))
    return found


def _response(task: Any, weights: Any) -> float:
    """The largest ‖Σ_s ∂C/∂Z_s σ(w·x_s)‖ over unit vectors w of the plane, over 2λ: above 1 a new neuron lowers L^k."""
    first, second = (np.asarray(w) for w in weights)
    x, y = np.asarray(task.entry), np.asarray(task.targets)
    output = (second @ np.maximum(first @ x, 0)).T
    slopes = 2 * np.asarray(task.sample_weights)[:, None] * (output - y)
    angle = np.linspace(0, 2 * np.pi, 100_000, endpoint=False)
    active = np.maximum(np.stack([np.cos(angle), np.sin(angle)], axis=1) @ x, 0)
    return float(np.max(np.linalg.norm(active @ slopes, axis=1)) / (2 * task.penalty))


def _on_data(settings: Settings, progress: Progress) -> list[dict[str, Any]]:
    """Minima of narrow networks on random data, seen in networks with one neuron more that have the same covariances.

    These are: the narrow network and a zero neuron, and each of its neurons split into two on its ray.
    """
    import jax.numpy as jnp

    from understudy.papers.attraction_repulsion.problems import best_minimum, small_problem
    from understudy.points import certify

    found = []
    cases = [(seed, width) for seed in range(settings["problems"]) for width in settings["narrow"]]
    for seed, width in progress.over(cases, "data, width ="):
        task = small_problem(seed, hidden=[width], bias=0.0, samples=6, penalty=settings["decay"])
        least = best_minimum(task, settings)
        if least.residual > 1e-9:
            continue
        first, second = (np.asarray(w) for w in task.unflatten(jnp.asarray(least.vector)))
        alive = np.linalg.norm(first, axis=1) > 1e-6
        first, second = first[alive], second[:, alive]
        wide = task.with_hidden((len(first) + 1,))
        corner = (np.vstack([first, np.zeros((1, 2))]), np.hstack([second, np.zeros((1, 1))]))
        splits = []
        for i in range(len(first)):
            a, b = np.vstack([first, first[i]]), np.hstack([second, second[:, i : i + 1]])
            a[[i, -1]] *= np.sqrt([[0.3], [0.7]])
            b[:, [i, -1]] *= np.sqrt([[0.3, 0.7]])
            splits.append((a, b))
        found.append(
            {
                "response": _response(task, (first, second)),
                "corner": certify(wide, corner).kind,
                "splits": [certify(wide, point).kind for point in splits],
            }
        )
    return found


def _of_one_neuron(settings: Settings) -> list[str]:
    """Kinds of the only representation: one neuron has no room for the second one, so all are minima."""
    from understudy.points import certify

    return [
        certify(task, points[0]).kind
        for penalty in settings["penalties"]
        for factor in settings["factors"]
        for task, points in [_two_points(penalty, factor * penalty, 1)]
    ]


def _checks_on_two_points(two: dict[str, list[Any]]) -> list[Check]:
    """What is known of two inputs: the slope of L^k and where the fibre has only minima."""
    return [
        at_most("covariances are the same at all points of a fibre", two["moved"], bound=1e-14),
        at_most(
            "two inputs: least slope of L^k against λ(1 - y²/λ²)",
            np.abs(np.subtract(two["slope"], two["predicted"])),
            bound=1e-4,
        ),
        equal("two inputs: kinds inside the fibre", ["minimum"], sorted(set(two["inside"]))),
        equal(
            "two inputs: L^k has a way down exactly where a corner of the fibre is not a minimum",
            two["down"],
            [kinds != ["minimum"] for kinds in two["corners"]],
        ),
    ]


def _checks_on_data(down: list[dict[str, Any]], flat: list[dict[str, Any]]) -> list[Check]:
    """On random data: saddles where L^k has a way down, and none where it has not."""
    level = [kind for case in flat for kind in (case["corner"], *case["splits"])]
    saddles = {"strict saddle", "non-strict saddle"}
    return [
        at_least("data: networks with a way down for L^k, and without", min(len(down), len(flat)), bound=3),
        equal(
            "data: with a way down, representations with a zero neuron that are saddles",
            len(down),
            sum(case["corner"] in saddles for case in down),
        ),
        equal("data: without one, points of the fibre that are certified saddles", 0, sum(k in saddles for k in level)),
        at_least(
            "data: without one, share of the fibre's points certified as minima (the others are undecided)",
            level.count("minimum") / max(len(level), 1),
            bound=0.5,
        ),
    ]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    two = _on_two_points(settings, progress)
    data = _on_data(settings, progress)
    down = [case for case in data if case["response"] > 1 + CLEAR]
    flat = [case for case in data if case["response"] < 1 + NONE]
    return Measurement(
        checks=[
            *_checks_on_two_points(two),
            *_checks_on_data(down, flat),
            equal(
                "one neuron: kinds of the only representation, with and without a way down",
                ["minimum"],
                sorted(set(_of_one_neuron(settings))),
            ),
        ],
        measured={
            "two inputs: with a way down": f"{sum(two['down'])} of {len(two['down'])}",
            "data: with a way down": f"{len(down)} of {len(data)}",
            "data: kinds of split neurons where L^k has a way down": sorted(
                {k for case in down for k in case["splits"]}
            ),
            "data: largest responses over 2λ": [float(f"{case['response']:.4g}") for case in data][:8],
        },
        notes=(
            "On X = (1, -1), Y = (1, y) the covariances are diag(p, q) after activation, and L^k = (z_1 - 1)² + (z_2 - "
            "y)² + λ(p + q + z_1²/p + z_2²/q): at q = 0 it has a way down exactly for |y| > λ."
        ),
    )


CLAIM = Claim(
    paper="attraction-repulsion",
    id="fibres",
    where="Prop. 18",
    statement=(
        "Covariances (and outputs) are a local minimum of L^k if all hidden representations that have these "
        "covariances are local minima; if the covariances are one, so are the representations."
    ),
    paper_value="local minimum if and only if all of the fibre is",
    measured_by=(
        "Two inputs, where the fibre and L^k are known: certificates inside the fibre and at its corners against "
        "slopes of L^k, on both sides of the threshold |y| = λ. Trained narrow networks on random data, with one "
        "neuron more: the largest response of a new neuron against certificates of all kinds of points in the fibre."
    ),
    tolerance="equal verdicts; 1e-4 on slopes",
    tolerance_reason="A difference quotient over a step of 1e-6, whose own error is about y² · 1e-6/λ².",
    quick={
        "penalties": [0.1, 0.4], "factors": [0.5, 0.9, 1.1, 2.0], "widths": [2], "problems": 4, "narrow": [1, 3],
        "decay": 0.1, "starts": 16, "settled": 1, "steps": 1000,
    },
    full={
        "penalties": [0.05, 0.1, 0.4], "factors": [-2.0, -0.5, 0.0, 0.9, 0.99, 1.01, 1.1, 2.0],
        "widths": [2, 3], "problems": 6, "narrow": [1, 2, 3], "decay": 0.1, "starts": 16, "settled": 1, "steps": 1000,
    },
    measure=_measure,
)  # fmt: skip
