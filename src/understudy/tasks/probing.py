"""Observe and replace what the hidden neurons of any network compute, through the activation that it is called with.

A network is called as `network(x, activation)`. If it is called with a `Probe`, it passes on every pre-activation, in
the order of its layers. This works for any network that applies the given activation outside of its own `vmap`, `scan`
and `jit`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy.activations import Activation, PiecewiseLinear


@dataclass(frozen=True, eq=False)
class Probe(Activation):
    """An activation that passes every array that it receives to `apply`, and returns the result."""

    apply: Callable[[Array], Array] = field(kw_only=True)

    def __call__(self, x: ArrayLike) -> Float[Array, "..."]:
        return self.apply(jnp.asarray(x, float))


def hidden_values(network: Any, inputs: Array, activation: Activation) -> Float[Array, " H"]:
    """Every pre-activation of the network on these inputs, as one vector, traceable."""
    seen: list[Array] = []

    def record(z: Array) -> Array:
        seen.append(z.ravel())
        return activation(z)

    network(inputs, Probe(activation.name, apply=record))
    return jnp.concatenate([jnp.zeros(0), *seen])


def count_hidden(network: Any, inputs: Array, activation: Activation) -> int | None:
    """The number of pre-activations, or None if they cannot be observed."""
    try:
        shape = jax.eval_shape(lambda n: hidden_values(n, inputs, activation), network).shape
    except Exception:  # a user's module may raise anything when it is called with a probe
        return None
    return int(shape[0]) or None


def gated(
    network: Any, inputs: Array, activation: PiecewiseLinear, gates: Array, offsets: Array | None = None
) -> tuple[Array, Array]:
    """Outputs and pre-activations with slope·z + kink·|z| replaced by slope·z + kink·(s∘z + offset), traceable."""
    seen: list[Array] = []
    position = 0

    def replaced(z: Array) -> Array:
        nonlocal position
        part = slice(position, position + z.size)
        position += z.size
        seen.append(z.ravel())
        size = gates[part].reshape(z.shape) * z + (0.0 if offsets is None else offsets[part].reshape(z.shape))
        return activation.slope * z + activation.kink * size

    outputs = network(inputs, Probe(activation.name, apply=replaced))
    return outputs, jnp.concatenate([jnp.zeros(0), *seen])


def smoothed(network: Any, inputs: Array, activation: PiecewiseLinear, width: Array | float) -> Array:
    """Outputs with |z| replaced by √(z² + width²), traceable."""

    def rounded(z: Array) -> Array:
        return activation.slope * z + activation.kink * jnp.sqrt(z**2 + width**2)

    return network(inputs, Probe(activation.name, apply=rounded))
