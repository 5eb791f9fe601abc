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
from numpy.typing import ArrayLike

from understudy.activations import Activation, activate
from understudy.networks import Deep, TwoLayer
from understudy.surgery.merge import LayerMerge, Merged, compare
from understudy.surgery.parts import check_inputs, pack, require_homogeneous, unpack
from understudy.theory.ranks import reduce_representation


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
