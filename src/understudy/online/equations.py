r"""The equations of one-pass SGD at learning rate η/d in the limit d → ∞.

One sample moves w_i by -(η/d) (a_i·e) σ'(w_i·x) x, e = f(x) - f*(x) - noise × N(0, I). With time α = steps/d,

dR/dα = E[drift of w] vᵀ,  dQ/dα = (E[drift of w] wᵀ + transpose) + η² C,  da/dα = -η_a E[e σ(w·x)],

because |x|²/d → 1: C_ij = E[σ'_i σ'_j (a_i·Δ)(a_j·Δ)] + noise² a_i·a_j E[σ'_i σ'_j], Δ = f - f*. The drift of w is
-(η/2) ∂L/∂w = -(η/2)(S w + V v) with S, V from the partials of the interaction, that is, the gradient flow of L = E‖Δ‖²
at the flow time ηα/2. Weight decay λ adds (λ/2)‖θ‖² to the cost of a sample. Outgoing weights step by η_a/d as well, so
that their noise is O(1/d) (Saad and Solla 1995; Goldt et al. 2019).
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import Activation
from understudy.gaussian import Covariance, Partials, has_closed_form, mehler, pair_partials, self_partials
from understudy.gaussian.fourfold import gradient_moments
from understudy.gaussian.quadrature import nodes_needed
from understudy.online.overlaps import pack, unpack
from understudy.tasks.order_problem import OrderProblem

Scalar = Float[Array, ""] | np.float64
Vector = Float[Array, " P"] | Float[np.ndarray, " P"]


class Rates(NamedTuple):
    """The factors in the equations: η, η_a, the standard deviation of the label noise, and λ."""

    incoming: Scalar
    outgoing: Scalar
    noise: Scalar
    decay: Scalar


class Resolution(NamedTuple):
    """The accuracy of averages without closed form: a bound of steepness × norm, and nodes for fourfold averages."""

    scale: float
    nodes: int


def resolution_for(problem: OrderProblem, vector: np.ndarray, nodes: int) -> Resolution:
    """The resolution for the norms at this state. It is a power of √2, so that code is compiled only a few times."""
    n = problem.width
    places = np.cumsum([0, *range(n, 1, -1)])  # positions of the Q_ii in the upper triangle
    largest = max(
        problem.student.steepness * math.sqrt(max(float(np.max(vector[places])), 0.0)),
        problem.teacher.steepness * math.sqrt(float(np.max(np.diagonal(np.asarray(problem.overlaps))))),
        0.5,
    )
    if not math.isfinite(largest):
        return Resolution(1.0, nodes)
    closed = has_closed_form(problem.student, problem.student) and has_closed_form(problem.student, problem.teacher)
    return Resolution(1.0 if closed else 2.0 ** (math.ceil(2 * math.log2(1.1 * largest)) / 2), nodes)


def _partials(first: Activation, second: Activation, scale: float, q11: Array, q12: Array, q22: Array) -> Partials:
    if mehler.serves(first, second, scale):
        return mehler.pair_partials(first, second, scale, jnp.maximum(q11[:, 0], 0.0), q12, jnp.maximum(q22[0], 0.0))
    covariance = Covariance(q11, q12, q22, jnp.maximum(q11 * q22 - q12**2, 0.0))
    return pair_partials(first, second, covariance, nodes_needed(scale))


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _pairs(
    first: Activation, second: Activation, scale: float, q11: Array, q12: Array, q22: Array
) -> tuple[Array, Array, Array]:
    """G, ∂G/∂q11 and ∂G/∂q12, whose derivatives are the second partials, also where two neurons are parallel."""
    p = _partials(first, second, scale, q11, q12, q22)
    return p.value, p.q11, p.q12


@_pairs.defjvp
def _pairs_jvp(first: Activation, second: Activation, scale: float, primals: tuple, tangents: tuple) -> tuple:
    p, (d11, d12, d22) = _partials(first, second, scale, *primals), tangents
    return (p.value, p.q11, p.q12), (
        p.q11 * d11 + p.q12 * d12 + p.q22 * d22,
        p.q11q11 * d11 + p.q11q12 * d12 + p.q12q12 / 4 * d22,
        p.q11q12 * d11 + p.q12q12 * d12 + p.q12q22 * d22,
    )


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _own(activation: Activation, scale: float, q: Array) -> tuple[Array, Array]:
    """D(q) = E[σ(√q z)²] and D'(q)."""
    p = self_partials(activation, q, nodes_needed(scale))
    return p.value, p.q


@_own.defjvp
def _own_jvp(activation: Activation, scale: float, primals: tuple, tangents: tuple) -> tuple:
    p = self_partials(activation, primals[0], nodes_needed(scale))
    return (p.value, p.q), (p.q * tangents[0], p.qq * tangents[0])


class _Terms(NamedTuple):
    """Interactions of students with students and with teachers, each with the partials by q11 and q12."""

    own: tuple[Array, Array]
    students: tuple[Array, Array, Array]
    teachers: tuple[Array, Array, Array]


