"""Rules that turn gradients into steps: SGD and Adam, with weight decay. One object for one set of numbers, so that programs compiled with it are found again."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array


class Optimizer(NamedTuple):
    """`init(parameters)` gives the state; `step(parameters, state, gradient)` the next parameters and state."""

    init: Callable[[Any], Any]
    step: Callable[[Any, Any, Any], tuple[Any, Any]]


@cache
def sgd(rate: float = 1e-2, weight_decay: float = 0.0) -> Optimizer:
    """θ ← θ - rate·(g + weight_decay·θ): plain stochastic gradient descent, its decay that of a penalty ½ weight_decay ‖θ‖²."""

    def step(parameters: Any, state: tuple[()], gradient: Any) -> tuple[Any, tuple[()]]:
        keep = 1 - rate * weight_decay
        return jax.tree.map(lambda p, g: keep * p - rate * g, parameters, gradient), state

    return Optimizer(lambda _: (), step)


@cache
def adam(
    rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0
) -> Optimizer:
    """m ← β₁m + (1-β₁)g, v ← β₂v + (1-β₂)g², θ ← θ - rate·[m̂/(√v̂ + ε) + weight_decay·θ], with m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ).

    **References**: Kingma and Ba 2015, "Adam: a method for stochastic optimization", Algorithm 1; the decay, kept out of m and v,
    is that of Loshchilov and Hutter 2019, "Decoupled weight decay regularization", Algorithm 2.
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
        keep = 1 - rate * weight_decay
        moved = jax.tree.map(
            lambda p, m, v: keep * p - rate * scale1 * m / (jnp.sqrt(scale2 * v) + epsilon), parameters, first, second
        )
        return moved, (count, first, second)

    return Optimizer(init, step)
