"""Population losses of gelu networks: closed form against series, and large norms."""

import jax
import numpy as np
import pytest

import understudy as us


@pytest.mark.thorough
def test_gelu_in_closed_form_and_by_quadrature_agree():
    """A user's copy of gelu is summed by a series, gelu itself by its closed form."""
    copy = us.activations.from_function(lambda x: x * jax.scipy.stats.norm.cdf(x), "own-gelu", growth=1)
    rng = np.random.default_rng(3)
    v, b, p = rng.normal(size=(3, 4)) / 2, rng.normal(size=3), us.TwoLayer(rng.normal(size=(2, 4)) / 2, [0.7, -1.2])
    exact, series = (us.Population(us.Teacher(v, b, sigma), 2) for sigma in ("gelu", copy))
    assert exact.closed_form
    assert not us.Population(exact.teacher, 2, bias="trained").closed_form
    assert float(exact.loss(p)) == pytest.approx(float(series.loss(p)), rel=1e-12)
    np.testing.assert_allclose(exact.gradient(p), series.gradient(p), atol=1e-12)
    np.testing.assert_allclose(exact.hessian(p), series.hessian(p), atol=1e-11)


def test_gelu_at_large_norms_is_relu():
    """Parallel and opposite neurons of norm 1e4: the loss is that of ReLU neurons up to 1/norm²."""
    v = 1e4 * np.array([[1.0, 0.0], [0.6, 0.8]])
    p = us.TwoLayer(1e4 * np.array([[1.0, 1e-9], [-1.0, 0.0]]), [1e-4, -1e-4])
    losses = [float(us.Population(us.Teacher(v, [1e-4, 2e-4], name), 2).loss(p)) for name in ("gelu", "relu")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-7)
    assert np.all(np.isfinite(us.Population(us.Teacher(v, [1e-4, 2e-4], "gelu"), 2).hessian(p)))
