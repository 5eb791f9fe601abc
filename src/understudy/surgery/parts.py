"""Networks taken apart into NumPy arrays and put together again, with the checks that surgery needs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation, activate
from understudy.networks import Deep, TwoLayer


def activations_of(
    weights: list[np.ndarray], biases: list[np.ndarray], sigma: str | Activation, data: np.ndarray, layer: int
) -> np.ndarray:
    """Activations (N, n) of hidden layer `layer`, the first being 0."""
    x = data
    for w, b in zip(weights[: layer + 1], biases[: layer + 1], strict=True):
        x = activate(sigma, x @ w.T + b)
    return x


def forward(
    weights: list[np.ndarray], biases: list[np.ndarray], sigma: str | Activation, data: np.ndarray
) -> np.ndarray:
    """Outputs (N, m)."""
    return activations_of(weights, biases, sigma, data, len(weights) - 2) @ weights[-1].T + biases[-1]


def unpack(network: TwoLayer | Deep) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Weights and biases; biases that a two-layer network does not have are zero."""
    if isinstance(network, TwoLayer):
        if network.incoming.ndim != 2:
            raise ValueError(
                f"Surgery takes one network; received a batch of {network.incoming.shape[0]}. Take one of them."
            )
        outgoing = np.asarray(network.outgoing)
        last = outgoing[None] if outgoing.ndim == 1 else outgoing.T
        bias = np.zeros(network.width) if network.bias is None else np.array(network.bias)
        offset = np.zeros(len(last)) if network.offset is None else np.array(network.offset).reshape(-1)
        return [np.array(network.incoming), np.array(last)], [bias, offset]
    if not isinstance(network, Deep):
        raise TypeError(
            f"A network is a TwoLayer or Deep; received {type(network).__name__}. For PyTorch modules use "
            "understudy.torch."
        )
    if network.depth < 2:
        raise ValueError(
            f"Surgery needs a hidden layer, so the depth must be at least 2; received depth {network.depth}."
        )
    return [np.array(w) for w in network.weights], [np.array(b) for b in network.biases]


def pack(like: TwoLayer | Deep, weights: list[np.ndarray], biases: list[np.ndarray]) -> TwoLayer | Deep:
    """The network with these weights and biases, of the type of `like`."""
    if isinstance(like, TwoLayer):
        scalar = like.outgoing.ndim == 1
        bias = biases[0] if like.bias is not None or np.any(biases[0]) else None
        offset = biases[1] if like.offset is not None or np.any(biases[1]) else None
        if offset is not None and scalar:
            offset = offset[0]
        return TwoLayer(weights[0], weights[1][0] if scalar else weights[1].T, bias, offset)
    return Deep(tuple(jnp.asarray(w) for w in weights), tuple(jnp.asarray(b) for b in biases))


def require_homogeneous(activation: str | Activation) -> Activation:
    """The activation, which must be homogeneous."""
    sigma = activations.get(activation)
    if not sigma.homogeneity:
        raise ValueError(
            f"Aligned neurons can be merged if σ(cx) = c^p σ(x) for c > 0; received {sigma.name!r}. "
            "Try relu, abs, linear or quadratic."
        )
    return sigma


def check_inputs(inputs: ArrayLike, dim: int) -> np.ndarray:
    """Data (N, dim) as floats."""
    x = np.asarray(inputs, float)
    if x.ndim != 2 or x.shape[1] != dim or not len(x) or not np.all(np.isfinite(x)):
        raise ValueError(f"inputs must be finite data of shape (N, {dim}), N ≥ 1; received shape {x.shape}.")
    return x
