"""Convolutional ReLU networks: 3 × 3 kernels without padding, then one linear layer."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Convolutional(eqx.Module):
    """f = W σ(K_L * … σ(K_1 * x + b_1) …) + b, with the last activations flattened by position, then by channel.

    `kernels[l]` has shape (3, 3, channels before, channels after); images are (B, H, W, channels).
    """

    kernels: tuple[Float[Array, "3 3 _ _"], ...]
    biases: tuple[Float[Array, " _"], ...]
    weight: Float[Array, "C features"]
    bias: Float[Array, " C"]

    def hidden(self, images: Float[Array, "B H W c"]) -> list[Float[Array, "B _ _ _"]]:
        """Activations of every layer, starting with the first."""
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
    def start(channels: Sequence[int], outputs: int, *, size: int, colours: int = 3, seed: int = 0) -> "Convolutional":
        """He-normal kernels, N(0, 2/fan-in), zero biases and a linear layer N(0, 1/fan-in), for square images."""
        left = size - 2 * len(channels)
        if left < 1 or not channels or min(channels) < 1:
            raise ValueError(
                f"{size} × {size} images are too small for {len(channels)} layers of 3 × 3 kernels, or a layer has no "
                f"channel; received channels {list(channels)}."
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
    """The valid 3 × 3 correlation as one matrix product over all patches.

    This is fast in float64, where compiled convolutions are slow.
    """
    height, width = images.shape[1] - 2, images.shape[2] - 2
    patches = [images[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return jnp.concatenate(patches, axis=3) @ kernel.reshape(-1, kernel.shape[3])
