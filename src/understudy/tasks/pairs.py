"""Sums over pairs of neurons, and the contribution of their second derivatives to a Hessian.

For vectors p, q with covariance entries q11 = p·p, q12 = p·q, q22 = q·q the pair term c·G(q11, q12, q22) has

∂_p = c (2 G_11 p + G_12 q),
∂_pp = c (2 G_11 I + 4 G_11,11 ppᵀ + 2 G_11,12 (pqᵀ + qpᵀ) + G_12,12 qqᵀ),
∂_pq = c (G_12 I + G_12,12 (pqᵀ + qpᵀ) + 2 G_11,12 ppᵀ + 2 G_12,22 qqᵀ),

the last because ∂²G/∂q11∂q22 = ¼ G_12,12. For kinked activations G_12,12 grows like 1/s as the vectors become parallel
(s = area of their parallelogram) while ∂_pp stays bounded; there the same blocks are written with the components
q⊥ = q - (q12/q11) p and p⊥ = p - (q12/q22) q, in which the large terms have been cancelled by hand:

∂_pp = c (2κ/π) ((s/q11)(I - ppᵀ/q11) + q⊥q⊥ᵀ/s), ∂_pq = c (G_12 I + (2κ/π)(p q⊥ᵀ + q p⊥ᵀ)/s), κ = product of kinks.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.activations import Activation, Erf, Gelu, PiecewiseLinear
from understudy.gaussian import (
    Covariance,
    Partials,
    SelfPartials,
    has_closed_form,
    mehler,
    mixture,
    pair_partials,
    self_partials,
)
from understudy.gaussian.quadrature import nodes_needed


class Pairs(NamedTuple):
    """All pairs of rows of `p` (n, r) and `q` (k, r): their partials, and for kinked pairs the geometry behind them."""

    partials: Partials
    kink: float
    area: Float[Array, "n k"]
    q_perpendicular: Float[Array, "n k r"] | None

    def leading(self, count: int) -> "Pairs":
        """The pairs with the first `count` rows of q."""
        partials, area, perpendicular = jax.tree.map(
            lambda x: x[:, :count], (self.partials, self.area, self.q_perpendicular)
        )
        return Pairs(partials, self.kink, area, perpendicular)


def pair_up(
    first: Activation,
    second: Activation,
    p: Float[Array, "n r"],
    q: Float[Array, "k r"],
    resolution: float,
    curved: bool = True,
) -> Pairs:
    """Partials of every pair (row of p with activation `first`, row of q with `second`).

    `resolution` bounds steepness × norm; series and quadrature are chosen for it where there is no closed form. There,
    without `curved`, second partials are None, and derivatives of the first ones are known (see `slopes`).
    """
    q11, q22 = jnp.sum(p**2, axis=1)[:, None], jnp.sum(q**2, axis=1)[None, :]
    q12 = p @ q.T
    q11, q22 = jnp.broadcast_to(q11, q12.shape), jnp.broadcast_to(q22, q12.shape)
    kinked = isinstance(first, PiecewiseLinear) and isinstance(second, PiecewiseLinear)
    kink = first.kink * second.kink if kinked else 0.0  # type: ignore[attr-defined]
    perpendicular = across(p, q, q11, q12, q22) if kink or _is_large(first, second, resolution) else None
    if perpendicular is not None:
        determinant = q11 * jnp.sum(perpendicular**2, axis=-1)
    else:
        determinant = jnp.maximum(q11 * q22 - q12**2, 0.0)
    smooth = not (isinstance(first, PiecewiseLinear) or isinstance(second, PiecewiseLinear))
    if smooth and not has_closed_form(first, second):
        integrate = _integrated if curved else _first_partials
        partials = integrate(first, second, resolution, q11[:, 0], q12, q22[0])
    else:
        partials = pair_partials(first, second, Covariance(q11, q12, q22, determinant), nodes_needed(resolution))
    return Pairs(partials, kink, jnp.sqrt(determinant), perpendicular if kink else None)


def _integrated(
    first: Activation, second: Activation, resolution: float, q11: Array, q12: Array, q22: Array
) -> Partials:
    """All partials of smooth pairs by series or quadrature, from variances and covariances."""
    if mehler.serves(first, second, resolution):
        return mehler.pair_partials(first, second, resolution, q11, q12, q22)
    q11, q22 = jnp.broadcast_to(q11[:, None], q12.shape), jnp.broadcast_to(q22[None, :], q12.shape)
    covariance = Covariance(q11, q12, q22, jnp.maximum(q11 * q22 - q12**2, 0.0))
    if mixture.serves(first, second, resolution):
        return mixture.mixture_partials(first, second, covariance)
    return pair_partials(first, second, covariance, nodes_needed(resolution))


def _first_partials(
    first: Activation, second: Activation, resolution: float, q11: Array, q12: Array, q22: Array
) -> Partials:
    value, by_11, by_12 = slopes(first, second, resolution, q11, q12, q22)
    return Partials(value, by_11, by_12, *(None,) * 6)  # type: ignore[arg-type]


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def slopes(
    first: Activation, second: Activation, resolution: float, q11: Array, q12: Array, q22: Array
) -> tuple[Array, Array, Array]:
    """G, ∂G/∂q11 and ∂G/∂q12 of smooth pairs, whose derivatives are the second partials.

    Differentiating the quadrature itself instead would make programs that take a minute to compile.
    """
    p = _integrated(first, second, resolution, q11, q12, q22)
    return p.value, p.q11, p.q12


@slopes.defjvp
def _slopes_jvp(first: Activation, second: Activation, resolution: float, primals: Any, tangents: Any) -> Any:
    p = _integrated(first, second, resolution, *primals)
    d11, d12, d22 = tangents[0][:, None], tangents[1], tangents[2][None, :]
    return (p.value, p.q11, p.q12), (
        p.q11 * d11 + p.q12 * d12 + p.q22 * d22,
        p.q11q11 * d11 + p.q11q12 * d12 + p.q12q12 / 4 * d22,
        p.q11q12 * d11 + p.q12q12 * d12 + p.q12q22 * d22,
    )


def own_partials(activation: Activation, vectors: Float[Array, "n r"], resolution: float) -> SelfPartials:
    """Partials of every neuron with itself. A compiler finds the same series in `pair_up` and computes it once."""
    q = jnp.sum(vectors**2, axis=1)
    if mehler.serves(activation, activation, resolution):
        own = mehler.coefficients(activation, jnp.sqrt(q), resolution).own
        return SelfPartials(own.value, own.q, own.qq)
    return self_partials(activation, q, nodes_needed(resolution))


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def own_slopes(activation: Activation, resolution: float, vectors: Float[Array, "n r"]) -> tuple[Array, Array]:
    """D and D' of `own_partials`, whose derivatives are D' and D''."""
    own = own_partials(activation, vectors, resolution)
    return own.value, own.q


@own_slopes.defjvp
def _own_slopes_jvp(activation: Activation, resolution: float, primals: Any, tangents: Any) -> Any:
    own = own_partials(activation, primals[0], resolution)
    moved = 2 * jnp.sum(primals[0] * tangents[0], axis=1)
    return (own.value, own.q), (own.q * moved, own.qq * moved)


LARGE = 8.0
"""Norms above which the closed forms of erf and gelu need q11 q22 - q12² from the vectors: below, its rounding is under
1e-14."""


def _is_large(first: Activation, second: Activation, resolution: float) -> bool:
    return has_closed_form(first, second) and isinstance(first, Erf | Gelu) and resolution > LARGE


def across(p: Float[Array, "n r"], q: Float[Array, "k r"], q11: Array, q12: Array, q22: Array) -> Float[Array, "n k r"]:
    """The part of every q across every p: q11 times its square is q11 q22 - q12², to full relative precision.

    It is computed from the vectors, because q11 q22 - q12² has lost half its digits where two neurons are nearly
    parallel. Vectors whose directions differ only by rounding count as parallel, because the part of one across the
    other is noise.
    """
    tilt = q12 / jnp.where(q11 > 0, q11, 1.0)
    perpendicular = q[None, :, :] - tilt[:, :, None] * p[:, None, :]
    parallel = jnp.sum(perpendicular**2, axis=-1) <= (8 * jnp.finfo(float).eps) ** 2 * q22
    return jnp.where(parallel[:, :, None], 0.0, perpendicular)


def own_blocks(
    pairs: Pairs, weight: Float[Array, "n k"], p: Float[Array, "n r"], q: Float[Array, "k r"]
) -> Float[Array, "n r r"]:
    """Σ_j weight_ij ∂_pp of pair (i, j), for every i."""
    g, dim = pairs.partials, p.shape[1]
    identity = jnp.eye(dim)[None]
    if pairs.q_perpendicular is not None:
        s, perpendicular = pairs.area, pairs.q_perpendicular
        q11 = jnp.sum(p**2, axis=1)
        scale = 2 * pairs.kink / math.pi * weight
        radial = jnp.sum(scale * s, axis=1) / q11
        across = scale * jnp.where(s > 0, 1 / jnp.where(s > 0, s, 1.0), 0.0)
        direction = p / jnp.sqrt(q11)[:, None]
        projector = identity - direction[:, :, None] * direction[:, None, :]
        return radial[:, None, None] * projector + jnp.einsum("ij,ija,ijb->iab", across, perpendicular, perpendicular)
    mixed = (2 * weight * g.q11q12) @ q
    outer = p[:, :, None] * mixed[:, None, :]
    return (
        jnp.sum(2 * weight * g.q11, axis=1)[:, None, None] * identity
        + jnp.sum(4 * weight * g.q11q11, axis=1)[:, None, None] * (p[:, :, None] * p[:, None, :])
        + outer
        + jnp.swapaxes(outer, 1, 2)
        + jnp.einsum("ij,ja,jb->iab", weight * g.q12q12, q, q, optimize="optimal")
    )


def own_diagonals(
    pairs: Pairs, weight: Float[Array, "n k"], p: Float[Array, "n r"], q: Float[Array, "k r"]
) -> Float[Array, "n r"]:
    """The diagonals of `own_blocks`, at the cost of a gradient."""
    g = pairs.partials
    if pairs.q_perpendicular is not None:
        s, q11 = pairs.area, jnp.sum(p**2, axis=1)[:, None]
        scale = 2 * pairs.kink / math.pi * weight
        radial = jnp.sum(scale * s, axis=1)[:, None] / q11
        across = scale * jnp.where(s > 0, 1 / jnp.where(s > 0, s, 1.0), 0.0)
        return radial * (1 - p**2 / q11) + jnp.einsum("ij,ija->ia", across, pairs.q_perpendicular**2)
    return (
        jnp.sum(2 * weight * g.q11, axis=1)[:, None]
        + jnp.sum(4 * weight * g.q11q11, axis=1)[:, None] * p**2
        + 2 * p * ((2 * weight * g.q11q12) @ q)
        + (weight * g.q12q12) @ q**2
    )


class CrossBlocks(NamedTuple):
    """weight_ij ∂_pq of every pair, as slope_ij I + Σ_c left^c_ij (right^c_ij)ᵀ, not multiplied out.

    The vectors have shapes that broadcast to (n, k, r).
    """

    slope: Float[Array, "n k"]
    outer: list[tuple[Array, Array]]


def cross_blocks(
    pairs: Pairs, weight: Float[Array, "n k"], p: Float[Array, "n r"], q: Float[Array, "k r"]
) -> CrossBlocks:
    """The mixed second derivatives of every pair.

    For kinked activations the term over s vanishes like s as the vectors become parallel, from every side, because
    there p q⊥ᵀ and q p⊥ᵀ cancel to first order: at exactly parallel vectors it is zero.
    """
    g = pairs.partials
    slope = jnp.where(weight == 0, 0.0, weight * g.q12)
    rows, columns = p[:, None, :], q[None, :, :]
    if pairs.q_perpendicular is not None:
        s, q_perpendicular = pairs.area, pairs.q_perpendicular
        q11, q22 = jnp.sum(p**2, axis=1)[:, None], jnp.sum(q**2, axis=1)[None, :]
        share, tilt = s**2 / (q11 * q22), (p @ q.T) / q22
        p_perpendicular = share[:, :, None] * rows - tilt[:, :, None] * q_perpendicular  # no cancellation
        across = 2 * pairs.kink / math.pi * weight * jnp.where(s > 0, 1 / jnp.where(s > 0, s, 1.0), 0.0)
        return CrossBlocks(
            slope, [(across[:, :, None] * rows, q_perpendicular), (across[:, :, None] * columns, p_perpendicular)]
        )
    both = (weight * g.q12q12)[:, :, None]
    first, second = (2 * weight * g.q11q12)[:, :, None], (2 * weight * g.q12q22)[:, :, None]
    return CrossBlocks(slope, [(both * columns + first * rows, rows), (both * rows + second * columns, columns)])
