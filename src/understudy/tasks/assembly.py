"""Assemble Hessians from blocks per neuron and per pair of neurons."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def assemble(
    constants: list[tuple[Array, Array]],
    outer: list[tuple[Array, Array]],
    own: Float[Array, "n q q"],
    precision: type,
    add: bool = False,
) -> Float[Array, "P P"]:
    """The Hessian with blocks Σ scale_ij matrix + Σ left_ij right_ijᵀ off the diagonal and `own` on it, in one pass.

    With `add` the blocks on the diagonal are the sum of both.

    Large and transposed intermediates cost more than the arithmetic, so every summand is written in the final layout,
    indexed (i, a, j, b).
    """
    n, size, _ = own.shape
    constants, outer, own = jax.tree.map(lambda x: x.astype(precision), (constants, outer, own))
    off = jnp.zeros((n, size, n, size), precision)
    for scale, matrix in constants:
        off += scale[:, None, :, None] * matrix[None, :, None, :]
    for left, right in outer:
        off += jnp.swapaxes(left, 1, 2)[:, :, :, None] * right[:, None, :, :]
    index = jnp.arange(n)
    diagonal = off.at[index, :, index, :]
    return (diagonal.add(own) if add else diagonal.set(own)).reshape(n * size, n * size)


def zero_diagonal(x: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """The matrix with zeros on its diagonal, whatever is there (NaN, for kinked neurons with themselves)."""
    return jnp.where(jnp.eye(x.shape[0], x.shape[1], dtype=bool), 0.0, x)
