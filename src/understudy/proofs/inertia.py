"""The signs of a symmetric matrix's eigenvalues, proved: Sylvester's law of inertia and Gershgorin's discs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.proofs.balls import Matrix, ball, from_floats, to_floats


class Signs(NamedTuple):
    """Numbers of negative and positive eigenvalues of a nonsingular symmetric matrix."""

    negative: int
    positive: int


def signs_of(matrix: Matrix) -> Signs | None:
    """The inertia of every symmetric matrix in the enclosure, or None if it could not be proved.

    Let C = VᵀMV, where the columns of V are approximate eigenvectors divided by the roots of their |eigenvalues|. If no
    Gershgorin disc of C contains 0, then C and V are nonsingular, and the discs on either side of 0 count the
    eigenvalues of M (Sylvester).
    """
    middle = to_floats(matrix)
    if not np.all(np.isfinite(middle)):
        return None
    values, vectors = np.linalg.eigh((middle + middle.T) / 2)
    if np.any(values == 0):
        return None
    v = from_floats(vectors / np.sqrt(np.abs(values)))
    signs = []
    for i, row in enumerate((v.transpose() * matrix * v).tolist()):
        others = sum((abs(x) for j, x in enumerate(row) if j != i), ball(0))
        if row[i] > others:
            signs.append(1)
        elif row[i] < -others:
            signs.append(-1)
        else:
            return None
    return Signs(signs.count(-1), signs.count(1))
