"""Linear networks of least norm: interpolation and Schatten cost against explicit weights and against every other factorisation."""

import numpy as np
import pytest

from understudy.papers.attraction_repulsion.linear_network import (
    balanced_weights,
    interpolate_covariance,
    represented_map,
    schatten_cost,
)

RNG = np.random.default_rng(2)


def norm(weights):
    return sum(np.sum(w**2) for w in weights)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("rank", [1, 3])
def test_balanced_weights_have_the_cost_and_the_covariances(depth, rank):
    a = RNG.normal(size=(3, rank)) @ RNG.normal(size=(rank, 4))
    x = RNG.normal(size=(4, 4))
    weights = balanced_weights(a, depth, [5] * (depth - 1), seed=0)
    assert norm(weights) == pytest.approx(schatten_cost(a, depth), rel=1e-13)
    np.testing.assert_allclose(interpolate_covariance(x, a @ x, 0, depth), x.T @ x)
    hidden = x
    for layer, w in enumerate(weights, start=1):
        hidden = w @ hidden
        np.testing.assert_allclose(interpolate_covariance(x, a @ x, layer, depth), hidden.T @ hidden, atol=1e-12)
    np.testing.assert_allclose(hidden, a @ x, atol=1e-12)


def test_the_formula_as_printed():
    """Xᵀ (X⁻ᵀ ZᵀZ X⁻¹)^(ℓ/L) X with matrix inverses and a matrix power by eigenvalues."""
    x, z = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
    inverse = np.linalg.inv(x)
    values, vectors = np.linalg.eigh(inverse.T @ z.T @ z @ inverse)
    for layer in range(4):
        power = (vectors * values ** (layer / 3)) @ vectors.T
        np.testing.assert_allclose(interpolate_covariance(x, z, layer, 3), x.T @ power @ x, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_no_factorisation_is_cheaper(depth):
    for _ in range(50):
        weights = [RNG.normal(size=(3, 3)) for _ in range(depth)]
        product = np.linalg.multi_dot(weights[::-1]) if depth > 1 else weights[0]
        assert norm(weights) >= schatten_cost(product, depth) * (1 - 1e-12)


def test_more_inputs_than_dimensions_and_fewer():
    a = RNG.normal(size=(2, 3))
    for count in (2, 7):
        x = RNG.normal(size=(3, count))
        found = represented_map(x, a @ x)
        np.testing.assert_allclose(found @ x, a @ x, atol=1e-12)
        assert schatten_cost(found, 2) <= schatten_cost(a, 2) + 1e-12
    with pytest.raises(ValueError, match="No linear map"):
        represented_map(np.ones((1, 3)), np.array([[1.0, 2.0, 3.0]]))
    with pytest.raises(ValueError, match="rank 2; received widths"):
        balanced_weights(a, 2, [1])
    with pytest.raises(ValueError, match="layers 0 … 2"):
        interpolate_covariance(x, a @ x, 3, 2)
    with pytest.raises(ValueError, match="at least one layer"):
        schatten_cost(a, 0)
