"""Merge neurons that are active on the same data, at most 4N for N scalar inputs (Prop. 15 of Jacot et al. 2022).

Each neuron of a ReLU network f(x) = b + Σ_k a_k σ(c_k·x + d_k) with one output is linear on the data on which it is
active. Neurons that are active on the same data and have outgoing weights of the same sign are replaced by one with

    ã c̃ = Σ_k a_k c_k,    ã d̃ = Σ_k a_k d_k,    ã² = ‖c̃‖² + d̃²

(App. D.2). The new pre-activation is a positive combination of the old ones, so it has their signs on the data and the
outputs there stay the same. The norm cannot rise: 2ã² = 2‖Σ_k a_k (c_k, d_k)‖ ≤ Σ_k (a_k² + ‖c_k‖² + d_k²). None of
this needs scalar inputs; only the count does. The active set of a neuron with scalar input is everything to the right
or to the left of its cusp -d/c. N distinct inputs give 2(N - 1) such sets and the whole data, each with two signs of a,
so at most 4N - 2 neurons remain. (The proof counts neurons with cusps outside the data by the side on which the cusp
lies, and so arrives at 4N.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation
from understudy.networks import Deep, TwoLayer
from understudy.surgery.merge import LayerMerge, Merged, compare
from understudy.surgery.parts import check_inputs, pack, unpack


def most_neurons(inputs: ArrayLike) -> int:
    """4N - 2: the most neurons that `merge_one_dimensional` leaves for N distinct scalar inputs (Prop. 15 says 4N).

    >>> most_neurons([0.0, 1.0, 1.0])
    6
    """
    return 4 * len(np.unique(np.asarray(inputs, float))) - 2


def merge_one_dimensional(network: TwoLayer | Deep, inputs: ArrayLike, activation: str | Activation = "relu") -> Merged:
    """Reduce a two-layer ReLU network with one input and one output to at most 4N neurons, keeping outputs on the data.

    **Arguments**

    - `network`: a `Deep` network of depth 2 (with biases) or a `TwoLayer` without biases, trained or not.
    - `inputs`: the N scalar inputs, shape (N,) or (N, 1). Between them the function may change.

    >>> net = Deep.glorot([1, 50, 1], seed=0, bias=1.0)
    >>> merged = merge_one_dimensional(net, [-1.0, 0.0, 0.5])
    >>> merged.report.after <= 12, merged.report.norm_after <= merged.report.norm_before
    (True, True)
    """
    dim = unpack(network)[0][0].shape[1]
    if dim != 1:
        raise ValueError(
            f"The count of Prop. 15 is for scalar inputs; received dimension {dim}. Use merge_by_activity."
        )
    x = np.asarray(inputs, float)
    return merge_by_activity(network, x[:, None] if x.ndim == 1 else x, activation)


def merge_by_activity(network: TwoLayer | Deep, inputs: ArrayLike, activation: str | Activation = "relu") -> Merged:
    """Like `merge_one_dimensional`, for inputs (N, d) of any dimension: one neuron per active set and outgoing sign."""
    sigma = activations.get(activation)
    weights, biases = unpack(network)
    if sigma.name != "relu" or len(weights) != 2 or len(weights[1]) != 1:
        raise ValueError(
            "Merging by activity is for ReLU networks with one hidden layer and one output; received "
            f"{sigma.name!r}, {len(weights) - 1} hidden layers and {len(weights[-1])} outputs."
        )
    x = check_inputs(inputs, weights[0].shape[1])
    rows = np.concatenate([weights[0], biases[0][:, None]], axis=1)
    outgoing = weights[1][0]
    active = x @ weights[0].T + biases[0] > 0
    groups: dict[tuple[bytes, bool], list[int]] = {}
    silent = []
    for k in range(len(rows)):
        if not active[:, k].any() or outgoing[k] == 0:
            silent.append(k)
        else:
            groups.setdefault((active[:, k].tobytes(), bool(outgoing[k] > 0)), []).append(k)
    new_rows, new_outgoing = np.zeros((len(groups), rows.shape[1])), np.zeros(len(groups))
    for r, ((_, positive), members) in enumerate(groups.items()):
        product = np.abs(outgoing[members]) @ rows[members]
        size = np.sqrt(np.linalg.norm(product))
        new_rows[r], new_outgoing[r] = product / size, size if positive else -size
    merged = pack(network, [new_rows[:, :-1], new_outgoing[None]], [new_rows[:, -1], biases[1]])
    joined = tuple(tuple(g) for g in groups.values() if len(g) > 1)
    layer = LayerMerge(1, len(rows), len(groups), joined, tuple(silent))
    return Merged(merged, compare(network, merged, sigma, (layer,), x))
