"""What convolutional students and their teacher are trained on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from understudy.networks.convolutional import Convolutional


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
