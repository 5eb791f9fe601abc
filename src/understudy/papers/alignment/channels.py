"""Structured pruning of convolutional networks: whole channels are taken out, the weakest first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.networks.convolutional import Convolutional


def fan_out(network: Convolutional) -> list[np.ndarray]:
    """Of every channel of every layer the mean absolute weight that leaves it: how strong a node it is."""
    found = [np.abs(np.asarray(k)).mean(axis=(0, 1, 3)) for k in network.kernels[1:]]
    channels = network.kernels[-1].shape[3]
    found.append(np.abs(np.asarray(network.weight)).reshape(len(network.weight), -1, channels).mean(axis=(0, 1)))
    return found


def keep_channels(network: Convolutional, kept: Sequence[Sequence[int] | np.ndarray]) -> Convolutional:
    """The network of these channels of each layer, with all that enters and leaves the others taken out."""
    if len(kept) != len(network.kernels) or any(not len(chosen) for chosen in kept):
        raise ValueError(
            f"Of each of {len(network.kernels)} layers some channels are kept; received {[list(k) for k in kept]}."
        )
    before = np.arange(network.kernels[0].shape[2])
    kernels, biases = [], []
    for kernel, bias, chosen in zip(network.kernels, network.biases, kept, strict=True):
        after = np.asarray(chosen)
        kernels.append(kernel[:, :, before][:, :, :, after])
        biases.append(bias[after])
        before = after
    channels = network.kernels[-1].shape[3]
    weight = network.weight.reshape(len(network.weight), -1, channels)[:, :, before].reshape(len(network.weight), -1)
    return Convolutional(tuple(kernels), tuple(biases), weight, network.bias)


def prune_channels(network: Convolutional, share: float) -> tuple[Convolutional, list[np.ndarray]]:
    """Keep the strongest channels of each layer by `fan_out`, dropping that share of them; returns which were kept
    too.
    """
    if not 0 <= share < 1:
        raise ValueError(f"The share of channels to drop is at least 0 and below 1; received {share}.")
    kept = []
    for strength in fan_out(network):
        count = max(len(strength) - int(share * len(strength)), 1)
        kept.append(np.sort(np.argsort(-strength, kind="stable")[:count]))
    return keep_channels(network, kept), kept
