"""Rank_σ: Carathéodory's bound is reached and never passed, covariances stay, lower bounds hold."""

import numpy as np
import pytest

from understudy.papers.attraction_repulsion.cp_rank import bipartite_matrix, cp_rank
from understudy.papers.attraction_repulsion.rank_bounds import cone_dimension, covariances, rank_bounds
from understudy.surgery.conical import generators, reduce_representation

RNG = np.random.default_rng(1)


@pytest.mark.parametrize(("activation", "dimension"), [("relu", 20), ("abs", 16), ("linear", 10)])
def test_no_pair_needs_more_than_the_dimension_of_its_cone(activation, dimension):
    z = RNG.normal(size=(60, 4))
    assert cone_dimension(activation, 4) == dimension
    many = generators(RNG.normal(size=(200, 4)), activation)
    assert np.linalg.matrix_rank(many, tol=1e-8) == dimension
    reduced = reduce_representation(z, activation)
    assert len(reduced) == (4 if activation == "linear" else dimension)
    for before, after in zip(covariances(z, activation, 0.5), covariances(reduced, activation, 0.5), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-12 * np.abs(before).max())


def test_generators_add_up_to_the_covariances():
    z = RNG.normal(size=(7, 3))
    k, activated = covariances(z, "relu", beta=2.0)
    upper = np.triu_indices(3)
    np.testing.assert_allclose(generators(z, "relu").sum(axis=0), np.concatenate([k[upper], activated[upper] - 4.0]))


def test_copies_and_zero_rows_do_not_count():
    base = RNG.normal(size=(3, 5))
    z = np.concatenate([base, 0.3 * base, np.zeros((2, 5))])
    found = rank_bounds(z, "relu")
    assert (found.lower, found.upper, found.rank) == (3, 3, 3)
    assert found.residual < 1e-14
    assert rank_bounds(np.zeros((2, 3)), "relu").upper == 0


def test_the_cp_rank_bounds_rank_sigma():
    """K = K^σ = B_N: Rank_σ is the cp-rank N²/4, above Rank(K) = N - 1 (Prop. 13, 14)."""
    factor = cp_rank(bipartite_matrix(6)).factor
    found = rank_bounds(np.concatenate([factor, 0.5 * factor]), "relu")
    assert (found.lower, found.upper, found.rank) == (9, 9, 5)
    assert found.cp_lower == 9
    assert rank_bounds(RNG.normal(size=(60, 40)), "relu").cp_lower >= 40  # large layers cost no search


@pytest.mark.parametrize(
    ("z", "activation", "message"), [(np.ones((2, 2)), "erf", "Try relu"), (np.ones(3), "relu", "shape")]
)
def test_bad_input(z, activation, message):
    with pytest.raises(Exception, match=message):
        rank_bounds(z, activation)
