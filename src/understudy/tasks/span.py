"""The span of teachers and students, in which the gradient flow stays."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@dataclass(frozen=True)
class Span:
    """Orthonormal rows: first `teachers` (shared by a batch), then `mixing` @ (`students` - `inside` @ `teachers`).

    The products are formed only on demand, because in large dimensions they cost more than everything else.
    """

    teachers: Float[np.ndarray, "k d"]
    students: Float[np.ndarray, "*batch n d"]
    mixing: Float[np.ndarray, "*batch n n"]
    inside: Float[np.ndarray, "*batch n k"]

    @property
    def rows(self) -> Float[Array, "*batch r d"]:
        """All rows in one array."""
        shared = np.broadcast_to(self.teachers, (*self.students.shape[:-2], *self.teachers.shape))
        return jnp.asarray(
            np.concatenate([shared, self.mixing @ (self.students - self.inside @ self.teachers)], axis=-2)
        )

    def lift(self, coordinates: Float[Array, "m r"], position: int | None = None) -> Float[Array, "m d"]:
        """Vectors with these coordinates; in a batch, with respect to the rows at `position`."""
        at, k, used = () if position is None else position, len(self.teachers), _support(self.teachers)
        own, others = np.asarray(coordinates)[:, :k], np.asarray(coordinates)[:, k:] @ self.mixing[at]
        vectors = others @ self.students[at]
        vectors[:, used] += (own - others @ self.inside[at]) @ self.teachers[:, used]
        return jnp.asarray(vectors)


def span_of(
    teachers: Float[Array, "k d"], students: Float[np.ndarray, "*batch n d"]
) -> tuple[Span, Float[np.ndarray, "k k"], Float[np.ndarray, "*batch n r"]]:
    """The span of both, and the coordinates of the teachers (in their part of it) and of the students."""
    basis, own = _teacher_basis(teachers)
    used = _support(basis)
    inside = students[..., used] @ basis[:, used].T
    total = students @ np.swapaxes(students, -1, -2)
    gram = total - inside @ np.swapaxes(inside, -1, -2)
    norms = np.sqrt(np.diagonal(total, axis1=-2, axis2=-1))
    found = _mixing(gram, norms)
    if found is not None:
        mixing, lower = found
        return Span(basis, students, mixing, inside), own, np.concatenate([inside, lower], axis=-1)
    rows, lower = _orthonormal_rows(basis, students)
    zeros, eye = np.zeros((*rows.shape[:-1], len(basis))), np.eye(rows.shape[-2])
    span = Span(basis, rows, np.broadcast_to(eye, (*rows.shape[:-2], *eye.shape)), zeros)
    return span, own, np.concatenate([inside, lower], axis=-1)


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
    """The input directions that teachers use. There are few for unit vectors along axes, however large d is."""
    for _, (rows, _), used in _bases:
        if rows is basis:
            return used
    return slice(None)


def _mixing(gram: np.ndarray, norms: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The matrix that makes vectors with this Gram matrix orthonormal, and their lower-triangular coordinates.

    It comes from Cholesky's factor, which is exact to rounding times the square of the condition number. The result is
    None unless that is small. It is small for random students in many dimensions.
    """
    try:
        lower = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return None
    if not np.all(np.diagonal(lower, axis1=-2, axis2=-1) > 0.3 * norms):
        return None
    return np.linalg.inv(lower), lower


def _orthonormal_rows(basis: np.ndarray, students: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal rows that complete the teachers', and the students' coordinates in them, for any students.

    If students lie in the span of teachers and other students, some rows are free and might fall into the teachers'
    span. This cannot happen here, because the teachers are among the vectors.
    """
    columns = np.broadcast_to(basis.T, (*students.shape[:-2], *basis.T.shape))
    q, r = np.linalg.qr(np.concatenate([columns, np.swapaxes(students, -1, -2)], axis=-1))
    k = len(basis)
    return np.swapaxes(q[..., :, k:], -1, -2), np.swapaxes(r[..., k:, k:], -1, -2)
