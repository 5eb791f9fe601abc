"""Rules that turn gradients into steps: Optax's SGD and Adam, with weight decay.

Equal settings give the same object, so that programs compiled with it are reused. Optax is imported when a rule is
made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from understudy.extras import need

if TYPE_CHECKING:
    from optax import GradientTransformation


class Optimizer(NamedTuple):
    """`init(parameters)` gives the state; `step(parameters, state, gradient)` the next parameters and state."""

    init: Callable[[Any], Any]
    step: Callable[[Any, Any, Any], tuple[Any, Any]]


@cache
def sgd(rate: float = 1e-2, weight_decay: float = 0.0) -> Optimizer:
    """θ ← θ - rate·(g + weight_decay·θ): plain stochastic gradient descent with a penalty ½ weight_decay ‖θ‖²."""
    need("train")
    import optax

    plain = optax.sgd(rate)
    return _from_optax(optax.chain(optax.add_decayed_weights(weight_decay), plain) if weight_decay else plain)


@cache
def adam(
    rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0
) -> Optimizer:
    """m ← β₁m + (1-β₁)g, v ← β₂v + (1-β₂)g², θ ← θ - rate·[m̂/(√v̂ + ε) + weight_decay·θ], with m̂ = m/(1-β₁ᵗ), v̂ =
    v/(1-β₂ᵗ).

    **References**: Kingma and Ba 2015, "Adam: a method for stochastic optimization", Algorithm 1. The decay, which is
    kept out of m and v, is that of Loshchilov and Hutter 2019, "Decoupled weight decay regularization", Algorithm 2.
    """
    need("train")
    import optax

    if weight_decay:
        return _from_optax(optax.adamw(rate, beta1, beta2, epsilon, weight_decay=weight_decay))
    return _from_optax(optax.adam(rate, beta1, beta2, epsilon))


def _from_optax(rule: GradientTransformation) -> Optimizer:
    def step(parameters: Any, state: Any, gradient: Any) -> tuple[Any, Any]:
        import optax

        updates, state = rule.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state

    return Optimizer(rule.init, step)
