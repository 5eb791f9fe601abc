"""Deep ReLU teachers with distinguishable nodes: distinct weights, strong and weak nodes, each active on half the data.

This is the construction of Tian 2020, Section 6. Weights are drawn from a grid such that no two nodes of a layer point
the same way. Biases put the boundary of every node through the middle of the data (Assumption 1). The outgoing weights
of node j are divided by j^p, where p is the polarity.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from understudy.networks import Deep

GRID = np.linspace(-1.0, 1.0, 9)
"""Weights are drawn from these values, as in the released runs of Tian 2020."""

TRIES = 1000


def distinct_rows(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """A matrix with entries from `GRID`, without zero rows and without two parallel or opposite rows."""
    kept: list[np.ndarray] = []
    seen: set[tuple[float, ...]] = set()
    for _ in range(TRIES * rows):
        row = rng.choice(GRID, size=columns)
        length = np.linalg.norm(row)
        if length == 0:
            continue
        unit = np.round(row / length * np.sign(row[np.flatnonzero(row)[0]]), 9) + 0.0
        if tuple(unit) in seen:
            continue
        seen.add(tuple(unit))
        kept.append(row)
        if len(kept) == rows:
            return np.stack(kept)
    raise ValueError(
        f"{rows} distinct directions were not found among weights of {columns} entries from a grid of {len(GRID)} "
        "values. Give fewer nodes or more inputs."
    )


def half_active(
    widths: Sequence[int], inputs: ArrayLike, *, seed: int = 0, polarity: float = 0.0, standardise: bool = False
) -> Deep:
    """A deep ReLU teacher of these widths (inputs first, outputs last), with nodes active on half of `inputs`.

    **Arguments**

    - `inputs`: (N, d), the data that determine the biases: minus the median of each node's pre-activation.
    - `polarity`: p ≥ 0; column j of every layer above the first is divided by j^p, so that ‖v_j‖ ~ 1/j^p.
    - `standardise`: scale and shift every output to mean 0 and variance 1 over `inputs`; otherwise its bias is 0.

    Rows of hidden layers have unit norm (without the bias).
    """
    sizes = [int(n) for n in widths]
    if len(sizes) < 3 or min(sizes) < 1:
        raise ValueError(f"A teacher has inputs, hidden layers and outputs, each at least 1 wide; received {sizes}.")
    if not 0 <= polarity < np.inf:
        raise ValueError(f"The polarity p ≥ 0 of ‖v_j‖ ~ 1/j^p is finite; received {polarity}.")
    x = np.asarray(inputs, float)
    if x.ndim != 2 or x.shape[1] != sizes[0] or not len(x):
        raise ValueError(f"inputs must have shape (N, {sizes[0]}) with N ≥ 1; received shape {x.shape}.")
    rng = np.random.default_rng(seed)
    weights, biases = [], []
    for l, (before, after) in enumerate(itertools.pairwise(sizes)):
        if l < len(sizes) - 2:
            w = distinct_rows(after, before, rng)
            w = w / np.linalg.norm(w, axis=1, keepdims=True)
        else:
            w = rng.choice(GRID, size=(after, before))
            while np.any(silent := ~np.any(w, axis=0)):  # a node that no later node uses could not be learned
                w[:, silent] = rng.choice(GRID, size=(after, int(silent.sum())))
        if l:
            w = w / np.arange(1, before + 1) ** polarity
        z = x @ w.T
        if l < len(sizes) - 2:
            b = -np.median(z, axis=0)
            x = np.maximum(z + b, 0.0)
        elif standardise:
            spread = np.std(z, axis=0)
            if np.any(spread == 0):
                raise ValueError("An output does not vary over the inputs and cannot be standardised; give more data.")
            w, b = w / spread[:, None], -np.mean(z, axis=0) / spread
        else:
            b = np.zeros(after)
        weights.append(jnp.asarray(w))
        biases.append(jnp.asarray(b))
    return Deep(tuple(weights), tuple(biases))
