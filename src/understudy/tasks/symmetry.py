"""Continuous symmetries of two-layer population losses: directions along which the loss cannot change."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def rescaling_tangents(
    incoming: Float[Array, "n d"], outgoing: Float[Array, "n m"], degree: int
) -> Float[Array, "n n*(d+m)"]:
    """(w_i, a_i) → (c w_i, a_i/c^p) keeps the function if σ is positively homogeneous of degree p: one per neuron."""
    n = incoming.shape[0]
    rows = jnp.concatenate([incoming, -degree * outgoing], axis=1)
    return jnp.where(jnp.eye(n, dtype=bool)[:, :, None], rows[None], 0.0).reshape(n, -1)


def rotation_tangents(incoming: Float[Array, "n d"], teacher: Float[Array, "k d"], outputs: int) -> Float[Array, "q P"]:
    """Rotations of the directions orthogonal to every teacher, q = m(m-1)/2 of them for m = d - k ≥ 2.

    A rotation that moves no student has a zero row. `outputs` counts trained outgoing weights per neuron.
    """
    n, d = incoming.shape
    outside = jnp.linalg.qr(teacher.T, mode="complete")[0][:, teacher.shape[0] :].T
    first, second = np.triu_indices(d - teacher.shape[0], 1)
    components = incoming @ outside.T
    moves = components[:, first, None] * outside[second][None] - components[:, second, None] * outside[first][None]
    moves = jnp.where(jnp.abs(moves).max(axis=(0, 2), keepdims=True) > 1e-10, moves, 0.0)
    padded = jnp.pad(jnp.swapaxes(moves, 0, 1), ((0, 0), (0, 0), (0, outputs)))
    return padded.reshape(len(first), n * (d + outputs))
