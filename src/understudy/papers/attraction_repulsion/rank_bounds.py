"""Rank_σ of a pair of covariances: bounds on the number of neurons that a hidden layer needs.

A hidden layer with pre-activations Z (n × N: n neurons, N inputs) has the covariances

    K = ZᵀZ = Σ_i z_i z_iᵀ,    K^σ = σ(Z)ᵀσ(Z) + β² 11ᵀ = Σ_i σ(z_i) σ(z_i)ᵀ + β² 11ᵀ,

and Rank_σ(K, K^σ) is the least number of rows that gives them (Jacot et al. 2022, Eq. 4.1). If σ(cx) = cσ(x) for c > 0,
the pairs form a convex cone. A network of the same depth with Rank_σ neurons in that layer then has the same
covariances, the same outputs and the same norm (Prop. 8).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from understudy import activations
from understudy.activations import Activation
from understudy.papers.attraction_repulsion.cp_rank import cp_lower_bound
from understudy.surgery.conical import rank_of, reduce_representation, require_degree_one


@dataclass(frozen=True)
class RankBounds:
    """`lower` ≤ Rank_σ ≤ `upper`, and the evidence for these bounds.

    **Attributes**

    - `rank`, `activated_rank`: the ranks of K and of K^σ - β² 11ᵀ, both ≤ Rank_σ.
    - `cp_lower`: a lower bound on the cp-rank of K^σ - β² 11ᵀ, for activations with values ≥ 0; 0 for others.
    - `representation`: rows Z of shape (upper, N) with the same covariances, to `residual` of the largest entry.
    - `ceiling`: the bound for every pair of N inputs, see `cone_dimension`.
    """

    lower: int
    upper: int
    rank: int
    activated_rank: int
    cp_lower: int
    representation: Float[np.ndarray, "k N"]
    residual: float
    ceiling: int


def covariances(
    representation: Float[np.ndarray, "n N"], activation: str | Activation, beta: float = 0.0
) -> tuple[Float[np.ndarray, "N N"], Float[np.ndarray, "N N"]]:
    """(K, K^σ) of pre-activations Z."""
    z = np.asarray(representation, float)
    h = activations.activate(activation, z)
    return z.T @ z, h.T @ h + beta**2


def cone_dimension(activation: str | Activation, inputs: int) -> int:
    """The dimension of the cone of all pairs (K, K^σ) of N inputs. No pair has a larger Rank_σ (Carathéodory).

    It is N(N+1) for ReLU (Lemma 10). It is less if the two matrices depend on each other: N(N+1)/2 for the linear
    activation, N² for |x|, where K and K^σ have the same diagonal.

    >>> cone_dimension("relu", 3), cone_dimension("abs", 3), cone_dimension("linear", 3)
    (12, 9, 6)
    """
    parity = require_degree_one(activation).parity
    return {"odd": inputs * (inputs + 1) // 2, "even": inputs**2, None: inputs * (inputs + 1)}[parity]


def rank_bounds(
    representation: np.ndarray,
    activation: str | Activation,
) -> RankBounds:
    """Bounds on Rank_σ of the covariances of pre-activations Z (n × N), σ homogeneous of degree one.

    β does not matter, because β²11ᵀ is subtracted from K^σ. Lower bounds are Rank(K) (Lemma 10), Rank(K^σ - β²11ᵀ) and,
    if σ ≥ 0, the cp-rank of K^σ - β²11ᵀ (Section 4.2). Upper bounds are n and the number of rows that
    `reduce_representation` leaves.

    >>> aligned = np.array([[1.0, -1.0], [2.0, -2.0], [0.0, 1.0]])
    >>> found = rank_bounds(aligned, "relu")
    >>> found.lower, found.upper
    (2, 2)
    """
    sigma = require_degree_one(activation)
    z = np.asarray(representation, float)
    if z.ndim != 2 or not np.all(np.isfinite(z)):
        raise ValueError(f"A representation is one finite matrix, neurons × inputs; received shape {z.shape}.")
    reduced = reduce_representation(z, activation)
    k, activated = covariances(z, activation)
    scale = max(float(np.max(np.abs(k), initial=0.0)), float(np.max(np.abs(activated), initial=0.0)))
    found = covariances(reduced, activation)
    residual = max(float(np.max(np.abs(a - b))) for a, b in zip((k, activated), found, strict=True))
    rank, activated_rank = rank_of(z), rank_of(activations.activate(sigma, z))
    cp_lower = 0
    if np.all(activations.activate(sigma, np.array([-1.0, 1.0])) >= 0) and np.max(activated, initial=0.0) > 0:
        cp_lower = cp_lower_bound(activated)[0]
    lower = max(rank, activated_rank, cp_lower)
    ceiling = cone_dimension(activation, z.shape[1])
    return RankBounds(
        lower, len(reduced), rank, activated_rank, cp_lower, reduced, residual / scale if scale else 0.0, ceiling
    )
