"""Two-layer networks: shapes and the forward pass."""

import jax
import numpy as np
import pytest

from understudy import TwoLayer


def test_the_forward_pass_is_the_sum_over_neurons():
    rng = np.random.default_rng(0)
    w, a, x = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=(5, 4))
    expected = sum(a[i] * np.maximum(x @ w[i], 0) for i in range(3))
    network = TwoLayer(w, a)
    np.testing.assert_allclose(network(jax.numpy.asarray(x), "relu"), expected, rtol=1e-14)
    assert network(jax.numpy.asarray(x[0]), "relu").shape == ()
    assert (network.width, network.dim) == (3, 4)


def test_vector_outputs():
    rng = np.random.default_rng(1)
    w, a, x = rng.normal(size=(3, 4)), rng.normal(size=(3, 2)), rng.normal(size=(5, 4))
    np.testing.assert_allclose(TwoLayer(w, a)(jax.numpy.asarray(x), "tanh"), np.tanh(x @ w.T) @ a, rtol=1e-13)


def test_lists_and_integers_become_floats():
    network = TwoLayer([[1, 0], [0, 2]], [1, 1])
    assert network.incoming.dtype == network.outgoing.dtype == np.float64


def test_a_batch_goes_through_vmap():
    rng = np.random.default_rng(2)
    batch = TwoLayer(rng.normal(size=(6, 3, 4)), rng.normal(size=(6, 3)))
    x = jax.numpy.asarray(rng.normal(size=(5, 4)))
    with pytest.raises(ValueError, match="takes one network; these are 6"):
        batch(x, "erf")
    outputs = jax.vmap(lambda network: network(x, "erf"))(batch)
    one = TwoLayer(batch.incoming[2], batch.outgoing[2])
    np.testing.assert_allclose(outputs[2], one(x, "erf"), rtol=1e-13)
