"""Convolutional ReLU networks: 3 × 3 kernels without padding, then one linear layer. Parameters, forward pass, and structured pruning of channels."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Convolutional(eqx.Module):
    """f = W σ(K_L * … σ(K_1 * x + b_1) …) + b, the last activations flattened, position by position and channel by channel.

    `kernels[l]` has shape (3, 3, channels before, channels after); images are (B, H, W, channels).
    """

    kernels: tuple[Float[Array, "3 3 _ _"], ...]
    biases: tuple[Float[Array, " _"], ...]
    weight: Float[Array, "C features"]
    bias: Float[Array, " C"]

    def hidden(self, images: Float[Array, "B H W c"]) -> list[Float[Array, "B _ _ _"]]:
        """Activations of every layer, the first first."""
        found, x = [], images
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            z = convolve(x, kernel)
            x = jax.nn.relu(z + jnp.broadcast_to(bias, z.shape))
            found.append(x)
        return found

    def __call__(self, images: Float[Array, "B H W c"]) -> Float[Array, "B C"]:
        """Outputs."""
        last = self.hidden(images)[-1]
        z = last.reshape(len(last), -1) @ self.weight.T
        return z + jnp.broadcast_to(self.bias, z.shape)

    @staticmethod
    def start(channels: Sequence[int], outputs: int, *, size: int, colours: int = 3, seed: int = 0) -> Convolutional:
        """He-normal kernels, N(0, 2/fan-in), biases 0 and a linear layer N(0, 1/fan-in), for square images of that size."""
        left = size - 2 * len(channels)
        if left < 1 or not channels or min(channels) < 1:
            raise ValueError(
                f"{len(channels)} layers of 3 × 3 kernels leave nothing of {size} × {size} images, or a layer has no channel; received channels {list(channels)}."
            )
        rng = np.random.default_rng(seed)
        kernels, before = [], colours
        for after in channels:
            kernels.append(jnp.asarray(rng.normal(size=(3, 3, before, after)) * np.sqrt(2 / (9 * before))))
            before = after
        features = left**2 * before
        weight = jnp.asarray(rng.normal(size=(outputs, features)) / np.sqrt(features))
        return Convolutional(tuple(kernels), tuple(jnp.zeros(n) for n in channels), weight, jnp.zeros(outputs))


def convolve(images: Float[Array, "B H W c"], kernel: Float[Array, "3 3 c n"]) -> Float[Array, "B _ _ n"]:
    """The valid 3 × 3 correlation as one matrix product over all patches, fast in float64 where compiled convolutions are not."""
    height, width = images.shape[1] - 2, images.shape[2] - 2
    patches = [images[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return jnp.concatenate(patches, axis=3) @ kernel.reshape(-1, kernel.shape[3])


def squared_error(
    network: Convolutional, images: Float[Array, "B H W c"], targets: Float[Array, "B C"]
) -> Float[Array, ""]:
    """½ mean ‖f* - f‖² over a batch."""
    return 0.5 * jnp.mean(jnp.sum((network(images) - targets) ** 2, axis=1))


def cross_entropy(
    network: Convolutional, images: Float[Array, "B H W c"], labels: Int[Array, " B"]
) -> Float[Array, ""]:
    """Mean cross-entropy of the softmax of the outputs."""
    scores = jax.nn.log_softmax(network(images))
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


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
    """Keep the strongest channels of each layer by `fan_out`, dropping that share of them; returns which were kept too."""
    if not 0 <= share < 1:
        raise ValueError(f"The share of channels to drop is at least 0 and below 1; received {share}.")
    kept = []
    for strength in fan_out(network):
        count = max(len(strength) - int(share * len(strength)), 1)
        kept.append(np.sort(np.argsort(-strength, kind="stable")[:count]))
    return keep_channels(network, kept), kept
