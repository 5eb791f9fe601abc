"""Order parameters back to losses and weights: which norms and correlations some weights have (Eq. 10, 28, 31)."""

import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.gaussian import Covariance, pair_partials, self_partials
from understudy.gaussian.quadrature import nodes_needed
from understudy.networks import Teacher, TwoLayer
from understudy.tasks import OrderParameters, Population

_RANK_TOLERANCE = 1e-6
"""Teacher directions count as linearly dependent if a singular value is this small beside the largest: in smaller
ones the coefficients of a student would not be known to 1e-10."""


def loss_from_order_parameters(task: Population, order: OrderParameters) -> Float[Array, ""]:
    """The population loss from the norms and correlations of one student.

    L = Σ_i a_i² g(r_i, r_i, 1) + Σ_{i≠i'} a_i a_i' g(r_i, r_i', ρ_ii') - 2 Σ_ij a_i b_j g(r_i, ‖v_j‖, u_ij) + C, each
    unordered pair of students counted twice (Eq. 10 and 25 of Simsek et al. 2023 print a further factor 2, which holds
    only if the sum runs over i < i').
    """
    if task.biased:
        raise ValueError("With biases or a mean, the loss is not a function of these order parameters alone.")
    v = task.teacher.incoming if task.root is None else task.teacher.incoming @ task.root
    lengths = jnp.linalg.norm(v, axis=1)
    student, teacher = task.activation.steepness, task.teacher.activation.steepness
    largest = max(1.0, student * float(jnp.max(order.norms)), teacher * float(jnp.max(lengths)))
    nodes = nodes_needed(2.0 ** math.ceil(math.log2(largest)))  # few different numbers: little is compiled
    return _loss(task, order, lengths, nodes)


@eqx.filter_jit
def _loss(task: Population, order: OrderParameters, lengths: Float[Array, " k"], nodes: int) -> Float[Array, ""]:
    r, u, rho, a = order
    a, b = a.reshape(len(r), -1), task.teacher.outgoing.reshape(len(lengths), -1)
    own = self_partials(task.activation, r**2, nodes).value
    between = Covariance.from_correlation(r[:, None], r[None, :], jnp.clip(rho, -1.0, 1.0))
    students = pair_partials(task.activation, task.activation, between, nodes).value
    index = jnp.arange(len(r))
    students = students.at[index, index].set(own)
    towards = Covariance.from_correlation(r[:, None], lengths[None, :], jnp.clip(u, -1.0, 1.0))
    teachers = pair_partials(task.activation, task.teacher.activation, towards, nodes).value
    return jnp.sum((a @ a.T) * students) - 2 * jnp.sum((a @ b.T) * teachers) + task.constant


class Constraints(NamedTuple):
    """How far order parameters are inside (positive) or outside (negative) the range that weights can realise.

    - `ball`: 1 - u_iᵀ M⁺ u_i per student, M the teachers' correlation matrix (Eq. 10; Eq. 31 for teachers that are not
      orthogonal).
    - `box`: √(ball_i) √(ball_i') - |ρ_ii' - u_iᵀ M⁺ u_i'| per pair of students (Eq. 28), 0 if d - rank ≤
      (Eq. 33, 35).
    - `determinant`: least eigenvalue of ρ - u M⁺ uᵀ, the Gram matrix of the parts outside the teachers' span. Weights
      exist if and only if it is not negative and its rank is at most d - rank(teachers); for n ≤ 2 the box says the
      same.
    - `span`: distance of each u_i from the range of M, zero unless teachers are linearly dependent.
    """

    ball: np.ndarray
    box: np.ndarray
    determinant: float
    span: np.ndarray


def constraints(teacher: Teacher, order: OrderParameters) -> Constraints:
    """The constraints of Simsek et al. 2023, Eq. 10, 28, 31, evaluated for isotropic inputs; see `Constraints`."""
    inverse, _, coordinates = _teacher_geometry(teacher)
    u, rho = np.asarray(order.student_teacher), np.asarray(order.student_student)
    inside = u @ inverse @ u.T
    ball = 1 - np.diagonal(inside)
    room = np.sqrt(np.maximum(ball, 0.0))
    box = np.outer(room, room) - np.abs(rho - inside)
    np.fill_diagonal(box, 0.0)
    outside = rho - inside
    span = np.linalg.norm(u - u @ inverse @ coordinates @ coordinates.T, axis=1)
    return Constraints(ball, box, float(np.linalg.eigvalsh((outside + outside.T) / 2)[0]), span)


def reconstruct(teacher: Teacher, order: OrderParameters, *, tolerance: float = 1e-10) -> TwoLayer:
    """Weights with these order parameters in the teacher's dimension, or an error that says why none exist.

    The part in the teachers' span is determined; the rest is, up to a rotation, a square root of the Gram matrix
    ρ - u M⁺ uᵀ, which must be positive semidefinite with rank at most d - rank(teachers).
    """
    found = constraints(teacher, order)
    if found.span.max() > tolerance:
        raise ValueError(
            f"No weights have these correlations: the teachers are linearly dependent and student "
            f"{int(found.span.argmax())} is {found.span.max():.3g} off the correlations they allow."
        )
    if found.ball.min() < -tolerance:
        raise ValueError(
            f"No weights have these correlations: student {int(found.ball.argmin())} has u·M⁺u = "
            f"{1 - found.ball.min():.6g} > 1 (Eq. 10, 31)."
        )
    if found.determinant < -tolerance:
        raise ValueError(
            f"No weights have these correlations: the Gram matrix of the parts outside the teachers' span has the "
            f"eigenvalue {found.determinant:.3g} < 0 (least box constraint: {found.box.min():.3g})."
        )
    inverse, basis, coordinates = _teacher_geometry(teacher)
    u, rho = np.asarray(order.student_teacher), np.asarray(order.student_student)
    outside = rho - u @ inverse @ u.T
    values, vectors = np.linalg.eigh((outside + outside.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    there = teacher.dim - len(basis)
    if np.any(values[there:] > tolerance):
        raise ValueError(
            f"No weights have these correlations in dimension {teacher.dim}: outside the teachers' span "
            f"{int(np.sum(values > tolerance))} dimensions are needed, and there are only {there}."
        )
    kept = min(there, len(values))
    # Householder's QR completes the basis: columns of zeros become unit vectors orthogonal to all before them.
    completed = np.linalg.qr(np.concatenate([basis.T, np.zeros((teacher.dim, kept))], axis=1))[0]
    unit = u @ inverse @ coordinates @ basis
    unit += (vectors[:, :kept] * np.sqrt(np.maximum(values[:kept], 0.0))) @ completed[:, len(basis) :].T
    return TwoLayer(np.asarray(order.norms)[:, None] * unit, order.outgoing)


def _teacher_geometry(teacher: Teacher) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M⁺ of the teachers' correlations M, an orthonormal basis of their span (rows), their directions in that basis."""
    v = np.asarray(teacher.incoming)
    lengths = np.linalg.norm(v, axis=1, keepdims=True)
    left, singular, rows = np.linalg.svd(v / np.where(lengths > 0, lengths, 1.0), full_matrices=False)
    rank = int(np.sum(singular > _RANK_TOLERANCE * singular[0]))
    left, singular, rows = left[:, :rank], singular[:rank], rows[:rank]
    return (left / singular**2) @ left.T, rows, left * singular
