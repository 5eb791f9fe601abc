r"""E[σ'(x_i)σ'(x_j)σ(x_l)σ(x_m)] for smooth neurons, by quadrature on lines and Mehler's formula.

Two nodes z = (z_1, z_2) give x_i and x_j. Given them, x_l = μ_l(z) + s_l ζ_l with correlated Gaussians ζ, and
E[σ(x_l)σ(x_m) | z] = Σ_p ρ_lm^p H_lp(z) H_mp(z), H_lp = E_ζ[σ(μ_l + s_l ζ) h_p(ζ)], h_p = He_p/√p! (Mehler 1866). So
four Gaussians cost lines of nodes, not planes: about N⁴M/2 + N³M² operations for each pair (i, j), N nodes and M
neurons.

Polynomials of degree D: Gauss-Hermite rules, exact from 2D nodes on. Others: the trapezoid rule on [-6.5, 6.5], cut
where the density is below 1e-10. If σ is analytic in the strip |Im x| < a = π/(2 steepness), the error falls like
exp(-2πa/(norm × step)); the four factors may have their poles at one place, which costs about (2π/step)⁵/5! in front.
"""

import math
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from understudy.activations import Activation, PiecewiseLinear, Polynomial

_REACH = 6.5


@lru_cache(maxsize=16)
def _rule(nodes: int, exact: bool) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and their weights under N(0, 1): Gauss-Hermite if `exact`, else the trapezoid rule."""
    if exact:
        x, weights = np.polynomial.hermite_e.hermegauss(nodes)
        return x, weights / math.sqrt(2 * math.pi)
    x = np.linspace(-_REACH, _REACH, nodes)
    return x, (x[1] - x[0]) * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


@lru_cache(maxsize=16)
def _transform(nodes: int, exact: bool) -> tuple[np.ndarray, np.ndarray]:
    """Inner nodes, and their weights times h_p at the nodes, for as many p as nodes: a Gauss rule is exact at ρ = 1."""
    count = nodes if exact else 3 * nodes // 4  # inner integrands have fewer factors with poles
    x, weights = _rule(count, exact)
    basis = [np.ones_like(x), x]
    for p in range(1, count - 1):
        basis.append((x * basis[p] - math.sqrt(p) * basis[p - 1]) / math.sqrt(p + 1))
    return x, weights[:, None] * np.stack(basis, axis=1)


def quadrature_averages(
    c: Float[Array, "M M"],
    i: Int[Array, ""],
    j: Int[Array, ""],
    students: int,
    student: Activation,
    teacher: Activation,
    nodes: int,
) -> Float[Array, "M M"]:
    """The averages for one pair (i, j) and every (l, m); the first `students` neurons have the student's activation."""
    exact = _is_polynomial(student) and _is_polynomial(teacher)
    x, weights = _rule(nodes, exact)
    inner, transform = _transform(nodes, exact)
    z1, z2 = (jnp.asarray(z.ravel()) for z in np.meshgrid(x, x, indexing="ij"))
    weight = jnp.asarray(np.outer(weights, weights).ravel())
    first = _over_root(c[i], c[i, i], c[i, i])
    rest = c - first[:, None] * first[None, :]
    second = _over_root(rest[j], rest[j, j], c[j, j])
    rest = rest - second[:, None] * second[None, :]
    spread, rho = _correlations(rest, jnp.diagonal(c))
    mean = first[:, None] * z1[None] + second[:, None] * z2[None]

    def smoothed(activation: Activation, rows: slice) -> Array:
        arguments = mean[rows, :, None] + spread[rows, None, None] * jnp.asarray(inner)[None, None, :]
        return activation.derivatives(arguments, 0)[0] @ jnp.asarray(transform)

    h = jnp.concatenate([smoothed(student, slice(0, students)), smoothed(teacher, slice(students, None))])
    slopes = student.derivatives(jnp.stack([mean[i], mean[j]]), 1)[1]
    h = jnp.moveaxis(h, -1, 0)  # (term p, neuron, node)
    products = (h * (weight * slopes[0] * slopes[1])[None, None]) @ jnp.swapaxes(h, 1, 2)
    powers = jnp.cumprod(jnp.broadcast_to(rho[None], (transform.shape[1] - 1, *rho.shape)), axis=0)
    return products[0] + jnp.sum(powers * products[1:], axis=0)


_ROUNDING = 1e-14
"""A variance that conditioning reduces by this factor is a rounding error."""


def _is_polynomial(activation: Activation) -> bool:
    return isinstance(activation, Polynomial | PiecewiseLinear)


def _over_root(row: Array, variance: Array, before: Array) -> Array:
    there = variance > _ROUNDING * before
    return jnp.where(there, row / jnp.sqrt(jnp.where(there, variance, 1.0)), 0.0)


def _correlations(rest: Array, before: Array) -> tuple[Array, Array]:
    """Standard deviations and correlations after conditioning; zero where only rounding errors are left."""
    variance = jnp.diagonal(rest)
    there = variance > _ROUNDING * before
    spread = jnp.where(there, jnp.sqrt(jnp.where(there, variance, 1.0)), 0.0)
    scale = jnp.where(there, 1 / jnp.where(there, spread, 1.0), 0.0)
    return spread, jnp.clip(rest * scale[:, None] * scale[None, :], -1.0, 1.0)
