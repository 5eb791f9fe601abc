"""Y and V of one hidden neuron, the two expectations that decide the nature of its splits (see `points.splitting`).

Y = ⟨σ''(w·x) xxᵀ a·c'⟩ and V = ⟨σ'(w·x) x c'ᵀ⟩ ("few neurons", Eq. 19). Here w and a are the neuron's incoming and
outgoing weights, x is its input, and c' is the derivative of the cost by the input of the next layer.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.networks import TwoLayer
from understudy.networks.dense import affine
from understudy.tasks.pairs import own_blocks, pair_up


class SplitTerms(NamedTuple):
    """Y (q, q) and V (q, m) of one neuron; `decay`: the factor λ of a penalty λ‖θ‖² on all weights.

    V has no columns (m = 0) if outgoing weights are fixed.
    """

    curvature: np.ndarray
    coupling: np.ndarray
    decay: float = 0.0


def check(neuron: int, widths: Sequence[int], layer: int) -> None:
    """Raise if the network, with hidden layers of these widths, has no such neuron."""
    if not 0 <= layer < len(widths):
        raise ValueError(f"The network has hidden layers 0 to {len(widths) - 1}; received layer={layer}.")
    if not 0 <= neuron < widths[layer]:
        raise ValueError(f"The layer has neurons 0 to {widths[layer] - 1}; received neuron {neuron}.")


@eqx.filter_jit
def of_population(task: Any, network: TwoLayer, neuron: Array) -> tuple[Array, Array]:
    """From the pair interactions: with Φ(w) = 2 Σ_i a_i G(w, w_i) - 2 Σ_j b_j G(w, v_j), V = ∂Φ and Y = a·∂²Φ at w_j.

    Φ is the slope of the loss in the outgoing weights of a new neuron at w.
    """
    w, v = network.incoming, task.teacher.incoming
    if task.root is not None:
        w, v = w @ task.root, v @ task.root
    a, b = network.outgoing.reshape(task.width, -1), task.teacher.outgoing.reshape(task.teacher.width, -1)
    here, own = w[neuron][None], a[neuron][None]
    y, coupling = jnp.zeros((task.dim, task.dim)), jnp.zeros((task.dim, a.shape[1]))
    for activation, vectors, weights in ((task.activation, w, 2 * a), (task.teacher.activation, v, -2 * b)):
        pairs = pair_up(task.activation, activation, here, vectors, task.resolution)
        y = y + own_blocks(pairs, own @ weights.T, here, vectors)[0]
        g = pairs.partials
        coupling = coupling + here.T @ (2 * g.q11 @ weights) + vectors.T @ (g.q12[0][:, None] * weights)
    if task.root is not None:
        y, coupling = task.root @ y @ task.root, task.root @ coupling
    return y, coupling


@eqx.filter_jit
def of_samples(task: Any, network: Any, neuron: Array, layer: int) -> tuple[Array, Array]:
    """Eq. 19 directly: sums over samples, with c' by the chain rule from the output back to the next layer."""
    sigma = task.activation
    if isinstance(network, TwoLayer):
        received, w, a = task.inputs, network.incoming[neuron], network.outgoing.reshape(network.width, -1)[neuron]
        if network.bias is not None:
            received = jnp.concatenate([received, jnp.ones((len(received), 1))], axis=1)
            w = jnp.append(w, network.bias[neuron])
        outputs = network(task.inputs, sigma)
        e = jax.vmap(jax.grad(task.cost))(outputs, task.targets).reshape(len(task.inputs), -1)
    else:
        x = task.inputs
        for weight, bias in zip(network.weights[:layer], network.biases[:layer], strict=True):
            x = sigma(affine(x, weight, bias))
        received = jnp.concatenate([x, jnp.ones((len(x), 1))], axis=1)
        w = jnp.concatenate([network.weights[layer][neuron], network.biases[layer][neuron][None]])
        a = network.weights[layer + 1][:, neuron]
        after = affine(sigma(affine(x, network.weights[layer], network.biases[layer])), network.weights[layer + 1],
                        network.biases[layer + 1])  # fmt: skip

        def cost_of(pre: Array, target: Array) -> Array:
            for weight, bias in zip(network.weights[layer + 2 :], network.biases[layer + 2 :], strict=True):
                pre = weight @ sigma(pre) + bias
            return task.cost(pre, target)

        e = jax.vmap(jax.grad(cost_of))(after, task.targets)
    e = task.weights[:, None] * e
    _, slope, bend = sigma.derivatives(received @ w, 2)
    return (received * (bend * (e @ a))[:, None]).T @ received, (received * slope[:, None]).T @ e
