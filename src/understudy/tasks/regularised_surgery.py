"""Split neurons of an L2-regularised network without changing its loss, and imitate a wider one.

A neuron (w, a) of a homogeneous activation is split into parts (√μ w, √μ a), which keep the function, and the penalty
because μ(‖w‖² + ‖a‖²) + (1-μ)(‖w‖² + ‖a‖²) = ‖w‖² + ‖a‖². A row of W_ℓ has the weight of the constant β as last entry.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.networks import HiddenLayer
from understudy.networks.hidden import split_layout
from understudy.tasks.imitation import Imitation, imitate_samples
from understudy.tasks.split_terms import SplitTerms, check

if TYPE_CHECKING:
    from understudy.tasks.regularised import Regularised, Weights


def hidden_layer(task: "Regularised", parameters: Any, layer: int) -> HiddenLayer:
    """See `Regularised.hidden_layer`."""
    _check_layer(task, layer)
    weights = task.unflatten(task.flatten(parameters))
    return HiddenLayer(weights[layer], None, weights[layer + 1][:, : task.widths[layer + 1]].T)


def with_hidden_layer(
    task: "Regularised", parameters: Any, hidden: HiddenLayer, layer: int
) -> "tuple[Regularised, Array]":
    """See `Task.with_hidden_layer`."""
    _check_layer(task, layer)
    widths, weights = list(task.widths[1:-1]), list(task.unflatten(task.flatten(parameters)))
    rest = weights[layer + 1][:, widths[layer] :]
    weights[layer] = jnp.asarray(hidden.incoming)
    weights[layer + 1] = jnp.concatenate([jnp.asarray(hidden.outgoing).T, rest], axis=1)
    widths[layer] = hidden.width
    wider = task.with_hidden(widths)
    return wider, wider.flatten(tuple(weights))


def split(
    task: "Regularised", parameters: Any, parts: Mapping[int, Sequence[float]], layer: int
) -> "tuple[Regularised, Array]":
    """Split neurons into parts (√μ w, √μ a)."""
    hidden = task.hidden_layer(parameters, layer)
    origin, shares = split_layout(hidden.width, parts)
    if task.activation.homogeneity != 1:
        raise ValueError(
            f"With a penalty a split keeps the loss only if σ(cz) = c σ(z) for c > 0, so that a neuron (w, a) can be "
            f"split into parts (√μ w, √μ a); {task.activation.name} is not homogeneous of degree one. Use relu, abs or "
            "linear, or add dead neurons with task.widened."
        )
    if np.any(shares < 0):
        raise ValueError(
            f"With a penalty the shares of a split neuron lie between 0 and 1; received {shares.min():g}. Parts of "
            "opposite signs would increase the penalty."
        )
    root = jnp.asarray(np.sqrt(shares))[:, None]
    divided = HiddenLayer(root * hidden.incoming[origin], None, root * hidden.outgoing[origin])
    return task.with_hidden_layer(parameters, divided, layer)


def split_terms(task: "Regularised", parameters: Any, neuron: int, layer: int) -> SplitTerms:
    """Y and V of the cost alone, and the penalty as `decay`.

    Φ(w) is the slope of the cost in the outgoing weights of a silent neuron at w. V = ∂Φ and Y = a·∂²Φ at w_j.
    """
    hidden = task.hidden_layer(parameters, layer)
    check(neuron, task.widths[1:-1], layer)
    w, a = hidden.incoming[neuron], hidden.outgoing[neuron]

    def cost(row: Array, outgoing: Array) -> Array:
        incoming = jnp.concatenate([hidden.incoming, row[None]])
        onward = jnp.concatenate([hidden.outgoing, outgoing[None]])
        wider, vector = task.with_hidden_layer(parameters, HiddenLayer(incoming, None, onward), layer)
        return wider.output_cost(wider.representations(vector)[-1])

    def slope(row: Array) -> Array:
        return jax.grad(cost, argnums=1)(row, jnp.zeros_like(a))

    y = jnp.tensordot(a, jax.jacfwd(jax.jacrev(slope))(w), axes=1)
    return SplitTerms(np.asarray(y), np.asarray(jax.jacrev(slope)(w)).T, task.penalty)


def imitation(task: "Regularised", teacher: Any, layer: int) -> Imitation:
    """One layer of wider weight matrices (W_1, …, W_L), on the data of the task."""
    _check_layer(task, layer)
    weights = [np.asarray(w, float) for w in teacher] if isinstance(teacher, (tuple, list)) else []
    hidden = [len(w) for w in weights[:-1]]
    narrow = [n if i == layer else m for i, (n, m) in enumerate(zip(task.widths[1:-1], hidden, strict=False))]
    wide = task.with_hidden(hidden)
    if narrow != list(task.widths[1:-1]) or wide.shapes != tuple(w.shape for w in weights):
        raise ValueError(
            "A warm start imitates a wider network: give teacher= its weight matrices (W_1, …, W_L), which differ from "
            f"those of this task, of shapes {task.shapes}, only in the width of hidden layer {layer}; received "
            f"{[w.shape for w in weights] if weights else type(teacher).__name__}."
        )
    received = np.asarray(task.entry)
    if layer:
        received = np.asarray(task.activate(wide.representations(wide.flatten(tuple(weights)))[layer - 1]))

    def build(rows: np.ndarray, outgoing: np.ndarray, shift: np.ndarray) -> "Weights":
        rest = weights[layer + 1][:, hidden[layer] :].copy()
        if task.bias:
            rest[:, 0] += shift / task.bias
        after = np.concatenate([outgoing.T, rest], axis=1)
        return tuple(jnp.asarray(w) for w in (*weights[:layer], rows, after, *weights[layer + 2 :]))

    neurons, sigma = wide.hidden_layer(tuple(weights), layer), task.activation
    return imitate_samples(
        received.T,
        np.asarray(task.sample_weights),
        neurons,
        task.widths[layer + 1],
        (sigma, sigma),
        build,
        constant=bool(task.bias),
    )


def _check_layer(task: "Regularised", layer: int) -> None:
    if not 0 <= layer < task.depth - 1:
        raise ValueError(f"The network has hidden layers 0 to {task.depth - 2}; received layer={layer}.")
