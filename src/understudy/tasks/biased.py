r"""Loss, gradient and Hessian of a two-layer student with biases, for inputs N(μ, Σ).

f(x) = Σ_i a_i σ(w_i·x + c_i) + c_0. With x = μ + Σ^½ ξ, ξ ~ N(0, I), neuron i has the incoming vector p_i = Σ^½ w_i and
the mean m_i = c_i + w_i·μ. Everything is assembled in p̃_i = (p_i, m_i) and taken back to (w_i, c_i), or to w_i alone,
by the linear map T = ∂p̃/∂(w, c). The offset enters by δ = c_0 - c_0* and the means of single neurons, S_i = E[σ(p_i·ξ
+ m_i)]:

L = (the sums over pairs) + ‖δ‖² + 2 δ·(Σ_i a_i S_i - E[f* - c_0*]).

A student with itself is a pair like any other where the expectation of a pair is smooth at equal vectors and in closed
form. Where it is kinked or a series, D_i = E[σ(p_i·ξ + m_i)²] has formulas of its own, and the pair is left out.

Flat vectors are (w_1, c_1, a_1) ⊕ … ⊕ (w_n, c_n, a_n) ⊕ c_0; parameters that are not trained are left out.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.activations import Activation, Erf, Polynomial
from understudy.gaussian import BiasedSelfPartials, mehler
from understudy.gaussian.bivariate import keep
from understudy.networks import Teacher
from understudy.tasks.assembly import assemble, zero_diagonal
from understudy.tasks.biased_pairs import (
    BiasedPairs,
    Block,
    Shifted,
    alone,
    bordered,
    cross_blocks,
    own_blocks,
    pair_up,
    pulls,
    slopes,
)
from understudy.tasks.task import Evaluation

if TYPE_CHECKING:
    from understudy.tasks.population import Population


class Inputs(NamedTuple):
    """The mean of the inputs and the square root of their covariance, each or None."""

    mean: Array | None
    root: Array | None


class _Partners(NamedTuple):
    """Neurons that every student is paired with; see `unbiased.Partners`."""

    neurons: Shifted
    outgoing: Array
    pairs: BiasedPairs
    weight: Array


class _Terms(NamedTuple):
    """Terms that one evaluation computes once."""

    students: Shifted
    a: Float[Array, "n m"]
    own: BiasedSelfPartials | None
    single: list[Array]
    weight_own: Array
    gap: Float[Array, " m"]
    partners: list[_Partners]


def transform(task: "Population") -> Float[Array, "D T"] | None:
    """T = ∂(p, m)/∂(w, c), shape (d + 1, d + 1), or (d + 1, d) if biases are not trained; None for the identity."""
    d = task.dim
    if task.root is None and task.mean is None and task.trains_bias:
        return None
    root = jnp.eye(d) if task.root is None else task.root
    mean = jnp.zeros(d) if task.mean is None else task.mean
    top = jnp.concatenate([root, mean[None]])
    return jnp.concatenate([top, jnp.eye(d + 1)[:, -1:]], axis=1) if task.trains_bias else top


def _back(x: Float[Array, "*shape D"], matrix: Float[Array, "D T"] | None) -> Float[Array, "*shape T"]:
    """Derivatives by p̃ as derivatives by the trained parameters, along the last axis."""
    return x if matrix is None else x @ matrix


def _back_twice(x: Float[Array, "*shape D D"], matrix: Float[Array, "D T"] | None) -> Float[Array, "*shape T T"]:
    return x if matrix is None else matrix.T @ x @ matrix


def shifted(task: "Population | Inputs", incoming: Float[Array, "n d"], bias: Float[Array, " n"] | None) -> Shifted:
    """The same neurons for standard Gaussian inputs."""
    means = jnp.zeros(incoming.shape[0]) if bias is None else bias
    if task.mean is not None:
        means = means + incoming @ task.mean
    return Shifted(incoming if task.root is None else incoming @ task.root, means)


@eqx.filter_jit
def teacher_moments(inputs: Inputs, teacher: Teacher, resolution: float) -> tuple[Float[Array, ""], Float[Array, " m"]]:
    """E‖f*‖² and E[f*], both without the teacher's offset."""
    v = shifted(inputs, teacher.incoming, teacher.bias)
    b = teacher.outgoing.reshape(teacher.width, -1)
    values = pair_up(teacher.activation, teacher.activation, v, v, resolution).partials.value
    own, single = alone(teacher.activation, v, resolution)
    weights = b @ b.T
    if _paired(teacher.activation):  # as in `_terms`, so that errors cancel where a student is its teacher
        return jnp.sum(weights * values), single[0] @ b
    return jnp.sum(zero_diagonal(weights) * values) + jnp.diagonal(weights) @ own.value, single[0] @ b


