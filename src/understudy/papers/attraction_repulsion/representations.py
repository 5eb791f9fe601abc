"""Claim `representations`: the loss as a function of the hidden representations."""

from typing import TYPE_CHECKING, Any

from understudy.papers.check import Check, at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _random_networks(count: int) -> dict[str, Any]:
    """L(W) against L^r(Φ(W)) on random networks, and on their least-norm versions Ψ(Φ(W))."""
    import numpy as np

    from understudy.papers.attraction_repulsion.problems import random_network
    from understudy.regularised.representation import representation_loss, to_representations, to_weights

    above, identity, on_image, round_trip, excess = [], [], [], [], []
    for seed in range(count):
        task, vector = random_network(seed)
        layers = to_representations(task, vector)
        least = task.flatten(to_weights(task, layers))
        loss, reformulated = float(task.loss(vector)), representation_loss(task, layers)
        useless = task.penalty * float(np.sum((vector - np.asarray(least)) ** 2))
        above.append(reformulated / loss - 1)
        identity.append(abs(loss - reformulated - useless) / loss)
        on_image.append(abs(float(task.loss(least)) - reformulated) / loss)
        again = to_representations(task, least)
        size = max(float(np.linalg.norm(z)) for z in layers)
        round_trip.append(max(float(np.linalg.norm(a - b)) for a, b in zip(layers, again, strict=True)) / size)
        excess.append(useless / loss)
    return {
        "above": np.array(above),
        "identity": np.array(identity),
        "on_image": np.array(on_image),
        "round_trip": np.array(round_trip),
        "excess": np.array(excess),
    }


def _lower_neighbours(task: Any, settled: Any, tries: int) -> int:
    """How many of `tries` feasible representations around a settled minimum have a lower loss, beyond rounding."""
    import numpy as np

    from understudy.regularised.representation import project, representation_loss, to_representations

    rng = np.random.default_rng(0)
    layers = to_representations(task, settled.vector)
    here = representation_loss(task, layers)
    lower = 0
    for radius in (1e-2, 1e-3, 1e-4):
        for _ in range(tries):
            moved = [z + radius * float(np.linalg.norm(z)) * _unit(rng, z.shape) for z in layers]
            lower += representation_loss(task, project(task, moved)) < here * (1 - 1e-10)
    return lower


def _unit(rng: Any, shape: tuple[int, ...]) -> Any:
    import numpy as np

    direction = rng.normal(size=shape)
    return direction / np.linalg.norm(direction)


def _direct(settings: Settings, progress: Progress) -> dict[str, Any]:
    """Best minima found over weights and, from random representations, directly over those; and the way from one to
    the other.
    """
    import numpy as np

    from understudy.dynamics.settle import settle
    from understudy.papers.attraction_repulsion.descents import random_representations
    from understudy.papers.attraction_repulsion.problems import best_minimum, small_problem
    from understudy.regularised.frank_wolfe import minimise_globally
    from understudy.regularised.representation import optimise, to_representations

    found: dict[str, list[float]] = {
        name: [] for name in ("weights", "direct", "there", "back", "residuals", "certified")
    }
    lower = checked = 0
    problems = [(kind, seed) for kind in settings["kinds"] for seed in range(settings["problems"])]
    for kind, seed in progress.over(problems, "problem"):
        task = small_problem(seed, **kind)
        best = best_minimum(task, settings)
        starts = random_representations(
            task, range(settings["starts"]), steps=settings["steps"], best=settings["settled"]
        )
        direct = min((optimise(task, start) for start in starts), key=lambda end: end.upper)
        found["weights"].append(best.loss)
        found["residuals"].append(best.residual)
        found["direct"].append(direct.upper)
        # Local minima correspond: the image of one optimum, settled in the other space, is no better.
        found["there"].append(optimise(task, to_representations(task, best.vector), ridges=(1e-8,)).upper)
        found["back"].append(settle(task, task.flatten(direct.weights)).loss)
        whole = minimise_globally(task, tolerance=2e-7) if task.depth == 2 and task.kinked else None
        fits = whole is not None and len(whole.weights) <= task.widths[1]
        found["certified"].append(whole.value if whole is not None and fits else np.nan)
        if best.residual < 1e-9:
            lower += _lower_neighbours(task, best, settings["neighbours"])
            checked += 3 * settings["neighbours"]
    return {name: np.array(values) for name, values in found.items()} | {"lower": lower, "checked": checked}


