"""Verified linear algebra of the checker: the interval Newton step, and signs of eigenvalues by elimination."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb, arb_mat

from understudy.proofs.checker.jets import Ball

Matrix = Any


def middle(matrix: Matrix) -> np.ndarray:
    """Rounded midpoints."""
    return np.array([[float(x.mid()) for x in row] for row in matrix.tolist()])


def newton_step(jacobian: Matrix, residual: list[Ball]) -> list[Ball] | None:
    """Enclosure of M⁻¹ b for every M of the enclosure, by elimination; None if some M may be singular."""
    guess = middle(jacobian)
    if not np.all(np.isfinite(guess)):
        return None
    try:
        helper = arb_mat(np.linalg.inv(guess).tolist())
        return list((helper * jacobian).solve(helper * arb_mat(len(residual), 1, residual)).entries())
    except (ZeroDivisionError, np.linalg.LinAlgError):
        return None


def signs(matrix: Matrix) -> tuple[int, int] | None:
    """Numbers of negative and positive eigenvalues of every symmetric matrix in the enclosure, by LDLᵀ, or None.

    The matrix is first transformed to the basis V of approximate eigenvectors. If all pivots of LDLᵀ of VᵀMV are
    nonzero, this matrix and V are nonsingular.
    """
    guess = middle(matrix)
    if not np.all(np.isfinite(guess)):
        return None
    _, vectors = np.linalg.eigh((guess + guess.T) / 2)
    v = arb_mat(vectors.tolist())
    rows = (v.transpose() * matrix * v).tolist()
    negative = positive = 0
    for k in range(len(rows)):
        pivot = rows[k][k]
        if pivot > 0:
            positive += 1
        elif pivot < 0:
            negative += 1
        else:
            return None
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / pivot
            for j in range(k + 1, len(rows)):
                rows[i][j] -= factor * rows[k][j]
    return negative, positive


def bumped(matrix: Matrix, columns: list[list[Ball]]) -> Matrix:
    """M + Σ t tᵀ over the columns, each scaled to M's size."""
    size = max((abs(float(x.mid())) for x in matrix.entries()), default=1.0) or 1.0
    for t in columns:
        length = sum(float(x.mid()) ** 2 for x in t) or 1.0
        column = arb_mat(len(t), 1, t)
        matrix = matrix + column * column.transpose() * arb(size / length)
    return matrix


def invertible(matrix: Matrix) -> bool:
    """Whether every matrix of the enclosure is invertible."""
    return newton_step(matrix, [arb(0)] * matrix.nrows()) is not None
