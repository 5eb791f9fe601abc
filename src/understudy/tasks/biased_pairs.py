r"""Sums over pairs of neurons with biases, and the contribution of their second derivatives to a Hessian.

A neuron is the vector p̃ = (p, m1): its incoming vector and the mean of its pre-activation p·x + m1, x ~ N(0, I). With
E_ij = E[σ1^(i) σ2^(j)] and e the unit vector of the mean, in which p and q have no component,

∂_p̃ = E_20 p + E_11 q + E_10 e,
∂_p̃p̃ = E_20 I + E_40 ppᵀ + E_31 (pqᵀ + qpᵀ) + E_22 qqᵀ + (E_30 p + E_21 q) eᵀ + e (E_30 p + E_21 q)ᵀ,
∂_p̃q̃ = E_11 I + E_22 (pqᵀ + qpᵀ) + E_31 ppᵀ + E_13 qqᵀ + (E_21 p + E_12 q) eᵀ + e (E_21 p + E_12 q)ᵀ.

For two kinked activations E_22 is the density of both kinks meeting, which diverges as the vectors become parallel,
while the blocks stay bounded. There they are written with x₀ = e - (m1/q11) p, the mean input at the first kink, and
the components q⊥, p⊥ of one vector across the other, in which the large terms have been cancelled by hand:

∂_p̃p̃ = E_20 (I - ppᵀ/q11 - eeᵀ + x₀x₀ᵀ) + E_21 (x₀q⊥ᵀ + q⊥x₀ᵀ) + E_22 q⊥q⊥ᵀ,
E_31 ppᵀ + E_22 (pqᵀ + qpᵀ) + E_13 qqᵀ = E_22 (p q⊥ᵀ + q p⊥ᵀ) - (m1/q11) E_21 ppᵀ - (m2/q22) E_12 qqᵀ.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.activations import Activation, Erf, PiecewiseLinear
from understudy.gaussian import (
    BiasedPartials,
    BiasedSelfPartials,
    Covariance,
    biased_pair_partials,
    biased_self_partials,
    mehler,
    single_expectations,
)
from understudy.gaussian.mehler import Series
from understudy.gaussian.quadrature import nodes_needed
from understudy.tasks.pairs import LARGE, CrossBlocks, across


class Shifted(NamedTuple):
    """Neurons with biases: incoming vectors (rows) and means of the pre-activations."""

    vectors: Float[Array, "n r"]
    means: Float[Array, " n"]


class BiasedPairs(NamedTuple):
    """All pairs of two lists of neurons: their partials, and for kinked pairs the components q⊥ of q across p."""

    partials: BiasedPartials
    q_perpendicular: Float[Array, "n k r"] | None

    def leading(self, count: int) -> "BiasedPairs":
        """The pairs with the first `count` neurons of the second list."""
        return jax.tree.map(lambda x: x[:, :count], self)


def pair_up(first: Activation, second: Activation, p: Shifted, q: Shifted, resolution: float) -> BiasedPairs:
    """Partials of every pair; `resolution` as in `pairs.pair_up`."""
    q12 = p.vectors @ q.vectors.T
    q11 = jnp.broadcast_to(jnp.sum(p.vectors**2, axis=1)[:, None], q12.shape)
    q22 = jnp.broadcast_to(jnp.sum(q.vectors**2, axis=1)[None, :], q12.shape)
    piecewise = isinstance(first, PiecewiseLinear), isinstance(second, PiecewiseLinear)
    kinked = all(piecewise) and first.kink * second.kink != 0  # type: ignore[attr-defined]
    if isinstance(first, Erf) and isinstance(second, Erf) and resolution <= LARGE:
        determinant, perpendicular = jnp.maximum(q11 * q22 - q12**2, 0.0), None
    else:
        perpendicular = across(p.vectors, q.vectors, q11, q12, q22)
        determinant = q11 * jnp.sum(perpendicular**2, axis=-1)
    means = jnp.broadcast_to(p.means[:, None], q12.shape), jnp.broadcast_to(q.means[None, :], q12.shape)
    if mehler.serves(first, second, resolution, biased=True):
        one, two = _series(first, p, resolution), _series(second, q, resolution)
        partials = mehler.biased_partials(one, two, mehler.correlations(one, two, q12))
    else:
        c = Covariance(q11, q12, q22, determinant)
        partials = biased_pair_partials(first, second, c, means, nodes_needed(resolution))
    return BiasedPairs(partials, perpendicular if kinked else None)


def _series(activation: Activation, neurons: Shifted, resolution: float) -> Series:
    """The Hermite coefficients of neurons with biases."""
    norms = jnp.sqrt(jnp.sum(neurons.vectors**2, axis=1))
    return mehler.coefficients(activation, norms, resolution, neurons.means)


def alone(activation: Activation, neurons: Shifted, resolution: float) -> tuple[BiasedSelfPartials, list[Array]]:
    """Partials of every neuron with itself, and E[σ^(j)], j = 0…4; see `pairs.own_partials`."""
    if mehler.serves(activation, activation, resolution, biased=True):
        series = _series(activation, neurons, resolution)
        return series.own, series.single
    squares, nodes = jnp.sum(neurons.vectors**2, axis=1), nodes_needed(resolution)
    own = biased_self_partials(activation, squares, neurons.means, nodes)
    return own, single_expectations(activation, squares, neurons.means, nodes)


def slopes(pairs: BiasedPairs, p: Shifted, q: Shifted) -> Float[Array, "n k e"]:
    """∂_p̃ G of every pair."""
    g = pairs.partials
    vectors = 2 * g.q11[:, :, None] * p.vectors[:, None, :] + g.q12[:, :, None] * q.vectors[None, :, :]
    return jnp.concatenate([vectors, g.m1[:, :, None]], axis=2)


def pulls(pairs: BiasedPairs, weight: Float[Array, "n k"], p: Shifted, q: Shifted) -> Float[Array, "n e"]:
    """Σ_j weight_ij ∂_p̃ G_ij."""
    g = pairs.partials
    along = jnp.sum(2 * weight * g.q11, axis=1)[:, None] * p.vectors
    return jnp.concatenate([along + (weight * g.q12) @ q.vectors, jnp.sum(weight * g.m1, axis=1)[:, None]], axis=1)


class Block(NamedTuple):
    """Second derivatives by (p, m) of every neuron: by p twice, by p and m, by m twice."""

    square: Float[Array, "n r r"]
    side: Float[Array, "n r"]
    corner: Float[Array, " n"]

    def whole(self) -> Float[Array, "n e e"]:
        """The symmetric matrices."""
        return bordered(self.square, self.side[:, :, None], self.corner[:, None, None])


def bordered(square: Float[Array, "n r r"], side: Float[Array, "n r s"], corner: Float[Array, "n s s"]) -> Array:
    """[[square, side], [sideᵀ, corner]] of every neuron."""
    top, bottom = jnp.concatenate([square, side], axis=2), jnp.concatenate([jnp.swapaxes(side, 1, 2), corner], axis=2)
    return jnp.concatenate([top, bottom], axis=1)


def own_blocks(pairs: BiasedPairs, weight: Float[Array, "n k"], p: Shifted, q: Shifted) -> Block:
    """Σ_j weight_ij ∂_p̃p̃ of pair (i, j), for every i."""
    g, vectors = pairs.partials, p.vectors
    corner = jnp.sum(2 * weight * g.q11, axis=1)
    if pairs.q_perpendicular is not None:
        across_p, q11 = pairs.q_perpendicular, jnp.sum(vectors**2, axis=1)
        safe = jnp.where(q11 > 0, q11, 1.0)
        tilt = (p.means / safe)[:, None]
        pull = jnp.einsum("ij,ija->ia", weight * g.q12m1, across_p)
        both = jnp.where(jnp.any(across_p != 0, axis=-1), weight * g.q12q12, 0.0)
        bend = jnp.einsum("ij,ija,ijb->iab", both, across_p, across_p)
        along, mixed = corner * (tilt[:, 0] ** 2 - 1 / safe), -tilt * pull
        side = pull - (corner[:, None] * tilt) * vectors
    else:
        bend = jnp.einsum("ij,ja,jb->iab", weight * g.q12q12, q.vectors, q.vectors, optimize="optimal")
        along, mixed = jnp.sum(4 * weight * g.q11q11, axis=1), (2 * weight * g.q11q12) @ q.vectors
        side = jnp.sum(2 * weight * g.q11m1, axis=1)[:, None] * vectors + (weight * g.q12m1) @ q.vectors
    half = along[:, None] / 2 * vectors + mixed
    square = corner[:, None, None] * jnp.eye(vectors.shape[1])[None] + _outer(vectors, half) + _outer(half, vectors)
    return Block(square + bend, side, corner)


def cross_blocks(pairs: BiasedPairs, weight: Float[Array, "n k"], p: Shifted, q: Shifted) -> CrossBlocks:
    """weight_ij ∂_p̃q̃ of every pair, not multiplied out; see `pairs.CrossBlocks`."""
    g = pairs.partials
    rows, columns = _wide(p.vectors)[:, None, :], _wide(q.vectors)[None, :, :]
    unit = jnp.zeros(rows.shape[-1]).at[-1].set(1.0)[None, None, :]
    w21, w12 = (jnp.where(weight == 0, 0.0, weight * x)[:, :, None] for x in (g.q12m1, g.q12m2))
    side = w21 * rows + w12 * columns
    slope = jnp.where(weight == 0, 0.0, weight * g.q12)
    if pairs.q_perpendicular is not None:
        across_p = pairs.q_perpendicular
        q11, q22 = jnp.sum(p.vectors**2, axis=1)[:, None], jnp.sum(q.vectors**2, axis=1)[None, :]
        q11, q22 = jnp.where(q11 > 0, q11, 1.0), jnp.where(q22 > 0, q22, 1.0)
        share, tilt = jnp.sum(across_p**2, axis=-1) / q22, (p.vectors @ q.vectors.T) / q22
        across_q = share[:, :, None] * p.vectors[:, None, :] - tilt[:, :, None] * across_p  # no cancellation
        both = jnp.where(jnp.any(across_p != 0, axis=-1), weight * g.q12q12, 0.0)[:, :, None]
        wide = ((0, 0), (0, 0), (0, 1))
        first, second = (p.means[:, None] / q11)[:, :, None], (q.means[None, :] / q22)[:, :, None]
        right1 = both * jnp.pad(across_p, wide) + w21 * (unit - first * rows)
        right2 = both * jnp.pad(across_q, wide) + w12 * (unit - second * columns)
        return CrossBlocks(slope, [(rows, right1), (columns, right2), (unit, side)])
    both = (weight * g.q12q12)[:, :, None]
    first, second = (2 * weight * g.q11q12)[:, :, None], (2 * weight * g.q12q22)[:, :, None]
    right1 = both * columns + first * rows + w21 * unit
    right2 = both * rows + second * columns + w12 * unit
    return CrossBlocks(slope, [(rows, right1), (columns, right2), (unit, side)])


def _wide(vectors: Array) -> Array:
    """Vectors with a component along the mean, which is zero."""
    return jnp.pad(vectors, ((0, 0), (0, 1)))


def _outer(a: Array, b: Array) -> Array:
    return a[:, :, None] * b[:, None, :]
