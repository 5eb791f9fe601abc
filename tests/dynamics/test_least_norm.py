"""Least-norm training against closed forms: soft thresholding of singular values, and the nuclear norm as the cost of depth two."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.dynamics.least_norm import least_norm, polish_least_norm


def forward(weights, x):
    return x @ weights[0].T @ weights[1].T


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    u, v = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.linalg.qr(rng.normal(size=(3, 3)))[0]
    target = u @ np.diag([3.0, 1.0, 0.05]) @ v
    starts = (rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 3, 5)))
    return target, starts, least_norm(forward, starts, np.eye(3), target.T, penalty=0.1, steps=3000)


def test_trained_networks_reach_the_soft_thresholded_matrix(problem):
    """min ‖A - Y‖² + 2λ‖A‖_* lowers every singular value by λ, to zero at the least."""
    target, _, found = problem
    values = np.linalg.svd(target, compute_uv=False)
    kept = np.maximum(values - 0.1, 0)
    least = np.sum((values - kept) ** 2) + 0.2 * np.sum(kept)
    weights, loss, gradient = polish_least_norm(forward, found.best()[0], np.eye(3), target.T, penalty=0.1)
    assert found.losses.min() == pytest.approx(least, rel=1e-4)
    assert loss == pytest.approx(least, rel=1e-10)
    assert gradient < 1e-5
    product = np.asarray(weights[1]) @ np.asarray(weights[0])
    np.testing.assert_allclose(np.linalg.svd(product, compute_uv=False), kept, atol=1e-4)


def test_what_is_reported_is_what_the_networks_are(problem):
    target, starts, found = problem
    for i in range(len(starts[0])):
        first, second = (np.asarray(w)[i] for w in found.parameters)
        norm = np.sum(first**2) + np.sum(second**2)
        assert found.norms[i] == pytest.approx(norm, rel=1e-12)
        assert found.errors[i] == pytest.approx(np.abs(second @ first - target).max(), rel=1e-9)
        assert found.losses[i] == pytest.approx(np.sum((second @ first - target) ** 2) + 0.1 * norm, rel=1e-12)
    best, index = found.best()
    np.testing.assert_array_equal(best[0], jnp.asarray(found.parameters[0])[index])
    with pytest.raises(ValueError, match="first_penalty"):
        least_norm(forward, starts, np.eye(3), target.T, penalty=2.0)
