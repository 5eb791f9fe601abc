"""Symmetric matrices of second moments: parts, scaling, pivots, inverse. For thousands of rows memory passes count.

LAPACK works in place on `matrix.numpy().T`, which is in Fortran's order; of a symmetric matrix it is the same matrix.
"""

from __future__ import annotations

import numpy as np
import torch

BLOCK = 512
"""Rows that are mirrored at a time."""


def part_of(matrix: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """A copy of the rows and columns `chosen`."""
    first, count = int(chosen[0]) if len(chosen) else 0, len(chosen)
    if torch.equal(chosen, torch.arange(first, first + count)):
        return matrix[first : first + count, first : first + count].clone()
    return matrix[chosen][:, chosen]


def unit_sized(matrix: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """Entries over the sizes of their row and column; a size of infinity gives zero.

    >>> unit_sized(torch.tensor([[4.0, 2.0], [2.0, 9.0]]), torch.tensor([2.0, 3.0]))[0, 1].item()
    0.3333333432674408
    """
    return (matrix / size[:, None]).div_(size)


def mirror(matrix: torch.Tensor) -> torch.Tensor:
    """Copy the lower triangle to the upper one, in blocks, so that no second matrix is needed."""
    array = matrix.numpy()
    for i in range(0, len(array), BLOCK):
        corner = array[i : i + BLOCK, i : i + BLOCK]
        np.copyto(corner, np.tril(corner) + np.tril(corner, -1).T)
        array[i : i + BLOCK, i + BLOCK :] = array[i + BLOCK :, i : i + BLOCK].T
    return matrix


def exceeds(matrix: torch.Tensor, least: float) -> bool:
    """Whether all eigenvalues are above `least`: a Cholesky factorisation of the matrix minus `least` ends.

    Then all pivots are, in any order. It takes half the time of a factorisation with pivots.
    """
    from scipy.linalg.lapack import dpotrf

    shifted = matrix.clone()
    shifted.diagonal().sub_(least)
    return dpotrf(shifted.numpy().T, overwrite_a=1, clean=0)[1] == 0


def pivots_of(matrix: torch.Tensor, tolerance: float) -> tuple[torch.Tensor, int]:
    """Rows in the order of a Cholesky factorisation with pivots, and how many have pivots above `tolerance`."""
    from scipy.linalg.lapack import dpstrf

    _, pivots, rank, _ = dpstrf(matrix.numpy().T, tol=tolerance)
    return torch.from_numpy(pivots.astype(int) - 1), int(rank)


def inverse_of(matrix: torch.Tensor) -> torch.Tensor:
    """The inverse of a positive definite float64 matrix, in its place."""
    from scipy.linalg.lapack import dpotrf, dpotri

    array = matrix.numpy().T
    _, failed = dpotrf(array, overwrite_a=1, clean=0)
    if not failed:
        _, failed = dpotri(array, overwrite_c=1)
    if failed:
        raise torch.linalg.LinAlgError("The matrix of second moments is not positive definite, even with a ridge.")
    return mirror(matrix)
