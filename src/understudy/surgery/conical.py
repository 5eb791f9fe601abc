"""Reducing every hidden layer to as many neurons as its covariances need: Prop. 7 and 8 of Jacot et al. 2022, constructively.

For N inputs and a σ with σ(cx) = cσ(x), c > 0, the covariances (K_ℓ, K_ℓ^σ) of a layer are a conical combination of at most N(N+1) of its own
neurons. Those, rescaled, are new pre-activations Z_ℓ with the same covariances; W_ℓ = Z_ℓ (Z_{ℓ-1}^σ)⁺ are weights for them, and

    Σ_ℓ ‖W_ℓ‖² = Σ_ℓ Tr[K_ℓ (K_{ℓ-1}^σ)⁺]

depends on covariances only, so it is at most the norm before.
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
    """A network with the same hidden covariances and outputs on the data, at most N(N+1) neurons per layer and no larger norm.

    Off the data its function is another one. `rcond` is where singular values of activations count as zero in the pseudo-inverses;
    the outputs are as exact as the activations of the layers are well conditioned, and the report says how exact.
    """
    sigma = require_homogeneous(activation)
    weights, biases = unpack(network)
    x = check_inputs(inputs, weights[0].shape[1])
    beta = float(isinstance(network, Deep))  # a two-layer network has no biases, which is β = 0
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
