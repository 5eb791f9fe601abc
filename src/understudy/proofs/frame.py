"""Coordinates for a proof: an orthonormal basis of the teachers' span, and of what students use beyond it.

A population loss depends on inner products only. A point whose students lie in a subspace that contains the teachers is
critical if and only if it is critical inside, and the Hessian couples inside and outside nowhere. So a proof works in r
coordinates: those of the teachers' span first, then `extra` ones. Each of the remaining d - r directions carries the
same n × n block of the Hessian.

Inputs with a covariance R² are x = R z, z ~ N(0, I), so that w·x = (w R)·z. If R has an inverse, a proof works with w R
and v R: critical points and the signs of eigenvalues are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from understudy.proofs.balls import Ball, Matrix, ball, flint, from_floats, matrix
from understudy.tasks.exact_form import ExactForm, NoExactFormError

Basis = Literal["coordinates", "gram-schmidt"]

STRAY = 1e-7
"""Components outside the teachers' span shorter than this, relative to the longest student, are taken as zero."""


@dataclass(frozen=True)
class Frame:
    """`basis`: of the teachers' span, the input coordinates that teachers use, or Gram-Schmidt's of the teachers.

    `rank`: dimension of that span; `extra`: further directions of the students; `outside`: directions left.
    """

    basis: Basis
    rank: int
    extra: int
    outside: int

    @property
    def dim(self) -> int:
        """Number r of coordinates."""
        return self.rank + self.extra


def seen_teachers(form: ExactForm) -> list[list[Any]]:
    """The teachers' vectors for inputs with covariance I, as exact fractions: v, or v R for x = R z, z ~ N(0, I)."""
    teachers = _fractions(form.incoming)
    if form.root is None:
        return teachers.tolist()
    root = _fractions(form.root)
    if root.nrows() != root.ncols() or root.det() == 0:
        raise NoExactFormError("Proofs take inputs with a covariance that has an inverse; this one has none.")
    return (teachers * root).tolist()


def _fractions(array: np.ndarray) -> Any:
    entries = [flint.fmpq(*float(x).as_integer_ratio()) for x in array.ravel()]
    rows, columns = array.shape
    return flint.fmpq_mat(rows, columns, entries)


def used_columns(teachers: list[list[Any]]) -> list[int]:
    """Input coordinates that some teacher uses."""
    return [c for c in range(len(teachers[0])) if any(row[c] != 0 for row in teachers)]


def independent_rows(teachers: list[list[Any]]) -> list[int]:
    """The first rows that span all, by exact elimination."""
    reduced, rank = flint.fmpq_mat(teachers).transpose().rref()
    return [next(c for c in range(len(teachers)) if reduced[r, c] != 0) for r in range(rank)]


def teacher_coordinates(form: ExactForm, frame: Frame) -> Matrix:
    """The teachers in the frame, enclosed.

    Coordinates are v_j·q for Gram-Schmidt's q = L⁻¹B, where the rows of B are independent teachers and BBᵀ = LLᵀ.
    """
    teachers = seen_teachers(form)
    columns = used_columns(teachers)
    used = [[row[c] for c in columns] for row in teachers]
    inside = matrix(len(used), len(columns), (ball(x) for row in used for x in row))
    if frame.basis == "gram-schmidt":
        chosen = [used[i] for i in independent_rows(used)]
        rows = matrix(len(chosen), len(columns), (ball(x) for row in chosen for x in row))
        inside = inside * rows.transpose() * _cholesky(rows * rows.transpose()).transpose().inv()
    k = len(teachers)
    return matrix(
        k, frame.dim, (inside[j, c] if c < frame.rank else ball(0) for j in range(k) for c in range(frame.dim))
    )


def teacher_means(teachers: np.ndarray, bias: np.ndarray | None, mean: np.ndarray | None) -> list[Ball]:
    """The teachers' biases for inputs of mean zero: c* + v·mean."""
    found = [ball(0) if bias is None else ball(float(b)) for b in (np.zeros(len(teachers)) if bias is None else bias)]
    if mean is None:
        return found
    shifts = from_floats(teachers) * from_floats(mean[:, None])
    return [c + s for c, s in zip(found, shifts.entries(), strict=True)]


def _cholesky(gram: Matrix) -> Matrix:
    size = gram.nrows()
    lower = matrix(size, size, [0] * size**2)
    for i in range(size):
        for j in range(i + 1):
            rest = gram[i, j] - sum((lower[i, c] * lower[j, c] for c in range(j)), ball(0))
            lower[i, j] = rest.sqrt() if i == j else rest / lower[j, j]
    return lower


def frame_of(form: ExactForm, students: np.ndarray) -> tuple[Frame, np.ndarray]:
    """The frame, and the students' coordinates in it, to rounding. A proof starts from them and does not rely on
    them."""
    exact = seen_teachers(form)
    columns = used_columns(exact)
    rows = independent_rows(exact)
    teachers = np.array([[float(ball(x)) for x in row] for row in exact])
    if form.root is not None:
        students = students @ form.root
    basis: Basis = "coordinates" if len(rows) == len(columns) else "gram-schmidt"
    if basis == "coordinates":
        inside, rest = students[:, columns], np.delete(students, columns, axis=1)
    else:
        q, r = np.linalg.qr(teachers[rows].T)
        q = q * np.sign(np.diagonal(r))
        inside, rest = students @ q, students - students @ q @ q.T
    _, lengths, directions = np.linalg.svd(rest, full_matrices=False)
    longest = float(np.max(np.linalg.norm(students, axis=1)))
    extra = int(np.sum(lengths > STRAY * longest))
    frame = Frame(basis, len(rows), extra, teachers.shape[1] - len(rows) - extra)
    return frame, np.concatenate([inside, rest @ directions[:extra].T], axis=1)