def _terms(problem: OrderProblem, q: Array, r: Array, scale: float) -> _Terms:
    n, k = r.shape
    norms, lengths = jnp.diagonal(q), jnp.diagonal(problem.overlaps)
    rows, columns = (jnp.broadcast_to(x, (n, n)) for x in (norms[:, None], norms[None, :]))
    students = _pairs(problem.student, problem.student, scale, rows, q, columns)
    rows, columns = (jnp.broadcast_to(x, (n, k)) for x in (norms[:, None], lengths[None, :]))
    teachers = _pairs(problem.student, problem.teacher, scale, rows, r, columns)
    return _Terms(_own(problem.student, scale, norms), students, teachers)


def _off(x: Array) -> Array:
    return jnp.where(jnp.eye(len(x), dtype=bool), 0.0, x)


@partial(jax.jit, static_argnames="resolution")
def loss(problem: OrderProblem, vector: Vector, resolution: Resolution) -> Float[Array, ""]:
    """L = E‖f - f*‖² at a flat vector of order parameters, without label noise."""
    q, r, a = unpack(problem, vector)
    t, b = _terms(problem, q, r, resolution.scale), problem.teacher_outgoing
    among = jnp.sum(a**2, axis=1) @ t.own[0] + jnp.sum(_off(a @ a.T) * _off(t.students[0]))
    return among - 2 * jnp.sum((a @ b.T) * t.teachers[0]) + problem.constant


@partial(jax.jit, static_argnames="resolution")
def losses(
    problem: OrderProblem, vectors: Float[Array, "times P"] | Float[np.ndarray, "times P"], resolution: Resolution
) -> Float[Array, " times"]:
    """`loss` of many states."""
    return jax.vmap(lambda vector: loss(problem, vector, resolution))(vectors)


@partial(jax.jit, static_argnames="resolution")
def slope(problem: OrderProblem, vector: Vector, rates: Rates, resolution: Resolution) -> Float[Array, " P"]:
    """The right-hand side of the equations at a flat vector of order parameters."""
    q, r, a = unpack(problem, vector)
    t, b = _terms(problem, q, r, resolution.scale), problem.teacher_outgoing
    among, towards = a @ a.T, a @ b.T
    diagonal = 2 * (
        jnp.diagonal(among) * t.own[1]
        + 2 * jnp.sum(_off(among) * _off(t.students[1]), axis=1)
        - 2 * jnp.sum(towards * t.teachers[1], axis=1)
    )
    own = _off(2 * among * t.students[2]) + jnp.diag(diagonal)
    outer = -2 * towards * t.teachers[2]
    eta, decay = rates.incoming, rates.decay
    by_r = -eta / 2 * (own @ r + outer @ problem.overlaps) - eta * decay * r
    drift = -eta / 2 * (own @ q + outer @ r.T) - eta * decay * q
    by_q = drift + drift.T + eta**2 * _moments(problem, q, r, a, t, rates.noise, resolution)
    values = _off(t.students[0]) + jnp.diag(t.own[0])
    by_a = -rates.outgoing * (values @ a - t.teachers[0] @ b + decay * a)
    return pack(by_q, by_r, by_a, problem.fixed_outgoing is None)


def _moments(
    problem: OrderProblem, q: Array, r: Array, a: Array, t: _Terms, noise: Scalar, resolution: Resolution
) -> Array:
    """C: the second moment of one sample's gradient, label noise included."""
    every = jnp.concatenate([jnp.concatenate([q, r], axis=1), jnp.concatenate([r.T, problem.overlaps], axis=1)])
    weights = a @ jnp.concatenate([a, -problem.teacher_outgoing]).T
    exact = gradient_moments(problem.student, problem.teacher, every, weights, resolution.nodes)
    return exact + noise**2 * (a @ a.T) * t.students[2]


@partial(jax.jit, static_argnames="resolution")
def slope_and_change(
    problem: OrderProblem, vector: Vector, tangent: Vector, rates: Rates, resolution: Resolution
) -> tuple[Float[Array, " P"], Float[Array, " P"]]:
    """`slope`, and its derivative along a tangent."""
    return jax.jvp(lambda v: slope(problem, v, rates, resolution), (vector,), (tangent,))


@partial(jax.jit, static_argnames="resolution")
def moments(problem: OrderProblem, vector: Vector, resolution: Resolution) -> Float[Array, "n n"]:
    """C without label noise: E[σ'_i σ'_j (a_i·Δ)(a_j·Δ)]."""
    q, r, a = unpack(problem, vector)
    t = _terms(problem, q, r, resolution.scale)
    return _moments(problem, q, r, a, t, jnp.zeros(()), resolution)


@partial(jax.jit, static_argnames="resolution")
def jacobian(problem: OrderProblem, vector: Vector, rates: Rates, resolution: Resolution) -> Float[Array, "P P"]:
    """Derivative of `slope` by the order parameters."""
    return jax.jacfwd(lambda v: slope(problem, v, rates, resolution))(vector)
