"""Descent against closed forms: a quadratic, and soft thresholding of singular values, the least-norm problem of depth two."""

import jax.numpy as jnp
import numpy as np
import pytest

from toys import Toy
from understudy.dynamics.descent import descend, descend_to_least_norm, quasi_newton
from understudy.tasks.regularised import Regularised


def test_descent_and_quasi_newton_agree_on_a_quadratic():
    task = Toy(lambda v: jnp.sum(jnp.array([1.0, 5.0, 20.0]) * (v - 1) ** 2) + 1, 3)
    points, losses = descend(task, jnp.zeros((2, 3)), 2000, 5e-2)
    np.testing.assert_allclose(points, 1, atol=1e-3)
    np.testing.assert_allclose(losses, 1, atol=1e-4)
    point, loss, norm = quasi_newton(task, jnp.zeros(3))
    np.testing.assert_allclose(point, 1, atol=1e-9)
    assert (loss, norm) == (pytest.approx(1), pytest.approx(0, abs=1e-8))


def test_least_norm_networks_reach_the_soft_thresholded_matrix():
    """min ‖A - Y‖² + 2λ‖A‖_* lowers every singular value by λ, to zero at the least."""
    rng = np.random.default_rng(0)
    u, v = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.linalg.qr(rng.normal(size=(3, 3)))[0]
    values = np.array([3.0, 1.0, 0.05])
    target = u @ np.diag(values) @ v
    task = Regularised(np.eye(3), target.T, (5,), penalty=0.1, bias=0.0, activation="linear", weights=np.ones(3))
    points, losses = descend_to_least_norm(task, task.glorot_starts(range(4), 2.0), steps=2000)
    assert [float(task.loss(p)) for p in points] == pytest.approx(losses.tolist(), rel=1e-13)
    kept = np.maximum(values - 0.1, 0)
    least = np.sum((values - kept) ** 2) + 0.2 * np.sum(kept)
    assert float(losses.min()) == pytest.approx(least, rel=1e-4)
    best, loss, norm = quasi_newton(task, points[int(jnp.argmin(losses))])
    assert loss == pytest.approx(least, rel=1e-10)
    assert norm < 1e-5
    first, second = task.unflatten(best)
    np.testing.assert_allclose(np.linalg.svd(second @ first, compute_uv=False), kept, atol=1e-4)
