"""Interactions of many norms with one teacher as power series in their correlation, without compiling anything.

This is Mehler's formula (see `gaussian.mehler`) in NumPy, for scans over norms and correlations. There all correlations
use the same Hermite coefficients, and compiling a function for each shape would cost more than the sums.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import numpy as np
from jaxtyping import Array

from understudy.activations import Activation, Polynomial
from understudy.gaussian import Partials, mehler
from understudy.gaussian.partials import TERMS

_PIECE = 4096

LARGEST_SCALE = 4.0
"""Beyond this steepness × norm quadrature is faster (2,600 terms and 680 nodes here)."""


def in_reach(activation: Activation, norms: np.ndarray) -> np.ndarray:
    """Where the series with a unit teacher is faster than quadrature (steepness × norm ≤ 4)."""
    small = activation.steepness * np.maximum(norms, 1.0) <= LARGEST_SCALE * (1 + 1e-12)
    return small & (activation.smoothness > 0) & (not isinstance(activation, Polynomial))


def table_scale(scale: float) -> float:
    """The scale rounded up to a power of √2, to limit the number of tables of Hermite functions."""
    return 2.0 ** (math.ceil(2 * math.log2(scale) - 1e-9) / 2)


@partial(jax.jit, static_argnames=("activation", "orders"))
def _derivatives(activation: Activation, x: Array, orders: int) -> tuple[Array, ...]:
    return activation.derivatives(x, orders - 1)


def derivatives(activation: Activation, x: np.ndarray, orders: int) -> list[np.ndarray]:
    """σ, σ', … (`orders` of them) at any number of points, in pieces of one size, so that code is compiled once."""
    padded = np.append(x, np.zeros(-x.size % _PIECE)).reshape(-1, _PIECE)
    pieces = [_derivatives(activation, piece, orders) for piece in padded]
    return [np.concatenate([np.asarray(p[i]) for p in pieces])[: x.size].reshape(x.shape) for i in range(orders)]


def coefficients(activation: Activation, norms: np.ndarray, scale: float, orders: int = 5) -> np.ndarray:
    """E[σ^(i)(r x) h_m(x)] for derivatives i < `orders` and norms r, shape (orders, norms, terms)."""
    x, matrix = mehler.transform(scale)
    values = derivatives(activation, norms[:, None] * x[None, :], orders)
    return np.stack([v @ matrix for v in values])


def pair_series(first: np.ndarray, second: np.ndarray, u: float) -> Partials:
    """The nine expectations of pairs of neurons at correlation u; `second` may be one neuron for all."""
    powers = u ** np.arange(first.shape[-1])
    return Partials(*(factor * np.sum(first[i] * second[j] * powers, axis=-1) for factor, i, j in TERMS))
