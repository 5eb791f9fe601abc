"""Reduce every hidden layer to as many neurons as its covariances need: Prop. 7 and 8 of Jacot et al. 2022,
constructively.

For N inputs and a σ with σ(cx) = cσ(x), c > 0, the covariances (K_ℓ, K_ℓ^σ) of a layer are a conical combination of at
most N(N+1) of its own neurons. These neurons, rescaled, are new pre-activations Z_ℓ with the same covariances. Their
weights are W_ℓ = Z_ℓ (Z_{ℓ-1}^σ)⁺, and

    Σ_ℓ ‖W_ℓ‖² = Σ_ℓ Tr[K_ℓ (K_{ℓ-1}^σ)⁺]

depends only on covariances, so it is at most the norm before.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from understudy import activations
from understudy.activations import Activation, activate
from understudy.networks import Deep, TwoLayer
from understudy.surgery.merge import LayerMerge, Merged, compare
from understudy.surgery.parts import check_inputs, pack, require_homogeneous, unpack

RANK_TOLERANCE = 1e-10
"""Singular values below this times the largest count as zero."""


def reduce_by_covariance(
    network: TwoLayer | Deep, activation: str | Activation, inputs: ArrayLike, *, rcond: float = 1e-12
) -> Merged:
    """A network with the same hidden covariances and outputs on the data, and at most N(N+1) neurons per layer.

    Its norm is not larger. On other inputs its function differs. Singular values of activations below `rcond` count as
    zero in the pseudo-inverses. The outputs are exact if the activations of the layers are well conditioned; the report
    says how exact they are.
    """
    sigma = require_homogeneous(activation)
    weights, biases = unpack(network)
    x = check_inputs(inputs, weights[0].shape[1])
    beta = float(isinstance(network, Deep))  # a two-layer network has no biases, so β = 0
    before = after = _with_bias(x.T, beta)
    new_weights, new_biases, layers = [], [], []
    for r, (w, b) in enumerate(zip(weights, biases, strict=True)):
        z = np.concatenate([w, b[:, None]], axis=1) @ before if beta else w @ before
        hidden = r + 1 < len(weights)
        rows = reduce_representation(z, sigma) if hidden else z
        fitted = rows @ np.linalg.pinv(after, rcond=rcond)
        new_weights.append(fitted[:, :-1] if beta else fitted)
        new_biases.append(fitted[:, -1] if beta else np.zeros(len(rows)))
        if hidden:
            layers.append(LayerMerge(r + 1, len(w), len(rows), (), ()))
            before, after = _with_bias(activate(sigma, z), beta), _with_bias(activate(sigma, rows), beta)
    reduced = pack(network, new_weights, new_biases)
    return Merged(reduced, compare(network, reduced, sigma, tuple(layers), x))


def _with_bias(rows: np.ndarray, beta: float) -> np.ndarray:
    return np.concatenate([rows, np.full((1, rows.shape[1]), beta)]) if beta else rows


def generators(representation: Float[np.ndarray, "n N"], activation: str | Activation) -> Float[np.ndarray, "n D"]:
    """The pairs (z zᵀ, σ(z)σ(z)ᵀ), upper triangles side by side, D = N(N+1), one row per neuron."""
    z = np.asarray(representation, float)
    h = activate(activation, z)
    i, j = np.triu_indices(z.shape[1])
    return np.concatenate([z[:, i] * z[:, j], h[:, i] * h[:, j]], axis=1)


def reduce_representation(
    representation: Float[np.ndarray, "n N"], activation: str | Activation
) -> Float[np.ndarray, "k N"]:
    """Rescaled rows of Z with the same covariances, at most as many as the cone has dimensions (Rank(K) if σ is
    linear).

    Σ_i α_i (z_i z_iᵀ, σ(z_i)σ(z_i)ᵀ) with α = 1 is a conical combination of n generators. By Carathéodory's theorem
    linearly independent generators are enough. Lawson and Hanson's active-set method for non-negative least squares
    finds such a combination, and row i becomes √α_i z_i. This uses the homogeneity of σ.
    """
    z = np.asarray(representation, float)
    if require_degree_one(activation).parity == "odd":  # σ(x) = cx: K^σ follows from K, and Rank(K) rows are enough
        _, values, rows = np.linalg.svd(z, full_matrices=False)
        return (values[:, None] * rows)[: rank_of(z)]
    norms = np.linalg.norm(z, axis=1)
    kept = norms > 0
    if not kept.any():
        return z[kept]
    unit = z[kept] / norms[kept, None]
    rows = generators(unit, activation)
    weights, _ = nnls(rows.T, (norms[kept] ** 2) @ rows, maxiter=50 * (len(rows) + rows.shape[1]))
    chosen = weights > 0
    return np.sqrt(weights[chosen])[:, None] * unit[chosen]


def rank_of(matrix: np.ndarray) -> int:
    """The numerical rank: singular values below `RANK_TOLERANCE` times the largest count as zero."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return int(np.sum(values > RANK_TOLERANCE * values[0])) if len(values) and values[0] > 0 else 0


def require_degree_one(activation: str | Activation) -> Activation:
    """The activation, which must be homogeneous of degree one."""
    sigma = activations.get(activation)
    if sigma.homogeneity != 1:
        raise ValueError(
            f"Rank_σ is defined for activations with σ(cx) = cσ(x) for c > 0; received {sigma.name!r}. Try relu, abs "
            "or linear."
        )
    return sigma
