"""Small problems that several claims of the paper are measured on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.tasks.regularised import Regularised

if TYPE_CHECKING:
    from understudy.dynamics.settle import Settled


def small_problem(seed: int, **changes: Any) -> Regularised:
    """Gaussian inputs and targets; four inputs in two dimensions, one output, eight hidden neurons unless said
    otherwise.
    """
    c: dict[str, Any] = {
        "samples": 4,
        "inputs": 2,
        "outputs": 1,
        "hidden": [8],
        "penalty": 0.02,
        "bias": 1.0,
        "activation": "relu",
    }
    c |= changes
    rng = np.random.default_rng([seed, 8])
    x = rng.normal(size=(c["samples"], c["inputs"]))
    y = rng.normal(size=(c["samples"], c["outputs"]))
    return Regularised(x, y, c["hidden"], penalty=c["penalty"], bias=c["bias"], activation=c["activation"])


SHAPES = 10
"""Random networks come in this many shapes: each is compiled once."""


def random_network(seed: int) -> tuple[Regularised, np.ndarray]:
    """A random network: depth 2 to 4, with and without bias, several activations, N from 2 to 7; data and weights
    N(0, 1).
    """
    shape = np.random.default_rng([seed % SHAPES, 4])
    depth = int(shape.integers(2, 5))
    widths = [int(n) for n in shape.integers(1, 8, depth - 1)]
    samples, inputs, outputs = (int(n) for n in shape.integers([2, 1, 1], [8, 9, 4]))
    rng = np.random.default_rng([seed, 5])
    task = Regularised(
        rng.normal(size=(samples, inputs)),
        rng.normal(size=(samples, outputs)),
        widths,
        penalty=float(10 ** shape.uniform(-3, 0)),
        bias=float(shape.choice([0.0, 0.5, 1.0])),
        activation=str(shape.choice(["relu", "relu", "tanh", "softplus", "abs", "linear"])),
    )
    return task, rng.normal(size=task.size)


def best_minimum(task: Regularised, settings: Mapping[str, Any]) -> Settled:
    """The best of `starts` trained networks: Adam from all, the best `settled` of them taken to rounding."""
    from understudy.papers.attraction_repulsion.training import train_regularised

    runs = train_regularised(task, range(settings["starts"]), steps=settings["steps"], best=settings["settled"])
    return min(runs, key=lambda run: run.loss)
