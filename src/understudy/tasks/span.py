"""The span of teachers and students, in which the gradient flow stays."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@dataclass(frozen=True)
class Span:
    """Orthonormal rows: first `teachers` (shared by a batch), then `mixing` @ `students`, multiplied when asked for."""

    teachers: Float[np.ndarray, "k d"]
    students: Float[np.ndarray, "*batch n d"]
    mixing: Float[np.ndarray, "*batch n n"]

    @property
    def rows(self) -> Float[Array, "*batch r d"]:
        """All of them in one array."""
        shared = np.broadcast_to(self.teachers, (*self.students.shape[:-2], *self.teachers.shape))
        return jnp.asarray(np.concatenate([shared, self.mixing @ self.students], axis=-2))

    def lift(self, coordinates: Float[Array, "m r"], position: int | None = None) -> Float[Array, "m d"]:
        """Vectors with these coordinates; in a batch, with respect to the rows at `position`."""
        inside, at = np.asarray(coordinates), () if position is None else position
        k = len(self.teachers)
        vectors = (inside[:, k:] @ self.mixing[at]) @ self.students[at]
        used = _support(self.teachers)
        vectors[:, used] += inside[:, :k] @ self.teachers[:, used]
        return jnp.asarray(vectors)


def span_of(
    teachers: Float[Array, "k d"], students: Float[np.ndarray, "*batch n d"]
) -> tuple[Span, Float[np.ndarray, "k k"], Float[np.ndarray, "*batch n r"]]:
    """The span of both, and the coordinates of the teachers (in their part of it) and of the students."""
    basis, own = _teacher_basis(teachers)
    used = _support(basis)
    inside = students[..., used] @ basis[:, used].T
    outside = students.copy()
    outside[..., used] -= inside @ basis[:, used]
    gram = outside @ np.swapaxes(outside, -1, -2)
    left = np.diagonal(gram, axis1=-2, axis2=-1)
    total = left + np.sum(inside**2, axis=-1)
    if np.any(left < total / 4):
        # once more: what cancelled has left rounding along the basis
        outside[..., used] -= (outside[..., used] @ basis[:, used].T) @ basis[:, used]
        gram = outside @ np.swapaxes(outside, -1, -2)
    rows, mixing, lower = _orthonormal(outside, gram, np.sqrt(total)) or _completed(basis, students)
    return Span(basis, rows, mixing), own, np.concatenate([inside, lower], axis=-1)


_bases: list[tuple[Array, tuple[np.ndarray, np.ndarray], slice | np.ndarray]] = []
"""The last few teachers seen, with their bases and supports: both cost a pass over k × d numbers."""


def _teacher_basis(teachers: Array) -> tuple[np.ndarray, np.ndarray]:
    for known, result, _ in _bases:
        if known is teachers:
            return result
    v = np.asarray(teachers)
    if np.allclose(v @ v.T, np.eye(len(v)), rtol=0, atol=1e-15):
        result = v, np.eye(len(v))
    else:
        q, r = np.linalg.qr(v.T)
        result = np.ascontiguousarray(q.T), r.T
    nonzero = np.flatnonzero(np.any(result[0] != 0, axis=0))
    packed = nonzero.size > 0 and nonzero[-1] - nonzero[0] + 1 == nonzero.size
    _bases.insert(0, (teachers, result, slice(nonzero[0], nonzero[-1] + 1) if packed else nonzero))
    del _bases[4:]
    return result


def _support(basis: np.ndarray) -> slice | np.ndarray:
    """The input directions that teachers use: few, for unit vectors along axes, however large d is."""
    for _, (rows, _), used in _bases:
        if rows is basis:
            return used
    return slice(None)


def _orthonormal(vectors: np.ndarray, gram: np.ndarray, norms: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Rows, their mixing to orthonormal ones, and the vectors' lower-triangular coordinates, by Cholesky's factor.

    Mixed rows are orthonormal to the square of the condition number times rounding; where that is not enough it is
    done again (Yamamoto et al. 2015, Numerische Mathematik 131). None if the vectors are too close to dependent.
    """
    try:
        lower = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diagonal(lower, axis1=-2, axis2=-1) / np.where(norms > 0, norms, 1.0)
    mixing = np.linalg.inv(lower)
    if np.all(pivots > 0.3):
        return vectors, mixing, lower
    if not np.all(pivots > 1e-5):
        return None
    rows = mixing @ vectors
    again = np.linalg.cholesky(rows @ np.swapaxes(rows, -1, -2))
    return rows, np.linalg.inv(again), lower @ again


def _completed(basis: np.ndarray, students: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same for students in the span of teachers and other students, whose rows are partly free.

    They might fall into the teachers' span; with the teachers among the vectors they cannot.
    """
    columns = np.broadcast_to(basis.T, (*students.shape[:-2], *basis.T.shape))
    q, r = np.linalg.qr(np.concatenate([columns, np.swapaxes(students, -1, -2)], axis=-1))
    k, n = len(basis), students.shape[-2]
    rows = np.swapaxes(q[..., :, k:], -1, -2)
    return rows, np.broadcast_to(np.eye(n), (*rows.shape[:-1], n)), np.swapaxes(r[..., k:, k:], -1, -2)