def _checks_of_networks(nets: dict[str, Any], useless: Any) -> list[Check]:
    """Inequality and equality of L and L^r on random networks; `useless` are those with useless weights."""
    return [
        at_least("random networks", len(useless), bound=200),
        at_most("L^r(Φ(W))/L(W) - 1, largest", nets["above"], bound=1e-10),
        at_most("|L(W) - L^r(Φ(W)) - λ‖W - Ψ(Φ(W))‖²|/L(W)", nets["identity"], bound=1e-9),
        at_most("equality on the image of Ψ: |L(Ψ(Z)) - L^r(Z)|/L", nets["on_image"], bound=1e-10),
        at_most("Φ(Ψ(Z)) = Z, relative", nets["round_trip"], bound=1e-8),
        at_most("off the image strictly below: largest L^r/L - 1", nets["above"][useless], bound=-1e-7),
    ]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.papers.attraction_repulsion.descents import projected_gradient, random_representations
    from understudy.papers.attraction_repulsion.problems import small_problem

    nets = _random_networks(settings["networks"])
    direct = _direct(settings, progress)
    task = small_problem(0)
    start = random_representations(task, [0], steps=200)[0]
    _, descent = projected_gradient(task, start, steps=settings["projected_steps"])
    gap = direct["direct"] / direct["weights"] - 1
    joint = np.minimum(direct["direct"], direct["there"]) / np.minimum(direct["weights"], direct["back"]) - 1
    known = np.isfinite(direct["certified"])
    above = [direct[name][known] / direct["certified"][known] - 1 for name in ("weights", "direct")]
    useless = nets["excess"] > 1e-6
    checks = [
        *_checks_of_networks(nets, useless),
        at_least("problems optimised both ways", len(gap), bound=10),
        at_most(
            "best over representations / best over weights - 1, size, each also from the other's optimum",
            np.abs(joint),
            bound=1e-6,
        ),
        at_least("problems with a certified global minimum", int(known.sum()), bound=10),
        at_most("both from random starts alone / certified global minimum - 1, size", np.abs(above), bound=1e-6),
        at_most(
            "from each optimum into the other space and settled there, relative change",
            np.abs([direct["there"] / direct["weights"] - 1, direct["back"] / direct["direct"] - 1]),
            bound=1e-6,
        ),
        equal(f"feasible neighbours of minima that are lower, of {direct['checked']}", 0, direct["lower"]),
        at_most("projected gradient: last loss / first", descent[-1] / descent[0], bound=0.9999),
    ]
    measured = {
        "networks with useless weights": int(useless.sum()),
        "problems where both searches from random starts agree to 1e-6": f"{int(np.sum(np.abs(gap) <= 1e-6))} of "
        f"{len(gap)}",
        "largest relative difference of the two optima": float(np.abs(joint).max()),
        "largest relative difference to the certified global minimum": float(np.abs(above).max()),
        "projected gradient": f"{descent[0]:.6f} to {descent[-1]:.6f} in {len(descent) - 1} steps",
        "largest subgradient norm of the weight minima": float(direct["residuals"].max()),
    }
    data = {
        "excess": nets["excess"],
        "above": nets["above"],
        "gap": gap,
        "certified": direct["direct"] / direct["certified"] - 1,
        "descent": descent,
    }
    notes = (
        "Both searches are independent: best of many random starts each. Minima over representations are found with "
        "Tikhonov's ridge lowered from 3e-4 to 1e-8 of the inputs' mean square, and made feasible by Ψ with that "
        "ridge; a first ridge of 1e-2 leads to other, higher minima. Plain projected gradient descends, but slowly, as "
        "the pseudo-inverse is nearly singular."
    )
    return Measurement(checks, measured, data=data, notes=notes)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    import numpy as np

    left, right = figure.subplots(1, 2)
    data = measurement.data
    shown = np.maximum(data["excess"], 1e-18)
    left.loglog(shown, np.maximum(-np.asarray(data["above"]), 1e-18), ".", alpha=0.6)
    line = np.array([1e-18, 1.0])
    left.loglog(line, line, color="black", lw=0.8, ls="--", zorder=0)
    left.set(
        xlabel="λ‖W - Ψ(Φ(W))‖² / L(W)",
        ylabel="1 - Lʳ(Φ(W)) / L(W)",
        title="What Lʳ saves is the useless weights",
    )
    left.set_xticks([1e-18, 1e-12, 1e-6, 1.0])
    problems = np.arange(1, len(data["gap"]) + 1)
    for name, marker, label in (
        ("gap", "o", "to the best over weights"),
        ("certified", "s", "to the certified minimum"),
    ):
        right.semilogy(problems, np.maximum(np.abs(data[name]), 1e-17), marker, ms=5, mfc="none", label=label)
    right.axhline(1e-6, color="black", lw=0.8, ls="--")
    right.set(xlabel="problem", ylabel="relative distance", title="Best over representations")
    right.legend(fontsize=8.5, loc="lower left", bbox_to_anchor=(0.0, 0.66))


CLAIM = Claim(
    paper="attraction-repulsion",
    id="representations",
    where="Prop. 1/16, Sec. 3.3, App. B",
    statement=(
        "L^r(Z) = C(Z_L) + λΣ‖Z_ℓ(Z^σ_{ℓ-1})⁺‖² has the infimum of the regularised loss: L^r(Φ(W)) ≤ L(W) with "
        "equality exactly on the "
        "image of Ψ, minima correspond, and it can be minimised directly."
    ),
    paper_value="equal infima; L^r(Φ(W)) < L(W) off the image of Ψ",
    measured_by=(
        "Random networks of depth 2 to 4; minima settled over weights and, independently, over representations."
    ),
    tolerance="1e-10 on inequalities; 1e-6 on optima",
    tolerance_reason=(
        "Pseudo-inverses of random layers with condition numbers up to 1e4; a ridge of 1e-8 shifts minima by 1e-8 to "
        "1e-7."
    ),
    quick={
        "networks": 200,
        "kinds": [{}],
        "problems": 10,
        "starts": 64,
        "settled": 3,
        "steps": 3000,
        "neighbours": 10,
        "projected_steps": 20,
    },
    full={
        "networks": 1000,
        "kinds": [{}, {"activation": "tanh", "hidden": [3]}, {"hidden": [4, 4]}],
        "problems": 10,
        "starts": 64,
        "settled": 4,
        "steps": 3000,
        "neighbours": 100,
        "projected_steps": 200,
    },
    measure=_measure,
    figure=_figure,
)
