"""Fully connected networks: parameters and forward pass."""

import itertools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy import activations
from understudy.activations import Activation
from understudy.networks.hidden import HiddenLayer


def affine(x: Float[Array, "*samples d"], weight: Float[Array, "m d"], bias: Float[Array, " m"]) -> Array:
    """W x + b for every sample."""
    product = x @ weight.T
    return product + jnp.broadcast_to(bias, product.shape)


class TwoLayer(eqx.Module):
    """Parameters of a two-layer network f(x) = Σ_i a_i σ(w_i·x + c_i) + c_0.

    **Attributes**

    - `incoming`: the w_i, shape (n, d), or (batch, n, d) for a batch of networks.
    - `outgoing`: the a_i, shape (n,), or (n, m) for m outputs; with the same leading batch axis.
    - `bias`: the c_i, shape (n,), or None for a network without biases.
    - `offset`: c_0, a number or shape (m,), or None.

    >>> TwoLayer([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]).width
    2
    """

    incoming: Float[Array, "*batch n d"]
    outgoing: Float[Array, "*batch n"] | Float[Array, "*batch n m"]
    bias: Float[Array, "*batch n"] | None
    offset: Float[Array, "*batch"] | Float[Array, "*batch m"] | None

    def __init__(self, incoming: Any, outgoing: Any, bias: Any = None, offset: Any = None):
        self.incoming, self.outgoing = jnp.asarray(incoming, float), jnp.asarray(outgoing, float)
        self.bias = None if bias is None else jnp.asarray(bias, float)
        self.offset = None if offset is None else jnp.asarray(offset, float)

    @property
    def width(self) -> int:
        """Number n of hidden neurons."""
        return self.incoming.shape[-2]

    @property
    def dim(self) -> int:
        """Input dimension d."""
        return self.incoming.shape[-1]

    @property
    def hidden_widths(self) -> tuple[int, ...]:
        """Widths of the hidden layers: one."""
        return (self.width,)

    def hidden(self, layer: int = 0) -> HiddenLayer:
        """The hidden layer; outgoing weights as (n, m) also for one output."""
        return HiddenLayer(self.incoming, self.bias, self.outgoing.reshape(*self.incoming.shape[:-1], -1))

    def with_hidden(self, hidden: HiddenLayer, layer: int = 0) -> "TwoLayer":
        """The network with these hidden neurons and the same offset."""
        shape = (hidden.width, *self.outgoing.shape[1:])
        return TwoLayer(hidden.incoming, jnp.reshape(jnp.asarray(hidden.outgoing), shape), hidden.bias, self.offset)

    def __call__(
        self, x: Float[Array, "*samples d"], activation: str | Activation
    ) -> Float[Array, "*samples"] | Float[Array, "*samples m"]:
        """The network's output for inputs x. For a batch of networks use `jax.vmap`."""
        if self.incoming.ndim != 2:
            raise ValueError(
                f"A forward pass takes one network; received a batch of {self.incoming.shape[0]}. Use jax.vmap over "
                "the batch."
            )
        sigma = activations.get(activation)
        before = x @ self.incoming.T if self.bias is None else affine(x, self.incoming, self.bias)
        output = jnp.tensordot(sigma(before), self.outgoing, axes=1)
        return output if self.offset is None else output + jnp.broadcast_to(self.offset, output.shape)


class Deep(eqx.Module):
    """Parameters of a fully connected network with biases: x → W_L σ(… σ(W_1 x + b_1) …) + b_L.

    `weights[l]` has shape (width of layer l + 1, width of layer l); the last layer is linear.

    >>> Deep.glorot([2, 5, 1], seed=0).depth
    2
    """

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]

    @property
    def depth(self) -> int:
        """Number of layers of weights."""
        return len(self.weights)

    @property
    def hidden_widths(self) -> tuple[int, ...]:
        """Number of neurons of each hidden layer, starting with the first."""
        return tuple(len(b) for b in self.biases[:-1])

    def hidden(self, layer: int = 0) -> HiddenLayer:
        """One hidden layer; 0 is the first."""
        return HiddenLayer(self.weights[layer], self.biases[layer], self.weights[layer + 1].T)

    def with_hidden(self, hidden: HiddenLayer, layer: int = 0) -> "Deep":
        """The network with these neurons in one hidden layer."""
        weights, biases = list(self.weights), list(self.biases)
        weights[layer], biases[layer] = jnp.asarray(hidden.incoming), jnp.asarray(hidden.bias)
        weights[layer + 1] = jnp.asarray(hidden.outgoing).T
        return Deep(tuple(weights), tuple(biases))

    def __call__(self, x: Float[Array, "*samples d"], activation: str | Activation) -> Float[Array, "*samples m"]:
        """The network's output for inputs x, with the same activation in every hidden layer."""
        return self.layers(x, activation)[-1]

    def layers(self, x: Float[Array, "*samples d"], activation: str | Activation) -> list[Float[Array, "*samples _"]]:
        """Activations of every hidden layer, starting with the first, then the outputs."""
        sigma, found = activations.get(activation), []
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = sigma(affine(x, w, b))
            found.append(x)
        return [*found, affine(x, self.weights[-1], self.biases[-1])]

    @staticmethod
    def glorot(widths: Sequence[int], *, seed: int = 0, bias: float = 0.0) -> "Deep":
        """Glorot-normal weights for layers of these widths (input first); biases N(0, bias²)."""
        rng = np.random.default_rng(seed)
        pairs = list(itertools.pairwise(widths))
        weights = tuple(jnp.asarray(rng.normal(size=(o, i)) * np.sqrt(2 / (i + o))) for i, o in pairs)
        return Deep(weights, tuple(jnp.asarray(bias * rng.normal(size=o)) for _, o in pairs))

    @staticmethod
    def gaussian(widths: Sequence[int], *, seed: int = 0, std: float = 0.005) -> "Deep":
        """Weights N(0, std²) for layers of these widths (input first); biases 0."""
        rng = np.random.default_rng(seed)
        pairs = list(itertools.pairwise(widths))
        weights = tuple(jnp.asarray(std * rng.normal(size=(o, i))) for i, o in pairs)
        return Deep(weights, tuple(jnp.zeros(o) for _, o in pairs))
