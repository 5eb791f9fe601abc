"""Minibatch training of any network, all seeds at once: one compiled scan over the steps of an epoch.

Every array of parameters has a leading axis for the seeds; a seed sees its own order of the data, which does not
depend on how many others there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

Cost = Callable[[Any, Array, Array], Array]
"""cost(parameters of one network, inputs, targets): the mean cost of a batch, a number."""


class Optimizer(NamedTuple):
    """`init(parameters)` gives the state; `step(parameters, state, gradient)` the next parameters and state."""

    init: Callable[[Any], Any]
    step: Callable[[Any, Any, Any], tuple[Any, Any]]


def adam(rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> Optimizer:
    """m ← β₁m + (1-β₁)g, v ← β₂v + (1-β₂)g², θ ← θ - rate·m̂/(√v̂ + ε), with m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ).

    **Reference**: Kingma and Ba 2015, "Adam: a method for stochastic optimization", Algorithm 1.
    """

    def init(parameters: Any) -> tuple[Array, Any, Any]:
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return jnp.zeros(()), zeros, zeros

    def step(parameters: Any, state: tuple[Array, Any, Any], gradient: Any) -> tuple[Any, tuple[Array, Any, Any]]:
        count, first, second = state
        count = count + 1
        first = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, first, gradient)
        second = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g**2, second, gradient)
        scale1, scale2 = 1 / (1 - beta1**count), 1 / (1 - beta2**count)
        moved = jax.tree.map(
            lambda p, m, v: p - rate * scale1 * m / (jnp.sqrt(scale2 * v) + epsilon), parameters, first, second
        )
        return moved, (count, first, second)

    return Optimizer(init, step)


def train(
    cost: Cost,
    networks: Sequence[Any],
    inputs: np.ndarray | Array,
    targets: np.ndarray | Array,
    *,
    optimizer: Optimizer,
    batch: int,
    epochs: int,
    seeds: Sequence[int],
) -> Iterator[tuple[int, Any, np.ndarray]]:
    """Train one network a seed; yields (epoch, parameters with a leading seed axis, mean batch cost of each seed) after each.

    `networks[i]` is where seed `seeds[i]` starts; the order of the data is drawn from (seed, epoch). What is left over
    when the data do not divide into batches is left out of that epoch.
    """
    if len(networks) != len(seeds) or not networks:
        raise ValueError(f"Training needs one network for each seed; received {len(networks)} and {len(seeds)} seeds.")
    if not 1 <= batch <= len(inputs):
        raise ValueError(f"A batch has between 1 and {len(inputs)} samples, the number given; received {batch}.")
    parameters = jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)
    state = jax.vmap(optimizer.init)(parameters)
    x, y = jnp.asarray(inputs), jnp.asarray(targets)
    steps = len(inputs) // batch
    for epoch in range(1, epochs + 1):
        orders = [np.random.default_rng([seed, epoch]).permutation(len(inputs))[: steps * batch] for seed in seeds]
        order = jnp.asarray(np.stack([o.reshape(steps, batch) for o in orders], axis=1))
        parameters, state, costs = _epoch(cost, optimizer.step, parameters, state, x, y, order)
        yield epoch, parameters, np.asarray(costs)


@eqx.filter_jit
def _epoch(
    cost: Cost,
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    parameters: Any,
    state: Any,
    x: Array,
    y: Array,
    order: Int[Array, "steps seeds batch"],
) -> tuple[Any, Any, Array]:
    def one(network: Any, own: Any, chosen: Array) -> tuple[Any, Any, Array]:
        value, gradient = jax.value_and_grad(cost)(network, x[chosen], y[chosen])
        moved, own = step(network, own, gradient)
        return moved, own, value

    def advance(carry: tuple[Any, Any], chosen: Array) -> tuple[tuple[Any, Any], Array]:
        moved, own, values = jax.vmap(one)(*carry, chosen)
        return (moved, own), values

    (parameters, state), values = jax.lax.scan(advance, (parameters, state), order)
    return parameters, state, jnp.mean(values, axis=0)
