"""What losses, gradients and Hessians need to know of two neurons: an expectation and its partial derivatives."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


class Covariance(NamedTuple):
    """Covariance of the two pre-activations x and y, with its determinant carried along.

    `determinant` = q11 q22 - q12² is a separate entry because near parallel neurons it cannot be recovered from the
    other three: whoever knows the angle or the vectors knows it to full relative precision.
    """

    q11: Float[Array, "*shape"]
    q12: Float[Array, "*shape"]
    q22: Float[Array, "*shape"]
    determinant: Float[Array, "*shape"]

    def swapped(self) -> "Covariance":
        """The covariance of (y, x)."""
        return Covariance(self.q22, self.q12, self.q11, self.determinant)

    @staticmethod
    def from_correlation(r1: Array, r2: Array, u: Array) -> "Covariance":
        """From norms and correlation: q11 = r1², q22 = r2², q12 = r1 r2 u, determinant (r1 r2)² (1-u)(1+u)."""
        r1, r2, u = jnp.broadcast_arrays(r1, r2, u)
        return Covariance(r1**2, r1 * r2 * u, r2**2, (r1 * r2) ** 2 * ((1 - u) * (1 + u)))


class Partials(NamedTuple):
    r"""G = E[σ1(x) σ2(y)] and its partial derivatives with respect to the covariance of (x, y).

    Gaussian densities solve the heat equation, so derivatives with respect to the covariance are expectations of
    derivatives of the activations (Price's theorem; for q12 this is Lemma F.1 of Simsek et al. 2023):

    q11 = ½E[σ1''σ2], q12 = E[σ1'σ2'], q22 = ½E[σ1σ2''], q11q11 = ¼E[σ1''''σ2], q11q12 = ½E[σ1'''σ2'],
    q12q12 = E[σ1''σ2''] (and ∂²G/∂q11∂q22 is a quarter of it), q12q22 = ½E[σ1'σ2'''], q22q22 = ¼E[σ1σ2''''].
    """

    value: Float[Array, "*shape"]
    q11: Float[Array, "*shape"]
    q12: Float[Array, "*shape"]
    q22: Float[Array, "*shape"]
    q11q11: Float[Array, "*shape"]
    q11q12: Float[Array, "*shape"]
    q12q12: Float[Array, "*shape"]
    q12q22: Float[Array, "*shape"]
    q22q22: Float[Array, "*shape"]

    def swapped(self) -> "Partials":
        """The same expectation with the roles of the two neurons exchanged."""
        return Partials(
            self.value,
            self.q22,
            self.q12,
            self.q11,
            self.q22q22,
            self.q12q22,
            self.q12q12,
            self.q11q12,
            self.q11q11,
        )


class SelfPartials(NamedTuple):
    """D(q) = E[σ(√q z)²] of one neuron with itself, D'(q) and D''(q)."""

    value: Float[Array, "*shape"]
    q: Float[Array, "*shape"]
    qq: Float[Array, "*shape"]


class Estimated(NamedTuple):
    """Partials with, entry by entry, an upper estimate of their error.

    `size` is the sum of the absolute values of the summands each entry was added up from: where it is much larger than
    the entry, the entry is a small difference of large numbers.
    """

    partials: Partials
    error: Partials
    size: Partials

    def swapped(self) -> "Estimated":
        """The same with the roles of the two neurons exchanged."""
        return Estimated(*(p.swapped() for p in self))
