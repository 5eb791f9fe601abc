"""The expectation of two neurons and its partial derivatives, which losses, gradients and Hessians need."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

TERMS: tuple[tuple[float, int, int], ...] = (
    (1.0, 0, 0),
    (0.5, 2, 0),
    (1.0, 1, 1),
    (0.5, 0, 2),
    (0.25, 4, 0),
    (0.5, 3, 1),
    (1.0, 2, 2),
    (0.5, 1, 3),
    (0.25, 0, 4),
)
"""The nine expectations of `Partials`: factor and orders of the two derivatives."""

BIASED_TERMS = (*TERMS, (1.0, 1, 0), (1.0, 0, 1), (0.5, 3, 0), (1.0, 2, 1), (1.0, 1, 2), (0.5, 0, 3))
"""The fifteen of `BiasedPartials`."""


class Covariance(NamedTuple):
    """Covariance of the two pre-activations x and y, with its determinant.

    `determinant` = q11 q22 - q12² is a separate entry, because for nearly parallel neurons it cannot be recovered from
    the other three. The caller knows the angle or the vectors, and so the determinant to full relative precision.
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


class BiasedPartials(NamedTuple):
    r"""G = E[σ1(m1 + x) σ2(m2 + y)] and its partial derivatives by the covariance of (x, y) and by the means m1, m2.

    The first nine are those of `Partials`. A mean shifts the argument, so the others are m1 = E[σ1'σ2], m2 = E[σ1σ2'],
    q11m1 = ½E[σ1^(3)σ2], q12m1 = E[σ1''σ2'], q12m2 = E[σ1'σ2''], q22m2 = ½E[σ1σ2^(3)]; and ∂²G/∂m1² = 2 q11,
    ∂²G/∂m1∂m2 = q12, ∂²G/∂m2² = 2 q22, ∂²G/∂q11∂m2 = ½ q12m1, ∂²G/∂q22∂m1 = ½ q12m2.
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
    m1: Float[Array, "*shape"]
    m2: Float[Array, "*shape"]
    q11m1: Float[Array, "*shape"]
    q12m1: Float[Array, "*shape"]
    q12m2: Float[Array, "*shape"]
    q22m2: Float[Array, "*shape"]

    @staticmethod
    def from_expectations(e: Mapping[tuple[int, int], Array]) -> "BiasedPartials":
        """From E[σ1^(i) σ2^(j)] by (i, j), with the factors in front."""
        return BiasedPartials(*(e[i, j] if factor == 1 else factor * e[i, j] for factor, i, j in BIASED_TERMS))

    def swapped(self) -> "BiasedPartials":
        """The same expectation with the roles of the two neurons exchanged."""
        nine = Partials(*self[:9]).swapped()
        return BiasedPartials(*nine, self.m2, self.m1, self.q22m2, self.q12m2, self.q12m1, self.q11m1)


class SelfPartials(NamedTuple):
    """D(q) = E[σ(√q z)²] of one neuron with itself, D'(q) and D''(q)."""

    value: Float[Array, "*shape"]
    q: Float[Array, "*shape"]
    qq: Float[Array, "*shape"]


class BiasedSelfPartials(NamedTuple):
    """D(q, m) = E[σ(m + √q z)²] of one neuron with itself, D_q, D_qq, D_m and D_qm; the second by m is D_mm = 2 D_q."""

    value: Float[Array, "*shape"]
    q: Float[Array, "*shape"]
    qq: Float[Array, "*shape"]
    m: Float[Array, "*shape"]
    qm: Float[Array, "*shape"]


class Estimated(NamedTuple):
    """Partials with, entry by entry, an upper estimate of their error.

    `size` is the sum of the absolute values of the summands of each entry. If it is much larger than the entry, the
    entry is a small difference of large numbers.
    """

    partials: Any  # Partials, or BiasedPartials where there are biases
    error: Any
    size: Any

    def swapped(self) -> "Estimated":
        """The same with the roles of the two neurons exchanged."""
        return Estimated(*(p.swapped() for p in self))
