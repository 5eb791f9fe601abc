"""Networks: parameters and forward pass, nothing else."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy import activations
from understudy.activations import Activation


class TwoLayer(eqx.Module):
    """Parameters of a two-layer network f(x) = Σ_i a_i σ(w_i·x).

    **Attributes**

    - `incoming`: the w_i, shape (n, d), or (batch, n, d) for a batch of networks.
    - `outgoing`: the a_i, shape (n,), or (n, m) for m outputs; with the same leading batch axis.

    >>> TwoLayer([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]).width
    2
    """

    incoming: Float[Array, "*batch n d"] = eqx.field(converter=lambda x: jnp.asarray(x, float))
    outgoing: Float[Array, "*batch n *m"] = eqx.field(converter=lambda x: jnp.asarray(x, float))

    @property
    def width(self) -> int:
        """Number n of hidden neurons."""
        return self.incoming.shape[-2]

    @property
    def dim(self) -> int:
        """Input dimension d."""
        return self.incoming.shape[-1]

    def __call__(self, x: Float[Array, "*samples d"], activation: str | Activation) -> Float[Array, "*samples *m"]:
        """The network's output for inputs x, with that activation."""
        sigma = activations.get(activation)
        return jnp.tensordot(sigma(x @ self.incoming.T), self.outgoing, axes=1)
