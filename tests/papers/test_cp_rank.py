"""Completely positive rank: certificates both ways, the triangle-free theorem against its cases, searches against both."""

import itertools

import numpy as np
import pytest

from understudy.papers.attraction_repulsion import cp_rank as cp

RNG = np.random.default_rng(0)


def cycle(n):
    return [(i, (i + 1) % n) for i in range(n)]


def gram(edges, n):
    rows = cp.incidence(edges, n)
    return rows.T @ rows


@pytest.mark.parametrize("n", [2, 4, 6, 8, 12])
def test_bipartite_matrices_have_a_quarter_of_n_squared(n):
    matrix = cp.bipartite_matrix(n)
    found = cp.cp_rank(matrix)
    assert (found.lower, found.upper) == (n * n // 4, n * n // 4)
    assert found.residual < 1e-14
    assert found.factor.min() >= 0
    assert cp.are_incompatible(matrix, found.edges)
    assert len(found.edges) == n * n // 4
    # Exactly, in whole numbers: E of the complete bipartite graph.
    whole = cp.incidence([(i, j) for i in range(n // 2) for j in range(n // 2, n)], n).astype(int)
    np.testing.assert_array_equal(whole.T @ whole, matrix.astype(int))
    assert cp.clique_cover(cp.graph(matrix)) == n * n // 4  # an integer program, the other way


def test_a_search_finds_the_factor_and_none_smaller():
    matrix = cp.bipartite_matrix(6)
    factor, residual = cp.search_factor(matrix, 9, starts=40)
    assert residual < cp.ZERO
    np.testing.assert_allclose(factor.T @ factor, matrix, atol=1e-8)
    assert cp.search_factor(matrix, 8, starts=20)[1] > 1e-3


@pytest.mark.parametrize("shift", [0.0, 1e-7, 0.3])
@pytest.mark.parametrize("extra", [[], [(0, 5), (5, 6), (2, 7)]])
@pytest.mark.parametrize("n", [4, 5])
def test_a_component_with_a_cycle_has_its_number_of_edges(n, extra, shift):
    edges = cycle(n) + [(i if i < 5 else i - 5 + n, j - 5 + n) for i, j in extra]
    size = n + len(extra)
    random = np.diag(RNG.uniform(0.5, 2, size))
    matrix = random @ (gram(edges, size) + shift * np.eye(size)) @ random
    found = cp.cp_rank(matrix)
    assert found.lower == found.upper == len(edges)
    assert found.residual < 1e-13


@pytest.mark.parametrize("shift", [0.0, 0.01, 2.0])
def test_a_tree_has_the_rank(shift):
    edges = [(0, 1), (1, 2), (1, 3), (3, 4)]
    matrix = gram(edges, 5) + np.diag([0.0, shift, 0.0, 0.0, 0.0])
    found = cp.cp_rank(matrix)
    assert found.lower == found.upper == np.linalg.matrix_rank(matrix) == (4 if shift == 0 else 5)
    assert found.residual < 1e-14


def test_random_triangle_free_graphs():
    for _ in range(20):
        n = int(RNG.integers(3, 9))
        edges = []
        for i, j in RNG.permutation(list(itertools.combinations(range(n), 2))).tolist():
            if cp.is_triangle_free(cp.graph(gram([*edges, (i, j)], n))):
                edges.append((i, j))
        found = cp.cp_rank(gram(edges, n))
        assert found.lower == found.upper == len(edges)
        assert found.residual < 1e-13


def test_triangles_need_fewer_rows_than_edges():
    """The hypothesis of Prop. 13 is needed: EᵀE of the complete graph on four vertices has six edges and cp-rank four."""
    found = cp.cp_rank(gram(list(itertools.combinations(range(4), 2)), 4))
    assert (found.lower, found.upper) == (4, 4)
    assert found.residual < cp.ZERO


def test_degenerate_matrices():
    assert cp.cp_rank(np.zeros((3, 3))).upper == 0
    assert cp.cp_rank(np.diag([1.0, 0.0, 2.0])).lower == cp.cp_rank(np.diag([1.0, 0.0, 2.0])).upper == 2
    ones = cp.cp_rank(np.ones((4, 4)))
    assert (ones.lower, ones.upper, ones.exact) == (1, 1, True)
    rows = RNG.uniform(size=(2, 6))
    plane = cp.cp_rank(rows.T @ rows)
    assert (plane.lower, plane.upper) == (2, 2)
    assert plane.residual < 1e-13
    assert plane.factor.min() >= 0
    blocks = np.kron(np.eye(2), cp.bipartite_matrix(4))
    assert (cp.cp_rank(blocks).lower, cp.cp_rank(blocks).upper) == (8, 8)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, -1.0], [-1.0, 2.0]], "entries ≥ 0"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive semidefinite"),
        ([[1.0, 2.0]], "square"),
        # doubly non-negative, with the pentagon as its graph, and not completely positive (Berman and Plemmons)
        (
            [[1, 1, 0, 0, 1], [1, 2, 1, 0, 0], [0, 1, 2, 1, 0], [0, 0, 1, 1, 1], [1, 0, 0, 1, 6]],
            "not completely positive",
        ),
    ],
)
def test_what_is_not_completely_positive(matrix, message):
    with pytest.raises(ValueError, match=message):
        cp.cp_rank(np.array(matrix, float))


def test_certificates_can_fail():
    matrix = cp.bipartite_matrix(4)
    assert not cp.are_incompatible(matrix, [(0, 1)])  # no edge
    assert not cp.are_incompatible(matrix, [(0, 2), (2, 0)])  # one edge twice
    assert not cp.are_incompatible(np.ones((3, 3)), [(0, 1), (1, 2)])  # both in one triangle
    with pytest.raises(ValueError, match="even"):
        cp.bipartite_matrix(5)
