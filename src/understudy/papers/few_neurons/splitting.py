"""Claim `splitting`: splitting neurons keeps the function and keeps critical points critical."""

from typing import Any

import numpy as np

from understudy.papers.check import at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import jax.numpy as jnp

    import understudy as us
    from understudy.papers.few_neurons.tailored import critical_data
    from understudy.surgery import irreducible, split
    from understudy.tasks import Empirical

    rng = np.random.default_rng(0)
    functions, gradients, back, cases = [], [], [], 0
    network: Any
    for shape in progress.over(settings["shapes"], "network"):
        for seed in range(settings["points"]):
            if shape["kind"] == "two-layer":
                outputs = tuple(shape["outputs"])
                network = us.TwoLayer(rng.normal(size=(3, 2)), rng.normal(size=(3, *outputs)))
            else:
                network = us.Deep.glorot(shape["widths"], seed=seed, bias=0.5)
            layer = shape.get("layer", 0)
            x = rng.normal(size=(shape["samples"], 2))
            task = critical_data(network, x, activation="softplus", seed=seed)
            for parts in ([2], [3], [2, 4]):
                chosen = {int(j): _coefficients(rng, h) for j, h in zip(rng.permutation(3), parts, strict=False)}
                wide = split(network, chosen, layer=layer)
                inputs = jnp.asarray(x)
                functions.append(float(jnp.abs(wide(inputs, "softplus") - network(inputs, "softplus")).max()))
                wider = Empirical(wide, x, task.targets, activation="softplus")
                gradients.append(float(jnp.linalg.norm(wider.gradient(wide))))
                joined = irreducible(wide, layer=layer)
                back.append(float(jnp.linalg.norm(task.flatten(joined) - task.flatten(network))))
                cases += 1
    checks = [
        at_most("largest change of the function", functions, bound=1e-12),
        at_most("largest gradient norm after splitting", gradients, bound=1e-11),
        at_most("distance to the network after joining the parts again", back, bound=1e-12),
    ]
    measured = {"splits": cases, "change of the function": max(functions), "gradient norm": max(gradients)}
    return Measurement(checks, measured)


def _coefficients(rng: np.random.Generator, parts: int) -> list[float]:
    """Random coefficients of both signs that sum to one."""
    free = rng.normal(size=parts - 1)
    return [*map(float, free), float(1 - free.sum())]


CLAIM = Claim(
    paper="few-neurons",
    id="splitting",
    where="Sec. 2.2, Eq. 10-12",
    statement=(
        "Splitting one or several neurons into any number of parts, with coefficients that sum to one, keeps the "
        "network's function and keeps a critical point critical."
    ),
    paper_value="unchanged function, zero gradient",
    measured_by=(
        "Networks made critical by the choice of the data; one and several outputs, and hidden layers with biases."
    ),
    tolerance=1e-11,
    tolerance_reason="Rounding of sums with coefficients of order ten.",
    quick={
        "points": 2,
        "shapes": [
            {"kind": "two-layer", "outputs": [], "samples": 40},
            {"kind": "two-layer", "outputs": [2], "samples": 40},
            {"kind": "deep", "widths": [2, 3, 2, 2], "layer": 0, "samples": 40},
        ],
    },
    full={
        "points": 10,
        "shapes": [
            {"kind": "two-layer", "outputs": [], "samples": 40},
            {"kind": "two-layer", "outputs": [2], "samples": 40},
            {"kind": "two-layer", "outputs": [3], "samples": 40},
            {"kind": "deep", "widths": [2, 3, 2, 2], "layer": 0, "samples": 40},
            {"kind": "deep", "widths": [2, 4, 3, 1], "layer": 1, "samples": 60},
        ],
    },
    measure=_measure,
)
