"""Functions of one to six variables as tasks: polynomials and plateaus in bent coordinates.

With y = B(A (x - p)/s), A any invertible matrix and B a triangular map with B'(0) = I, the function c F(y) has at x = p
the nature that F has at 0, exactly, whatever rounding does to the numbers in A, B, p, s and c.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from understudy.tasks.task import Task

HIGHEST = 16
"""Highest power of a variable."""

TERMS = 16
"""Terms of a polynomial; fewer are filled up with zeros, so that one compiled program serves all of one size."""

PLATEAUS = ("exp(-y)", "-1/y", "exp(-y²)", "1/y²", "1/(1 + y²)", "log(1 + exp(-y))", "-tanh(y)", "1/√y")
"""Functions of y > 0 that run out flat: none has a critical point there."""


class Bent(Task):
    """Bent coordinates y of x, shared by all functions here."""

    center: Float[Array, " n"]
    matrix: Float[Array, "n n"]
    bends: Float[Array, "n n"]
    length: Float[Array, ""]
    unit: Float[Array, ""]

    @property
    def size(self) -> int:
        """Number of variables."""
        return self.center.shape[0]

    def flatten(self, parameters: Array) -> Float[Array, "*batch n"]:
        """A point is its own vector."""
        return jnp.asarray(parameters, float)

    def unflatten(self, vector: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """A vector is its own point."""
        return vector

    def coordinates(self, vector: Float[Array, " n"]) -> Float[Array, " n"]:
        """y_i = z_i + Σ_{j<i} b_ij z_j² with z = A(x - p)/s."""
        z = self.matrix @ ((vector - self.center) / self.length)
        return z + jnp.tril(self.bends, -1) @ z**2


class Polynomial(Bent):
    """Σ_t c_t Π_i y_i^(e_ti), times a unit."""

    coefficients: Float[Array, " terms"]
    exponents: Int[Array, "terms n"]

    def value(self, vector: Float[Array, " n"]) -> Float[Array, ""]:
        """The polynomial; powers by repeated multiplication."""
        y = self.coordinates(vector)
        powers = [jnp.ones_like(y)]
        for _ in range(HIGHEST):
            powers.append(powers[-1] * y)
        table = jnp.stack(powers, axis=1)
        factors = table[jnp.arange(self.size)[None, :], self.exponents]
        return self.unit * jnp.sum(self.coefficients * jnp.prod(factors, axis=1))


class Plateau(Bent):
    """A function of y_1 + `far` that runs out flat, plus ½ Σ y_i² of the other variables, plus a constant."""

    far: Float[Array, ""]
    constant: Float[Array, ""]
    which: int = eqx.field(static=True)

    def value(self, vector: Float[Array, " n"]) -> Float[Array, ""]:
        """One of `PLATEAUS`."""
        y = self.coordinates(vector)
        x = y[0] + self.far
        name = PLATEAUS[self.which]
        heights = {
            "exp(-y)": lambda: jnp.exp(-x),
            "-1/y": lambda: -1 / x,
            "exp(-y²)": lambda: jnp.exp(-(x**2)),
            "1/y²": lambda: 1 / x**2,
            "1/(1 + y²)": lambda: 1 / (1 + x**2),
            "log(1 + exp(-y))": lambda: jnp.logaddexp(0.0, -x),
            "-tanh(y)": lambda: -jnp.tanh(x),
            "1/√y": lambda: 1 / jnp.sqrt(x),
        }
        return self.unit * (self.constant + heights[name]() + jnp.sum(y[1:] ** 2) / 2)


def coordinates(
    rng: np.random.Generator,
    n: int,
    *,
    bent: bool = True,
    at_zero: bool = False,
    unit: float = 1.0,
    length: float = 1.0,
) -> dict[str, Array]:
    """Random coordinates: a random rotation, bends of order one, a centre of the order of `length`."""
    rotation = np.linalg.qr(rng.normal(size=(n, n)))[0]
    center = np.zeros(n) if at_zero else length * rng.normal(size=n)
    bends = rng.normal(size=(n, n)) if bent else np.zeros((n, n))
    names = ("center", "matrix", "bends", "length", "unit")
    return {k: jnp.asarray(v, float) for k, v in zip(names, (center, rotation, bends, length, unit), strict=True)}


def polynomial(terms: list[tuple[float, tuple[int, ...]]], **place: Array) -> Polynomial:
    """The polynomial with these terms (coefficient, exponents of the first variables)."""
    n = place["center"].shape[0]
    if len(terms) > TERMS or any(max(e, default=0) > HIGHEST or len(e) > n for _, e in terms):
        raise ValueError(f"At most {TERMS} terms of powers up to {HIGHEST} in {n} variables; received {terms}.")
    coefficients, exponents = np.zeros(TERMS), np.zeros((TERMS, n), int)
    for t, (coefficient, powers) in enumerate(terms):
        coefficients[t] = coefficient
        exponents[t, : len(powers)] = powers
    return Polynomial(**place, coefficients=jnp.asarray(coefficients), exponents=jnp.asarray(exponents))
