"""Symmetric matrices: each shortcut against the plain computation, in the cases where it may not be taken too."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from understudy.torch import symmetric  # noqa: E402
from understudy.torch.report import rank_of  # noqa: E402
from understudy.torch.select import make_reader  # noqa: E402


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


@pytest.mark.parametrize("scale", [1.0, 1e-7])
@pytest.mark.parametrize("rank", [3, 40, 60])
def test_ranks_by_cholesky_are_those_by_eigenvalues(rank, scale, monkeypatch):
    """With the size of one neuron below the limit of 1e-6 it no longer counts, unless others are missing too."""
    matrix = moments(40, rank)
    matrix[0] *= scale
    matrix[:, 0] *= scale
    reader = make_reader(matrix, matrix[:, :1], torch.arange(40), 1.0)
    by_eigenvalues = rank_of(matrix, reader)
    monkeypatch.setitem(rank_of.__globals__, "EIGENVALUES", 0)
    assert rank_of(matrix, reader) == by_eigenvalues == min(rank, 40 if scale == 1 else 39)


def test_a_reader_remembers_what_is_known_of_its_least_eigenvalue(monkeypatch):
    matrix = moments(6, 9)
    reader = make_reader(matrix, matrix[:, :1], torch.arange(6), 1.0, rows=9)
    lowest = float(torch.linalg.eigvalsh(reader.gram)[0])
    assert reader.exceeds(0.9 * lowest)
    assert not reader.exceeds(1.1 * lowest)
    monkeypatch.setitem(make_reader.__globals__, "exceeds", None)  # not asked again
    assert reader.exceeds(0.8 * lowest)
    assert not reader.exceeds(1.2 * lowest)
    assert not make_reader(matrix, matrix[:, :1], torch.arange(6), 1.0, rows=5).exceeds(1e-10)
