"""Split neurons: a wider network with the same function.

A neuron with incoming vector w and outgoing weights a is replaced by parts (w, μ_1 a) ⊕ … ⊕ (w, μ_h a) with
μ_1 + … + μ_h = 1 ("few neurons", Eq. 10-12; Fukumizu and Amari 2000). The function stays the same. The gradient at each
part is a multiple of the original gradient (incoming) or equal to it (outgoing), so a critical point stays critical.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import jax.numpy as jnp
import numpy as np

from understudy.networks import Deep, TwoLayer

Network = TypeVar("Network", TwoLayer, Deep)

_SUM = 1e-12
"""How far from one the coefficients of a neuron may sum: rounding of a few decimal fractions."""


def split(network: Network, parts: Mapping[int, Sequence[float]], *, layer: int = 0) -> Network:
    """Split neurons of one hidden layer into parts that share their outgoing weights.

    **Arguments**

    - `network`: a `TwoLayer` (scalar or vector outgoing weights) or a `Deep` network; its biases are copied.
    - `parts`: for each neuron to split, its coefficients μ: any real numbers that sum to one.
    - `layer`: the hidden layer of a `Deep` network; 0 is the first.

    The parts of a neuron take its place, one after another; `part_positions` returns their positions.

    >>> split(TwoLayer([[1.0, 2.0]], [4.0]), {0: [0.25, 0.75]}).outgoing.tolist()
    [1.0, 3.0]

    **Reference**: "few neurons", Section 2.2, Eq. 10-12; for hidden layers, the remark below Eq. 19.
    """
    width = hidden_width(network, layer)
    origin, coefficients = _layout(width, parts)
    if isinstance(network, TwoLayer):
        outgoing = network.outgoing[origin]
        scale = coefficients.reshape(-1, *[1] * (outgoing.ndim - 1))
        bias = None if network.bias is None else network.bias[origin]
        return TwoLayer(network.incoming[origin], jnp.asarray(scale) * outgoing, bias, network.offset)  # type: ignore[return-value]
    weights, biases = list(network.weights), list(network.biases)
    weights[layer], biases[layer] = weights[layer][origin], biases[layer][origin]
    weights[layer + 1] = weights[layer + 1][:, origin] * jnp.asarray(coefficients)[None, :]
    return Deep(tuple(weights), tuple(biases))


def part_positions(width: int, parts: Mapping[int, Sequence[float]]) -> dict[int, list[int]]:
    """The positions of the parts of each split neuron in the wider layer.

    >>> part_positions(3, {1: [0.5, 0.5]})
    {1: [1, 2]}
    """
    origin, _ = _layout(width, parts)
    return {neuron: [int(i) for i in np.flatnonzero(origin == neuron)] for neuron in parts}


def hidden_width(network: TwoLayer | Deep, layer: int = 0) -> int:
    """Number of neurons in a hidden layer; raises for a batch, or for a layer that does not exist."""
    if isinstance(network, TwoLayer):
        if network.incoming.ndim != 2:
            raise ValueError(
                f"Surgery takes one network; received a batch of {network.incoming.shape[0]}. Take one of them."
            )
        if layer:
            raise ValueError(f"A two-layer network has one hidden layer, layer 0; received layer={layer}.")
        return network.width
    if not isinstance(network, Deep):
        raise TypeError(f"Surgery takes a TwoLayer or a Deep network; received {type(network).__name__}.")
    if not 0 <= layer < network.depth - 1:
        raise ValueError(
            f"A network of {network.depth} layers of weights has hidden layers 0 to {network.depth - 2}; received "
            f"layer={layer}."
        )
    return network.weights[layer].shape[0]


def _layout(width: int, parts: Mapping[int, Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """For every neuron of the wider layer, the neuron from which it comes and its coefficient."""
    for neuron, coefficients in parts.items():
        if not 0 <= neuron < width:
            raise ValueError(f"The layer has neurons 0 to {width - 1}; cannot split neuron {neuron}.")
        values = np.asarray(coefficients, float)
        if values.ndim != 1 or len(values) < 1 or not np.all(np.isfinite(values)):
            raise ValueError(f"Neuron {neuron} needs a list of finite coefficients; received {coefficients!r}.")
        if abs(values.sum() - 1) > _SUM * max(1.0, np.abs(values).sum()):
            raise ValueError(
                f"The coefficients of neuron {neuron} must sum to one, to keep the function; {list(values)} sum to "
                f"{values.sum():.12g}."
            )
    shares = [np.asarray(parts.get(i, [1.0]), float) for i in range(width)]
    return np.repeat(np.arange(width), [len(s) for s in shares]), np.concatenate(shares)
