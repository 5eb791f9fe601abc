"""Coordinates for a proof: an orthonormal basis of the teachers' span, and of what students use beyond it.

A population loss depends on inner products only. A point whose students lie in a subspace that contains the teachers is
critical if and only if it is critical inside, and the Hessian couples inside and outside nowhere. So a proof works in r
coordinates: those of the teachers' span first, then `extra` ones. Each of the remaining d - r directions carries the
same n × n block of the Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy.proofs.balls import Ball, Matrix, ball, flint, from_floats, matrix

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


def used_columns(teachers: np.ndarray) -> np.ndarray:
    """Input coordinates that some teacher uses."""
    return np.flatnonzero(np.any(teachers != 0, axis=0))


def independent_rows(teachers: np.ndarray) -> list[int]:
    """The first rows that span all, by exact elimination."""
    entries = [flint.fmpq(*float(x).as_integer_ratio()) for x in teachers.T.ravel()]
    reduced, rank = flint.fmpq_mat(teachers.shape[1], teachers.shape[0], entries).rref()
    return [next(c for c in range(len(teachers)) if reduced[r, c] != 0) for r in range(rank)]


def teacher_coordinates(teachers: np.ndarray, frame: Frame) -> Matrix:
    """The teachers in the frame, enclosed.

    Coordinates are v_j·q for Gram-Schmidt's q = L⁻¹B, where the rows of B are independent teachers and BBᵀ = LLᵀ.
    """
    used = teachers[:, used_columns(teachers)]
    inside = from_floats(used)
    if frame.basis == "gram-schmidt":
        rows = from_floats(used[independent_rows(used)])
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


def frame_of(teachers: np.ndarray, students: np.ndarray) -> tuple[Frame, np.ndarray]:
    """The frame, and the students' coordinates in it, to rounding. A proof starts from them and does not rely on
    them."""
    columns = used_columns(teachers)
    used = teachers[:, columns]
    rows = independent_rows(used)
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
