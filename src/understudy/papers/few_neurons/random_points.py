"""Random critical points of many kinds of networks, made critical by the choice of data or teacher."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A task, a network that is one of its critical points, and the hidden layer to be split."""

    task: Any
    network: Any
    layer: int


def cases(shape: Mapping[str, Any], count: int) -> Iterator[Case]:
    """`count` random critical points of that shape.

    `kind`: "data" (two-layer, `width`, `outputs`, `bias`, `cost`), "deep" (`widths`, `layer`), or "population"
    (`width`,
    `outputs`, `teachers`, `activation`).
    """
    import understudy as us
    from understudy.papers.few_neurons.tailored import critical_data, critical_teacher

    rng = np.random.default_rng([len(shape["kind"]), *_numbers(shape)])
    for seed in range(count):
        if shape["kind"] == "deep":
            deep = us.Deep.glorot(shape["widths"], seed=seed, bias=0.5)
            x = rng.normal(size=(shape["samples"], shape["widths"][0]))
            yield Case(critical_data(deep, x, activation="tanh", seed=seed), deep, shape["layer"])
            continue
        outputs = tuple(shape["outputs"])
        dim = 3 if shape.get("bias") else 2
        size = (shape["width"], *outputs)
        w = 0.9 * rng.normal(size=(shape["width"], dim))
        network = us.TwoLayer(w, rng.uniform(0.5, 1.5, size=size) * rng.choice([-1.0, 1.0], size=size))
        if shape["kind"] == "population":
            incoming = 1.2 * rng.normal(size=(shape["teachers"], dim))
            yield Case(critical_teacher(network, incoming, activation=shape["activation"]), network, 0)
            continue
        x = rng.normal(size=(80, 2))
        x = np.concatenate([x, np.ones((80, 1))], axis=1) if shape.get("bias") else x
        cost = shape.get("cost", "squared")
        yield Case(critical_data(network, x, activation="softplus", seed=seed, cost=cost), network, 0)


def _numbers(shape: Mapping[str, Any]) -> list[int]:
    flat: list[int] = []
    for value in shape.values():
        flat += [int(v) for v in (value if isinstance(value, list | tuple) else [value]) if isinstance(v, int)]
    return flat


def widened(task: Any, network: Any) -> Any:
    """The same task for a wider network."""
    return task.for_network(network)
