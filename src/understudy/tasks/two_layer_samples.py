"""Derivatives of a weighted sum of costs over samples, for two-layer networks, without automatic differentiation.

With s_i = σ(w_i·x), f = Σ_i a_i s_i, e = p ∂c/∂f and C = p ∂²c/∂f² for each sample of weight p,

∂L/∂a_i = Σ s_i e,  ∂L/∂w_i = Σ s'_i (a_i·e) x,
∂²L = Σ JᵀCJ + Σ_i (s''_i (a_i·e) xxᵀ in (w_i, w_i),  s'_i x eᵀ in (w_i, a_i)),

J the derivative of f: s'_i a_i xᵀ by w_i and s_i I by a_i. These are X, Y, U, V and Z of "few neurons" (App. D, below
Eq. 100), for every pair of neurons. One pass costs about as much as one gradient by automatic differentiation.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.activations import Activation


class Costs(NamedTuple):
    """Cost of each sample and its derivatives by the prediction."""

    value: Float[Array, " N"]
    slope: Float[Array, "N m"]
    curvature: Float[Array, "N m m"]


def costs(
    cost: Callable[[Array, Array], Array], predictions: Float[Array, "N m"], targets: Float[Array, " N *m"]
) -> Costs:
    """Cost, gradient and Hessian for each sample, by automatic differentiation of the one-sample cost."""

    def one(prediction: Array, target: Array) -> Array:
        return cost(prediction if target.ndim else prediction[0], target)

    value, slope = jax.vmap(jax.value_and_grad(one))(predictions, targets)
    return Costs(value, slope, jax.vmap(jax.hessian(one))(predictions, targets))


def gradient(
    costs_at: Callable[[Array], Costs],
    activation: Activation,
    x: Float[Array, "N d"],
    p: Float[Array, " N"],
    w: Float[Array, "n d"],
    a: Float[Array, "n m"],
) -> tuple[Array, Array, Array]:
    """Loss and its derivatives by w (n, d) and a (n, m)."""
    s, slope = activation.derivatives(x @ w.T, 1)
    at = costs_at(s @ a)
    e = p[:, None] * at.slope
    return p @ at.value, (slope * (e @ a.T)).T @ x, s.T @ e


def evaluate(
    costs_at: Callable[[Array], Costs],
    activation: Activation,
    x: Float[Array, "N d"],
    p: Float[Array, " N"],
    w: Float[Array, "n d"],
    a: Float[Array, "n m"],
) -> tuple[Array, Array, Array, Array]:
    """Loss, its derivatives by w and a, and the Hessian in the order (w_1 … w_n, a_1 … a_n)."""
    (samples, d), (n, m) = x.shape, a.shape
    s, slope, bend = activation.derivatives(x @ w.T, 2)
    at = costs_at(s @ a)
    e = p[:, None] * at.slope
    pull = e @ a.T
    loss, by_w, by_a = p @ at.value, (slope * pull).T @ x, s.T @ e

    each = (slope[:, :, None] * x[:, None, :]).reshape(samples, n * d)
    scale = jnp.repeat(a, d, axis=0)
    incoming = each[:, None, :] * scale.T[None]
    outgoing = (s[:, None, :, None] * jnp.eye(m)[None, :, None, :]).reshape(samples, m, n * m)
    jacobian = jnp.concatenate([incoming, outgoing], axis=2)
    curved = jnp.einsum("soq,sqj->soj", p[:, None, None] * at.curvature, jacobian)
    hessian = jacobian.reshape(samples * m, -1).T @ curved.reshape(samples * m, -1)

    index = jnp.arange(n)
    own = jnp.einsum("si,sk,sl->ikl", bend * pull, x, x)
    mixed = jnp.einsum("si,sk,so->iko", slope, x, e)
    blocks = jnp.zeros((n, d, n, d)).at[index, :, index, :].set(own)
    sides = jnp.zeros((n, d, n, m)).at[index, :, index, :].set(mixed)
    size = n * d
    side = sides.reshape(size, n * m)
    hessian = hessian.at[:size, :size].add(blocks.reshape(size, size))
    hessian = hessian.at[:size, size:].add(side).at[size:, :size].add(side.T)
    return loss, by_w, by_a, hessian
