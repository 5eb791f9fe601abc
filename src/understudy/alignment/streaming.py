"""Alignment statistics of one student at the cost of a forward pass: one sweep over blocks of evaluation samples.

Unit teachers t̂_j are activations centred over the evaluation samples and scaled to norm 1. They are fixed, so they are
computed once. With them the normalised correlation is

    ρ_jk = t̂_j·f_k / ‖f_k - mean‖,    ‖f_k - mean‖² = Σ f_k² - (Σ f_k)²/S,

Each block of samples adds to these sums while its activations are in the processor's cache. `correlate` computes the
same from all activations at once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.alignment.correlations import normalised
from understudy.networks import Deep

BLOCK = 500
"""Samples per block; the last block may be shorter."""


class Reference(NamedTuple):
    """A teacher on the evaluation samples: inputs (S, d), outputs (S, C), unit activations t̂ (S, m_l) of hidden
    layers.
    """

    inputs: Float[Array, "S d"]
    outputs: Float[Array, "S C"]
    units: tuple[Float[Array, "S _"], ...]


class Measured(NamedTuple):
    """One student on the evaluation samples: ½ mean ‖f* - f‖², and correlations ρ (m_l, n_l) of every hidden layer."""

    loss: Float[Array, ""]
    correlations: tuple[Float[Array, "_ _"], ...]


def refer(teacher: Deep, inputs: Float[Array, "S d"]) -> Reference:
    """The reference of a teacher, to be computed once."""
    *hidden, outputs = teacher.layers(inputs, "relu")
    return Reference(inputs, outputs, tuple(normalised(f) for f in hidden))


def measure(student: Deep, reference: Reference, start: int | Array = 0, samples: int | None = None) -> Measured:
    """The student's loss and correlations; traceable, so that it can be mapped over seeds.

    A reference may hold the samples of several teachers one after another. This student then uses `samples` of them,
    beginning at `start`.
    """
    count = len(reference.inputs) if samples is None else samples

    def part(first: int | Array, size: int) -> Reference:
        return jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, start + first, size), reference)

    def add(sums: tuple, block: Reference) -> tuple:
        *hidden, outputs = student.layers(block.inputs, "relu")
        loss, layers = sums
        layers = [
            (t + unit.T @ f, s + jnp.sum(f, axis=0), q + jnp.sum(f * f, axis=0))
            for (t, s, q), f, unit in zip(layers, hidden, block.units, strict=True)
        ]
        return loss + jnp.sum((outputs - block.outputs) ** 2), layers

    zeros = [
        (jnp.zeros((unit.shape[1], len(w))), jnp.zeros(len(w)), jnp.zeros(len(w)))
        for w, unit in zip(student.weights[:-1], reference.units, strict=True)
    ]
    whole = count // BLOCK
    sums: tuple = (jnp.zeros(()), zeros)
    if whole:
        sums = jax.lax.fori_loop(0, whole, lambda i, s: add(s, part(i * BLOCK, BLOCK)), sums)
    if whole * BLOCK < count:
        sums = add(sums, part(whole * BLOCK, count - whole * BLOCK))
    loss, layers = sums
    return Measured(
        loss / (2 * count), tuple(_correlation(products, total, squares, count) for products, total, squares in layers)
    )


def _correlation(
    products: Float[Array, "m n"], total: Float[Array, " n"], squares: Float[Array, " n"], samples: int
) -> Float[Array, "m n"]:
    spread = squares - total**2 / samples
    constant = spread <= 1e-12 * squares  # a node that does not vary, up to rounding
    size = jnp.sqrt(jnp.where(constant, 1.0, spread))
    return jnp.where(constant, 0.0, 1.0)[None, :] * products / size[None, :]