def _paired(activation: Activation) -> bool:
    """Whether a neuron with itself is a pair like any other."""
    return isinstance(activation, Erf | Polynomial)


def _terms(task: "Population", vector: Array) -> _Terms:
    w, bias, a, offset = task.parts(vector)
    a, b = a.reshape(task.width, -1), task.teacher.outgoing.reshape(task.teacher.width, -1)
    p, v = shifted(task, w, bias), shifted(task, task.teacher.incoming, task.teacher.bias)
    sigma, other, resolution = task.activation, task.teacher.activation, task.resolution
    alike = _paired(sigma)
    own, single = alone(sigma, p, resolution)
    groups = [(sigma, p, a), (other, v, -b)]
    if sigma == other and not mehler.serves(sigma, other, resolution, biased=True):  # see `unbiased.terms`
        groups = [(sigma, Shifted(*map(jnp.concatenate, zip(p, v, strict=True))), jnp.concatenate([a, -b]))]
    partners = []
    for i, (activation, neurons, outgoing) in enumerate(groups):
        pairs, weight = pair_up(sigma, activation, p, neurons, resolution), 2 * a @ outgoing.T
        if i == 0 and not alike:  # a student with itself is in `own`
            pairs, weight = pairs._replace(partials=jax.tree.map(zero_diagonal, pairs.partials)), zero_diagonal(weight)
        partners.append(_Partners(neurons, outgoing, pairs, weight))
    gap = jnp.zeros(a.shape[1]) if offset is None else offset.reshape(-1)
    if task.teacher.offset is not None:
        gap = gap - task.teacher.offset.reshape(-1)
    return _Terms(p, a, None if alike else own, single, jnp.sum(a**2, axis=1), gap, partners)


def _loss(task: "Population", t: _Terms) -> Array:
    first, n = t.partners[0], task.width
    pairs = sum(jnp.sum(p.weight * p.pairs.partials.value) for p in t.partners)
    twice = jnp.sum(first.weight[:, :n] * first.pairs.partials.value[:, :n]) / 2
    shift = t.gap @ t.gap + 2 * t.gap @ (t.single[0] @ t.a - task.target_mean)
    own = 0.0 if t.own is None else jnp.sum(t.weight_own * t.own.value)
    return own + pairs - twice + task.constant + shift


def _single_slope(t: _Terms) -> Float[Array, "n D"]:
    """∂S_i/∂p̃_i = (E_2 p, E_1)."""
    return jnp.concatenate([t.single[2][:, None] * t.students.vectors, t.single[1][:, None]], axis=1)


def _own_slope(own: BiasedSelfPartials, students: Shifted) -> Float[Array, "n D"]:
    """∂D_i/∂p̃_i."""
    return jnp.concatenate([2 * own.q[:, None] * students.vectors, own.m[:, None]], axis=1)


def _gradient(task: "Population", t: _Terms) -> Array:
    p = t.students
    hidden = 2 * (t.a @ t.gap)[:, None] * _single_slope(t)
    hidden += sum(pulls(q.pairs, q.weight, p, q.neurons) for q in t.partners)
    if t.own is not None:
        hidden += t.weight_own[:, None] * _own_slope(t.own, p)
    parts = [_back(hidden, transform(task))]
    if task.trains_outgoing:
        parts.append(_outgoing_gradient(t))
    flat = jnp.concatenate(parts, axis=1).ravel()
    if not task.trains_bias:
        return flat
    return jnp.concatenate([flat, 2 * (t.gap + t.single[0] @ t.a - task.target_mean)])


