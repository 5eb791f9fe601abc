"""Symmetric matrices: each shortcut against the plain computation, in the cases where it may not be taken too."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from understudy.torch import symmetric  # noqa: E402
from understudy.torch.report import rank_of  # noqa: E402


def moments(size, rank, seed=0):
    rows = torch.randn(rank, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return rows.T @ rows


@pytest.mark.parametrize("size", [3, 700])  # below and above one block
def test_the_inverse_is_the_inverse(size):
    matrix = moments(size, 2 * size)
    found = symmetric.inverse_of(matrix.clone())
    torch.testing.assert_close(found, torch.linalg.inv(matrix), rtol=1e-8, atol=1e-12)
    assert torch.equal(found, found.T)


def test_a_matrix_without_an_inverse_is_refused():
    with pytest.raises(torch.linalg.LinAlgError, match="positive definite"):
        symmetric.inverse_of(-torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("chosen", [[], [0, 1, 2], [2, 3], [3, 1], [0, 2]])
def test_parts_are_copies_of_rows_and_columns(chosen):
    matrix, chosen = moments(5, 9), torch.tensor(chosen, dtype=torch.long)
    before = matrix.clone()
    part = symmetric.part_of(matrix, chosen)
    assert torch.equal(part, before[chosen][:, chosen])
    part += 1
    assert torch.equal(matrix, before)


def test_a_limit_on_eigenvalues_is_met_on_one_side_only():
    matrix = moments(6, 9)
    lowest = float(torch.linalg.eigvalsh(matrix)[0])
    assert symmetric.exceeds(matrix, 0.999 * lowest)
    assert not symmetric.exceeds(matrix, 1.001 * lowest)


@pytest.mark.parametrize("rank", [3, 40, 60])
def test_ranks_by_cholesky_are_those_by_eigenvalues(rank, monkeypatch):
    matrix = moments(40, rank)
    by_eigenvalues = rank_of(matrix)
    monkeypatch.setitem(rank_of.__globals__, "EIGENVALUES", 0)
    assert rank_of(matrix) == by_eigenvalues == min(rank, 40)
