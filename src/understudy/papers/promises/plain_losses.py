"""Losses written a second time, plainly and for automatic differentiation: nothing here uses the engine's formulas.

Each is a function of a flat vector in the order of the task it stands for. They serve as the other route to a Hessian.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

PARALLEL = 1e-12
"""1 - |cosine| below which two ReLU neurons count as parallel: the angle φ enters the loss by φ³, the Hessian by φ."""


def erf_pairs(squares: Array, dots: Array) -> Array:
    """E[σ(p·x)σ(q·x)] = (2/π) asin(p·q/√((1 + p²)(1 + q²))) for σ(x) = erf(x/√2)."""
    stretched = 1 + squares
    return 2 / math.pi * jnp.arcsin(dots / jnp.sqrt(stretched[:, None] * stretched[None, :]))


def relu_pairs(squares: Array, dots: Array) -> Array:
    """‖p‖‖q‖(sin φ + (π - φ) cos φ)/2π for the angle φ, which is p·q/2 at φ = 0 and 0 at φ = π."""
    norms = jnp.sqrt(squares[:, None] * squares[None, :])
    cosine = dots / norms
    parallel = 1 - jnp.abs(cosine) < PARALLEL
    safe = jnp.where(parallel, 0.0, cosine)
    apart = norms / (2 * math.pi) * (jnp.sqrt(1 - safe**2) + (math.pi - jnp.arccos(safe)) * safe)
    return jnp.where(parallel, jnp.where(dots > 0, dots / 2, 0.0), apart)


def quadratic_pairs(squares: Array, dots: Array) -> Array:
    """E[(p·x)²(q·x)²] = p²q² + 2 (p·q)²."""
    return squares[:, None] * squares[None, :] + 2 * dots**2


class PlainPopulation(eqx.Module):
    """Σ_ij c_i·c_j G(x_i, x_j) over students and teachers alike, teachers with negative weights; θ = (w_1, a_1) ⊕ …"""

    teachers: Float[Array, "k d"]
    weights: Float[Array, "k m"]
    covariance: Float[Array, "d d"]
    fixed: Float[Array, "n m"] | None
    pairs: Callable[[Array, Array], Array] = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __call__(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        rows = vector.reshape(self.width, -1)
        dim = self.teachers.shape[1]
        outgoing = rows[:, dim:] if self.fixed is None else self.fixed
        vectors = jnp.concatenate([rows[:, :dim], self.teachers])
        weights = jnp.concatenate([outgoing, -self.weights])
        dots = vectors @ self.covariance @ vectors.T
        return jnp.sum((weights @ weights.T) * self.pairs(jnp.diagonal(dots), dots))


class PlainSamples(eqx.Module):
    """Σ_s p_s cost(f(x_s) - y_s) + λ‖θ‖² of fully connected layers, by a forward pass for each sample.

    `layout`: `"neurons"` (w_1, a_1) ⊕ (w_2, a_2) ⊕ …, `"layers"` all incoming and then all outgoing weights of a
    two-layer network, `"deep"` all weight matrices and then all biases, `"rows"` weight matrices whose last column
    multiplies 1.
    """

    inputs: Float[Array, "N d"]
    targets: Float[Array, "N m"]
    shares: Float[Array, " N"]
    penalty: float
    sigma: Callable[[Array], Array] = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True)
    layout: str = eqx.field(static=True)
    cost: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        outputs = jax.vmap(lambda x: self._forward(vector, x))(self.inputs)
        return jnp.dot(self.shares, jnp.sum(self.cost(outputs - self.targets), axis=1)) + self.penalty * jnp.dot(
            vector, vector
        )

    def _forward(self, vector: Array, x: Array) -> Array:
        matrices, biases = self._matrices(vector)
        for matrix, bias in zip(matrices[:-1], biases[:-1], strict=True):
            x = self.sigma(matrix @ x + bias)
        return matrices[-1] @ x + biases[-1]

    def _matrices(self, vector: Array) -> tuple[list[Array], list[Array]]:
        pairs = list(zip(self.widths[:-1], self.widths[1:], strict=True))
        none = [jnp.zeros(after) for _, after in pairs]
        if self.layout == "neurons":
            rows = vector.reshape(self.widths[1], -1)
            return [rows[:, : self.widths[0]], rows[:, self.widths[0] :].T], none
        if self.layout == "layers":
            cut = self.widths[0] * self.widths[1]
            return [vector[:cut].reshape(self.widths[1], -1), vector[cut:].reshape(self.widths[1], -1).T], none
        extra = 1 if self.layout == "rows" else 0
        sizes = [after * (before + extra) for before, after in pairs]
        sizes += [] if extra else [after for _, after in pairs]
        parts = jnp.split(vector, np.cumsum(sizes)[:-1])
        matrices = [part.reshape(after, -1) for part, (_, after) in zip(parts, pairs, strict=False)]
        if extra:
            return [m[:, :-1] for m in matrices], [m[:, -1] for m in matrices]
        return matrices, parts[len(pairs) :]


class PlainSphere(eqx.Module):
    """½ r Σ (x_i·x_j)^ρ - Σ (x_i·v_j)^ρ + ½ Σ (v_i·v_j)^ρ of rows scaled to norm 1: each row's length is one more zero
    mode."""

    teachers: Float[Array, "k d"]
    repulsion: float
    degree: int = eqx.field(static=True)

    def __call__(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        rows = vector.reshape(-1, self.teachers.shape[1])
        rows = rows / jnp.sqrt(jnp.sum(rows**2, axis=1, keepdims=True))
        students, both, own = rows @ rows.T, rows @ self.teachers.T, self.teachers @ self.teachers.T
        terms = [self.repulsion / 2 * students**self.degree, -(both**self.degree)]
        constant = jnp.sum(own**self.degree) / 2 if self.repulsion else 0.0
        return jnp.sum(terms[0]) + jnp.sum(terms[1]) + constant


def square_cost(gap: Array) -> Array:
    """The squared distance, an output at a time."""
    return gap**2


def log_cosh_cost(gap: Array) -> Array:
    """log cosh, an output at a time."""
    return jnp.logaddexp(gap, -gap) - math.log(2)


def softplus(x: Array) -> Array:
    """log(1 + e^x)."""
    return jnp.logaddexp(x, 0.0)


def gelu(x: Array) -> Array:
    """xΦ(x)."""
    return x * (1 + erf(x)) / 2


def erf(x: Array) -> Array:
    """erf(x/√2)."""
    return jax.scipy.special.erf(x / math.sqrt(2))


def relu(x: Array) -> Array:
    """max(x, 0)."""
    return jnp.maximum(x, 0.0)


def half_tanh(x: Array) -> Array:
    """tanh(x/2)."""
    return jnp.tanh(x / 2)


SIGMAS: dict[str, Callable[[Array], Array]] = {
    "softplus": softplus,
    "tanh": jnp.tanh,
    "tanh:0.5": half_tanh,
    "gelu": gelu,
    "erf": erf,
    "relu": relu,
}
PAIRS = {"erf": erf_pairs, "relu": relu_pairs, "quadratic": quadratic_pairs}


def plane_grid(step: float = 0.25, reach: float = 8.5) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the trapezoidal rule for x ~ N(0, I) in the plane.

    Its error is exp(-2π b/step) for integrands analytic within b of the real line, and exp(-reach²/2) for the tails:
    below 1e-15 for neurons with b ≥ 1.4.
    """
    line = np.arange(-reach, reach + step / 2, step)
    first, second = np.meshgrid(line, line, indexing="ij")
    points = np.stack([first.ravel(), second.ravel()], axis=1)
    weights = step**2 / (2 * math.pi) * np.exp(-np.sum(points**2, axis=1) / 2)
    kept = weights > 1e-20
    return points[kept], weights[kept]