def _outgoing_gradient(t: _Terms) -> Float[Array, "n m"]:
    pairs = sum(q.pairs.partials.value @ q.outgoing for q in t.partners)
    own = 0.0 if t.own is None else t.own.value[:, None] * t.a
    return 2 * (own + pairs + t.single[0][:, None] * t.gap[None, :])


def value(task: "Population", vector: Array) -> Array:
    """The loss."""
    return _loss(task, _terms(task, vector))


def value_and_gradient(task: "Population", vector: Array) -> tuple[Array, Array]:
    """Loss and gradient."""
    t = _terms(task, vector)
    return _loss(task, t), _gradient(task, t)


def hidden_block(t: _Terms) -> Float[Array, "n D D"]:
    """∂²L/∂p̃_i² of every student, without what a pair of a student with itself has in `cross_blocks`."""
    p, pull = t.students.vectors, 2 * t.a @ t.gap
    slope, tilt, bend = (pull * t.single[j] for j in (2, 3, 4))
    if t.own is not None:
        slope = slope + t.weight_own * 2 * t.own.q
        tilt = tilt + t.weight_own * 2 * t.own.qm
        bend = bend + t.weight_own * 4 * t.own.qq
    square = slope[:, None, None] * jnp.eye(p.shape[1])[None] + bend[:, None, None] * (p[:, :, None] * p[:, None, :])
    blocks = [own_blocks(q.pairs, q.weight, t.students, q.neurons) for q in t.partners]
    return jax.tree.map(lambda *parts: sum(parts), Block(square, tilt[:, None] * p, slope), *blocks).whole()


def _mixed(t: _Terms) -> Float[Array, "n D m"]:
    """∂²L/∂p̃_i∂a_i, likewise."""
    p = t.students
    found = _single_slope(t)[:, :, None] * t.gap[None, None, :]
    if t.own is not None:
        found += _own_slope(t.own, p)[:, :, None] * t.a[:, None, :]
    for q in t.partners:
        g = q.pairs.partials
        along = 2 * p.vectors[:, :, None] * (g.q11 @ q.outgoing)[:, None, :]
        along += jnp.einsum("ij,jd,jm->idm", g.q12, q.neurons.vectors, q.outgoing, optimize="optimal")
        found += jnp.concatenate([along, (g.m1 @ q.outgoing)[:, None, :]], axis=1)
    return 2 * found


def evaluate(task: "Population", vector: Array, precision: type) -> Evaluation:
    """Loss, gradient and Hessian."""
    t, n, m = _terms(task, vector), task.width, math.prod(task.outputs)
    p, matrix, first = t.students, transform(task), t.partners[0]
    students = first.pairs.leading(n)
    slope, outer = cross_blocks(students, first.weight[:, :n], p, p)
    outer = [(_back(left, matrix), _back(right, matrix)) for left, right in outer]
    own = _back_twice(hidden_block(t), matrix)
    size = own.shape[-1]
    constants = [(slope, jnp.eye(size) if matrix is None else matrix.T @ matrix)]
    border = 2 * _back(_single_slope(t), matrix)[:, :, None] * t.a[:, None, :]
    if task.trains_outgoing:
        outer = _with_outgoing(outer, students, t.a, _back(2 * slopes(students, p, p), matrix))
        values = 2 * students.partials.value
        constants = [(slope, jnp.pad(constants[0][1], (0, m))), (values, jnp.pad(jnp.eye(m), (size, 0)))]
        mixed = _mixed(t) if matrix is None else jnp.einsum("ad,iam->idm", matrix, _mixed(t))
        squares = jnp.zeros((n, m, m)) if t.own is None else 2 * t.own.value[:, None, None] * jnp.eye(m)[None]
        own = bordered(own, mixed, squares)
        border = jnp.concatenate([border, 2 * t.single[0][:, None, None] * jnp.eye(m)[None]], axis=1)
    lefts, rights = zip(*outer, strict=True)
    hessian = assemble(constants, list(zip(lefts, keep(*rights), strict=True)), own, precision, add=t.own is None)
    if task.trains_bias:
        edge = border.reshape(-1, m).astype(precision)
        hessian = _bordered(hessian, edge, 2 * jnp.eye(m, dtype=precision))
    return Evaluation(_loss(task, t), _gradient(task, t), hessian)


