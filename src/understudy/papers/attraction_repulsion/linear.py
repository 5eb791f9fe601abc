"""Claim `linear`: the layers of a linear network of least norm interpolate between input and output; its cost is a
Schatten quasi-norm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

PENALTY = 0.02


def _trained(
    inputs: Any, targets: Any, depth: int, width: int, starts: int, steps: int, seed: int
) -> tuple[Any, float, float]:
    """The best of several trained networks, to a small gradient: weights, penalised loss, gradient norm. Columns are
    inputs.
    """
    import jax.numpy as jnp
    import numpy as np

    from understudy.dynamics.descent import descend_to_least_norm, quasi_newton
    from understudy.tasks.regularised import Regularised

    task = Regularised(
        inputs.T,
        targets.T,
        [width] * (depth - 1),
        penalty=PENALTY,
        bias=0.0,
        activation="linear",
        weights=np.ones(inputs.shape[1]),
    )
    rng = np.random.default_rng(seed)
    draws = tuple(rng.normal(size=(starts, *shape)) / np.sqrt(shape[1]) for shape in task.shapes)
    points, losses = descend_to_least_norm(task, task.flatten(draws), first_penalty=PENALTY, steps=steps, rate=0.01)
    best, loss, gradient = quasi_newton(task, points[int(jnp.argmin(losses))])
    return [np.asarray(w) for w in task.unflatten(best)], loss, gradient


def _least_loss(values: Any, depth: int) -> float:
    """min_A ‖A - Y‖² + λL Σ s_i(A)^(2/L) for X = I, one singular value at a time: a scan refined around its best
    point.
    """
    import numpy as np

    total = 0.0
    for s in values:
        low, high = 0.0, float(s)
        for _ in range(12):  # each pass shortens the interval to 2/400
            t = np.linspace(low, high, 401)
            cost = (s - t) ** 2 + PENALTY * depth * t ** (2 / depth)
            best = int(np.argmin(cost))
            low, high = float(t[max(best - 1, 0)]), float(t[min(best + 1, 400)])
        total += float(cost[best])
    return total


def _built(x: Any, a: Any, depth: int, seed: int) -> list[Any]:
    """Relative deviations of balanced weights of `a`: hidden covariances from the formula, the norm from the cost."""
    import numpy as np

    from understudy.papers.attraction_repulsion.linear_network import (
        balanced_weights,
        interpolate_covariance,
        schatten_cost,
    )

    weights = balanced_weights(a, depth, [len(x) + 2] * (depth - 1), seed=seed)
    deviations, hidden = [], x
    for layer, w in enumerate(weights, start=1):
        hidden = w @ hidden
        formula = interpolate_covariance(x, a @ x, layer, depth)
        deviations.append(np.max(np.abs(hidden.T @ hidden - formula)) / np.max(np.abs(formula)))
    return [*deviations, abs(sum(np.sum(w**2) for w in weights) / schatten_cost(a, depth) - 1)]


def _random_factors(rng: Any, n: int, depth: int) -> tuple[Any, Any]:
    """The squared norm of random factors, and the Schatten cost of their product."""
    import numpy as np

    from understudy.papers.attraction_repulsion.linear_network import schatten_cost

    random = [rng.normal(size=(n, n)) for _ in range(depth)]
    product = np.linalg.multi_dot(random[::-1]) if depth > 1 else random[0]
    return sum(np.sum(w**2) for w in random), schatten_cost(product, depth)


class _Network(NamedTuple):
    """What is measured of a trained network."""

    covariances: list[Any]  # relative deviations from the formula
    cost: Any  # relative deviation from the Schatten cost
    gradient: float
    spectrum: Any  # eigenvalues of X⁻ᵀ Z_ℓᵀ Z_ℓ X⁻¹ by layer


def _of_training(x: Any, y: Any, depth: int, seed: int, settings: Settings) -> _Network:
    """Train on these inputs and targets, and compare with the formula and the cost."""
    import numpy as np

    from understudy.papers.attraction_repulsion.linear_network import interpolate_covariance, schatten_cost

    weights, _, gradient = _trained(x, y, depth, len(x) + 2, settings["starts"], settings["steps"], seed)
    layers = [x]
    for w in weights:
        layers.append(w @ layers[-1])
    inverse = np.linalg.inv(x)
    deviations, rows = [], []
    for layer, z in enumerate(layers):
        formula = interpolate_covariance(x, layers[-1], layer, depth)
        deviations.append(np.max(np.abs(z.T @ z - formula)) / np.max(np.abs(formula)))
        rows.append(np.linalg.eigvalsh(inverse.T @ z.T @ z @ inverse)[::-1])
    represented = layers[-1] @ inverse
    cost = abs(sum(np.sum(w**2) for w in weights) / schatten_cost(represented, depth) - 1)
    return _Network(deviations, cost, gradient, np.array(rows))


def _excess(y: Any, depth: int, seed: int, settings: Settings) -> float:
    """The trained loss for X = I over the least one, less 1."""
    import numpy as np

    n = len(y)
    _, loss, _ = _trained(np.eye(n), y, depth, n + 2, settings["starts"], settings["steps"], seed)
    return loss / _least_loss(np.linalg.svd(y, compute_uv=False), depth) - 1


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    n = settings["inputs"]
    rng = np.random.default_rng(0)
    constructed, factors, networks, excess, spectra = [], [], [], [], {}
    for depth in progress.over(settings["depths"], "depth"):
        for seed in range(settings["seeds"]):
            x, a = rng.normal(size=(n, n)), rng.normal(size=(n, n))
            constructed += _built(x, a, depth, seed)
            factors += [_random_factors(rng, n, depth) for _ in range(settings["factorisations"])]
            y = 3 * rng.normal(size=(n, n))
            networks.append(_of_training(x, y, depth, seed, settings))
            if seed == 0:
                spectra[f"spectrum_{depth}"] = networks[-1].spectrum
            excess.append(_excess(y, depth, seed, settings))
    norms, costs = np.array(factors).T
    covariance = [deviation for network in networks for deviation in network.covariances]
    cost = [network.cost for network in networks]
    checks = [
        at_most("balanced weights against the formula and the Schatten cost, relative", constructed, bound=1e-10),
        at_least("norm of a random factorisation over the Schatten cost", norms / costs, bound=1 - 1e-12),
        at_most("gradient norm at the trained networks", [network.gradient for network in networks], bound=1e-5),
        at_most("trained hidden covariances against the formula, relative", covariance, bound=1e-5),
        at_most("trained squared norm against the Schatten cost, relative", cost, bound=1e-8),
        at_most("trained loss over the least one, X = I, relative", excess, bound=1e-8),
        at_least("the same, from below", excess, bound=-1e-9),
    ]
    measured = {
        "largest deviation of a covariance": float(max(covariance)),
        "largest deviation of the cost": float(max(cost)),
        "largest excess of the loss": float(max(excess)),
    }
    data = spectra | {"depths": np.array(settings["depths"]), "norms": norms, "costs": costs}
    return Measurement(checks, measured, data)


def _figure(measurement: Measurement, figure: Any) -> None:
    import numpy as np

    from understudy.plots.style import COLOURS

    data = measurement.data
    depth = int(np.max(data["depths"]))
    left, right = figure.subplots(1, 2)
    rows = np.maximum(data[f"spectrum_{depth}"], 1e-16)
    kept = rows[-1] > 1e-9
    for i in np.flatnonzero(kept):
        colour = COLOURS[i % len(COLOURS)]
        left.semilogy([0, depth], [rows[0, i], rows[-1, i]], color=colour, lw=1.2, alpha=0.7)
        left.semilogy(range(depth + 1), rows[:, i], "o", color=colour, ms=6)
    left.set(
        xlabel=r"layer $\ell$",
        xticks=range(depth + 1),
        ylabel=r"eigenvalues of $X^{-T}Z_\ell^T Z_\ell X^{-1}$",
        title=f"Trained, depth {depth} (lines: geometric)",
    )
    right.plot(data["costs"], data["norms"], ".", ms=4, alpha=0.5, color=COLOURS[0], label="random weights")
    ends = [float(np.min(data["costs"])), float(np.max(data["norms"]))]
    right.plot(ends, ends, color=COLOURS[1], label="equality (balanced)")
    right.set(
        xlabel=r"$L\,\sum_i s_i^{2/L}$ of the product",
        ylabel=r"$\sum_\ell \|W_\ell\|^2$",
        title="No factorisation is cheaper",
    )
    right.legend(fontsize=9)


CLAIM = Claim(
    paper="attraction-repulsion",
    id="linear",
    where="Sec. 3.1, item 2; Sec. 1",
    statement=(
        "In linear networks without bias the hidden covariances at a global minimum are Z_ℓᵀZ_ℓ = Xᵀ(X⁻ᵀZ_LᵀZ_L "
        "X⁻¹)^(ℓ/L) X, and the representation cost is that of a Schatten-2/L norm, L Σ s_i^(2/L)."
    ),
    paper_value="formulas",
    measured_by=(
        "Balanced weights in closed form; random factorisations; networks trained by Adam and L-BFGS, for X = I also "
        "against the least loss, found one singular value at a time."
    ),
    tolerance="1e-5 on trained covariances, 1e-8 on costs and losses",
    tolerance_reason=(
        "Gradient norms of 1e-5 over a curvature of order one give the covariances; norms and losses are second order "
        "in the error."
    ),
    quick={"inputs": 4, "depths": [2, 3], "seeds": 2, "factorisations": 50, "starts": 16, "steps": 4000},
    full={"inputs": 5, "depths": [2, 3, 4, 5], "seeds": 3, "factorisations": 200, "starts": 32, "steps": 10000},
    measure=_measure,
    figure=_figure,
)
