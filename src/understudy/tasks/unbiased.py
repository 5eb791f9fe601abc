"""Loss, gradient and Hessian of a two-layer student without biases, for centred Gaussian inputs.

L = Σ_ii' a_i·a_i' G(w_i, w_i') - 2 Σ_ij a_i·b_j G(w_i, v_j) + const, with G(p, q) = E[σ(p·x)σ(q·x)]. Everything is
assembled from the partials of G (see `pairs`). `biased` has the same functions for students with biases.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.gaussian import SelfPartials, has_closed_form, mehler
from understudy.kept_programs import kept
from understudy.networks import Teacher
from understudy.tasks.assembly import assemble, zero_diagonal
from understudy.tasks.pairs import (
    Pairs,
    cross_blocks,
    own_blocks,
    own_diagonals,
    own_partials,
    own_slopes,
    pair_up,
)
from understudy.tasks.task import Evaluation

if TYPE_CHECKING:
    from understudy.tasks.population import Population


class Partners(NamedTuple):
    """Neurons that every student is paired with: students first, or teachers, whose outgoing weights have a minus sign.

    `weight` is the weight of each pair's interaction in the gradient. Pairs of a student with itself are left out.
    """

    vectors: Array
    outgoing: Array
    pairs: Pairs
    weight: Array


class Terms(NamedTuple):
    """Terms that one evaluation computes once: the students, each student with itself, and each with its partners."""

    w: Array
    a: Array
    own: SelfPartials
    weight_own: Array
    partners: list[Partners]

    def along(self) -> Array:
        """∂L/∂w_i = along_i w_i + terms along the partners."""
        pairs = sum(jnp.sum(p.weight * p.pairs.partials.q11, axis=1) for p in self.partners)
        return 2 * (self.weight_own * self.own.q + pairs)


@kept
def teacher_energy(teacher: Teacher, v: Array, resolution: float) -> Float[Array, ""]:
    """E‖f*(x)‖² of the teacher with (whitened) incoming vectors v."""
    pairs = pair_up(teacher.activation, teacher.activation, v, v, resolution).partials.value
    own = own_partials(teacher.activation, v, resolution).value
    weights = _dots(teacher.outgoing, teacher.outgoing)
    return jnp.sum(zero_diagonal(weights) * pairs) + jnp.diagonal(weights) @ own


def value(task: "Population", vector: Array) -> Array:
    """See `Population.value`."""
    return _loss(task, terms(task, vector))


def value_and_gradient(task: "Population", vector: Array) -> tuple[Array, Array]:
    """See `Population.value_and_gradient`."""
    t = terms(task, vector)
    return _loss(task, t), gradient(task, t)


def evaluate(task: "Population", vector: Array, precision: type) -> Evaluation:
    """Loss, gradient and Hessian; the Hessian is assembled in the given precision."""
    t = terms(task, vector, curved=True)
    n, d = task.width, task.dim
    own = sum(own_blocks(p.pairs, p.weight, t.w, p.vectors) for p in t.partners)
    own += 2 * (t.weight_own * t.own.q)[:, None, None] * jnp.eye(d)[None]
    own += 4 * (t.weight_own * t.own.qq)[:, None, None] * (t.w[:, :, None] * t.w[:, None, :])
    students = t.partners[0].pairs.leading(n)
    slope, outer = cross_blocks(students, t.partners[0].weight[:, :n], t.w, t.w)
    metric = jnp.eye(d)
    if task.root is not None:
        metric = task.root @ task.root
        own = task.root @ own @ task.root
        outer = [(left @ task.root, right @ task.root) for left, right in outer]
    constants = [(slope, metric)]
    if task.trains_outgoing:
        constants, outer, own = _with_outgoing(task, t, students, slope, metric, outer, own)
    return Evaluation(_loss(task, t), gradient(task, t), assemble(constants, outer, own, precision))


def hessian_blocks(task: "Population", vector: Array) -> Float[Array, "groups b b"]:
    """The blocks of the Hessian on the groups of `Population.hessian_groups`."""
    t = terms(task, vector, curved=True)
    n, first = task.width, t.partners[0]
    own = sum(own_diagonals(p.pairs, p.weight, t.w, p.vectors) for p in t.partners)
    own += 2 * (t.weight_own * t.own.q)[:, None] + 4 * (t.weight_own * t.own.qq)[:, None] * t.w**2
    students = first.pairs.leading(n)
    slope, outer = cross_blocks(students, first.weight[:, :n], t.w, t.w)
    off = slope[:, :, None] + sum(left * right for left, right in outer)
    index = jnp.arange(n)
    blocks = jnp.moveaxis(off.at[index, index].set(own), 2, 0)
    if not task.trains_outgoing:
        return blocks
    values = 2 * students.partials.value.at[index, index].set(t.own.value)
    m = math.prod(task.outputs)
    return jnp.concatenate([blocks, jnp.broadcast_to(values[None], (m, n, n))])


def outside_hessian(task: "Population", vector: Array) -> Float[Array, "n n"]:
    """See `Population.outside_hessian`."""
    t = terms(task, vector)
    students = t.partners[0]
    return jnp.diag(t.along()) + (students.weight * students.pairs.partials.q12)[:, : task.width]


def terms(task: "Population", vector: Array, curved: bool = False) -> Terms:
    """The terms of a loss and a gradient, or also those of a Hessian (`curved`)."""
    w, _, a, _ = task.parts(vector)
    v = task.teacher.incoming
    if task.root is not None:
        w, v = w @ task.root, v @ task.root
    sigma, other, resolution = task.activation, task.teacher.activation, task.resolution
    own = own_partials(sigma, w, resolution)
    if not curved and not has_closed_form(sigma, sigma):  # with derivatives that are known; see `pair_up`
        own = SelfPartials(*own_slopes(sigma, resolution, w), own.qq)
    groups = [(sigma, w, a), (other, v, -task.teacher.outgoing)]
    # One table of pairs is cheaper than two, unless points under `vmap` can share the series of the teachers.
    if sigma == other and not mehler.serves(sigma, other, resolution):
        groups = [(sigma, jnp.concatenate([w, v]), jnp.concatenate([a, -task.teacher.outgoing]))]
    partners = []
    for activation, vectors, outgoing in groups:
        pairs = pair_up(sigma, activation, w, vectors, resolution, curved)
        partners.append(Partners(vectors, outgoing, pairs, 2 * _dots(a, outgoing)))
    first = partners[0]
    partials = jax.tree.map(zero_diagonal, first.pairs.partials)
    partners[0] = first._replace(pairs=first.pairs._replace(partials=partials), weight=zero_diagonal(first.weight))
    return Terms(w, a, own, jnp.diagonal(_dots(a, a)), partners)


def _loss(task: "Population", t: Terms) -> Array:
    first, n = t.partners[0], task.width
    pairs = sum(jnp.sum(p.weight * p.pairs.partials.value) for p in t.partners)
    # Each pair of students occurs twice.
    twice = jnp.sum(first.weight[:, :n] * first.pairs.partials.value[:, :n]) / 2
    return jnp.sum(t.weight_own * t.own.value) + pairs - twice + task.constant


def gradient(task: "Population", t: Terms) -> Array:
    """The gradient from the terms of an evaluation."""
    incoming = t.along()[:, None] * t.w
    for p in t.partners:
        incoming += (p.weight * p.pairs.partials.q12) @ p.vectors
    incoming = incoming if task.root is None else incoming @ task.root
    if not task.trains_outgoing:
        return incoming.ravel()
    outgoing = 2 * (_scaled(t.own.value, t.a) + sum(p.pairs.partials.value @ p.outgoing for p in t.partners))
    return jnp.concatenate([incoming, outgoing.reshape(task.width, -1)], axis=1).ravel()


def _with_outgoing(
    task: "Population",
    t: Terms,
    students: Pairs,
    slope: Array,
    metric: Array,
    outer: list[tuple[Array, Array]],
    own: Array,
) -> tuple[list[tuple[Array, Array]], list[tuple[Array, Array]], Array]:
    """The terms that `assemble` takes, for a Hessian with rows and columns of outgoing weights."""
    n, d, m = task.width, task.dim, math.prod(task.outputs)
    a, gs = t.a.reshape(n, m), students.partials
    # ∂²L/∂w_i∂a_j: for i ≠ j it is 2 a_i ∂_w G_ij, for i = j the derivative of the gradient by its own weight.
    slopes = 4 * gs.q11[:, :, None] * t.w[:, None, :] + 2 * gs.q12[:, :, None] * t.w[None, :, :]
    mixed = 4 * t.w[:, :, None] * (t.own.q[:, None] * a)[:, None, :]
    for p in t.partners:
        c, g = p.outgoing.reshape(-1, m), p.pairs.partials
        mixed += 4 * t.w[:, :, None] * (g.q11 @ c)[:, None, :] + 2 * jnp.einsum("ij,jd,jm->idm", g.q12, p.vectors, c)
    if task.root is not None:
        slopes, mixed = slopes @ task.root, jnp.einsum("ac,icm->iam", task.root, mixed)

    def pad(x: Array, before: int, after: int) -> Array:
        return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)])

    slopes, weights = pad(slopes, 0, m), pad(a, d, 0)
    outer = [(pad(left, 0, m), pad(right, 0, m)) for left, right in outer]
    outer.append((slopes, weights[:, None, :]))
    outer.append((weights[None, :, :], jnp.swapaxes(slopes, 0, 1)))
    constants = [
        (slope, jnp.pad(metric, (0, m))),
        (2 * gs.value, jnp.pad(jnp.eye(m), (d, 0))),
    ]
    squares = 2 * t.own.value[:, None, None] * jnp.eye(m)[None]
    top = jnp.concatenate([own, mixed], axis=2)
    own = jnp.concatenate([top, jnp.concatenate([jnp.swapaxes(mixed, 1, 2), squares], axis=2)], axis=1)
    return constants, outer, own


def _dots(a: Array, b: Array) -> Array:
    """a_i·b_j for scalar or vector outgoing weights."""
    return jnp.outer(a, b) if a.ndim == 1 else a @ b.T


def _scaled(scale: Array, a: Array) -> Array:
    return scale * a if a.ndim == 1 else scale[:, None] * a