def _with_outgoing(
    outer: list[tuple[Array, Array]], students: BiasedPairs, a: Float[Array, "n m"], along: Float[Array, "n n T"]
) -> list[tuple[Array, Array]]:
    """The products of `cross_blocks`, longer by the outgoing weights.

    ∂²L/∂p̃_i∂a_j = 2 a_i ∂_p̃ G_ij is a combination of the three left factors p_i, p_j and e, whose right factors are
    made longer. Only its transpose needs a product of its own.
    """
    g, m = students.partials, a.shape[1]
    after = ((0, 0), (0, 0), (0, m))
    weights = jnp.pad(a, ((0, 0), (along.shape[-1], 0)))
    longer = [
        (jnp.pad(left, after), jnp.concatenate([right, share[:, :, None] * a[:, None, :]], axis=2))
        for (left, right), share in zip(outer, (4 * g.q11, 2 * g.q12, 2 * g.m1), strict=True)
    ]
    return [*longer, (weights[None, :, :], jnp.pad(jnp.swapaxes(along, 0, 1), after))]


def _bordered(matrix: Float[Array, "P P"], edge: Float[Array, "P m"], corner: Float[Array, "m m"]) -> Array:
    """[[matrix, edge], [edgeᵀ, corner]], with one copy of the matrix."""
    size, m = edge.shape
    wide = jnp.pad(matrix, (0, m))
    wide = jax.lax.dynamic_update_slice(wide, jnp.concatenate([edge, corner]), (0, size))
    return jax.lax.dynamic_update_slice(wide, edge.T, (size, 0))


def outside_hessian(task: "Population", vector: Array) -> Array:
    """See `Population.outside_hessian`."""
    t = _terms(task, vector)
    pairs = sum(jnp.sum(q.weight * q.pairs.partials.q11, axis=1) for q in t.partners)
    own = 0.0 if t.own is None else t.weight_own * t.own.q
    along = 2 * (own + pairs) + 2 * (t.a @ t.gap) * t.single[2]
    students = t.partners[0]
    return jnp.diag(along) + (students.weight * students.pairs.partials.q12)[:, : task.width]


@eqx.filter_jit
def split_terms(task: "Population", vector: Array, neuron: Array) -> tuple[Array, Array]:
    """Y and V of one neuron in coordinates (w, c), or w if biases are not trained; see `split_terms.of_population`."""
    t, matrix = _terms(task, vector), transform(task)
    here = jax.tree.map(lambda x: x[neuron][None], t.students)
    own, coupling = t.a[neuron][None], 2 * (_single_slope(t)[neuron][:, None] * t.gap[None, :])
    wide = t.students.vectors.shape[1] + 1
    y = jnp.zeros((wide, wide))
    v, b = (
        shifted(task, task.teacher.incoming, task.teacher.bias),
        task.teacher.outgoing.reshape(task.teacher.width, -1),
    )
    for activation, neurons, weights in ((task.activation, t.students, 2 * t.a), (task.teacher.activation, v, -2 * b)):
        pairs = pair_up(task.activation, activation, here, neurons, task.resolution)
        y = y + own_blocks(pairs, own @ weights.T, here, neurons).whole()[0]
        coupling = coupling + slopes(pairs, here, neurons)[0].T @ weights
    row, unit = jnp.append(here.vectors[0], 0.0), jnp.zeros(wide).at[-1].set(1.0)
    pull = 2 * own[0] @ t.gap
    e2, e3, e4 = (t.single[j][neuron] for j in (2, 3, 4))
    side = e3 * jnp.outer(row, unit)
    y = y + pull * (e2 * jnp.eye(len(row)) + e4 * jnp.outer(row, row) + side + side.T)
    return _back_twice(y, matrix), coupling if matrix is None else matrix.T @ coupling
