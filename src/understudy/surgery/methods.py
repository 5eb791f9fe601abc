"""The ways to merge neurons of a network, by name, and the change of its outputs on inputs that a merge has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from understudy.activations import Activation
from understudy.networks import Deep, TwoLayer
from understudy.surgery.conical import reduce_by_covariance
from understudy.surgery.merge import Merged, compare, merge
from understudy.surgery.one_dimensional import merge_by_activity
from understudy.surgery.parts import check_inputs, unpack

METHODS = ("weights", "activations", "activity", "covariance")

MOST = 20
"""`"covariance"` keeps up to N(N+1) neurons per layer. If that is more than this multiple of the widest layer, the merge
is expensive and gains nothing."""

DRAWS = 1000
"""Inputs on which the change elsewhere is measured."""


def merge_by(
    method: str,
    network: TwoLayer | Deep,
    activation: str | Activation,
    inputs: ArrayLike | None = None,
    tolerance: float = 1e-6,
) -> Merged:
    """Merge by `merge` (weights, activations), `merge_by_activity` (activity) or `reduce_by_covariance` (covariance).

    The change is measured on the inputs, if there are any. All methods but `"weights"` need inputs, and keep the
    outputs on these only. `tolerance` is for weights and activations.
    """
    if method == "weights":
        merged = merge(network, activation, tolerance=tolerance)
        if inputs is None:
            return merged
        x = check_inputs(inputs, unpack(network)[0][0].shape[1])
        return Merged(merged.network, compare(network, merged.network, activation, merged.report.layers, x))
    if method not in METHODS or inputs is None:
        raise ValueError(
            f"Methods are {', '.join(METHODS)}, and all but the first need inputs; received {method!r} and "
            f"{'no' if inputs is None else np.shape(inputs)} inputs."
        )
    if method == "activations":
        return merge(network, activation, inputs=inputs, tolerance=tolerance)
    if method == "activity":
        return merge_by_activity(network, inputs, activation)
    count, widest = len(np.asarray(inputs)), max(len(w) for w in unpack(network)[0][:-1])
    if count * (count + 1) > MOST * widest:
        raise ValueError(
            f"Merging by covariance keeps at most N(N+1) = {count * (count + 1)} neurons per layer for N = {count} "
            f"inputs, and the widest layer has {widest}. Give fewer inputs, or use understudy compress."
        )
    return reduce_by_covariance(network, activation, inputs)


def change_elsewhere(
    network: TwoLayer | Deep, merged: Merged, activation: str | Activation, inputs: ArrayLike
) -> float:
    """Relative change on inputs that the merge has not seen: normal, with the means and spreads of the given ones."""
    seen = np.asarray(inputs, float)
    x = seen.mean(axis=0) + seen.std(axis=0) * np.random.default_rng(0).normal(size=(DRAWS, seen.shape[1]))
    return compare(network, merged.network, activation, merged.report.layers, x).relative_change
