"""Two-layer and deep networks: shapes and the forward pass."""

import jax
import numpy as np
import pytest

from understudy import Deep, TwoLayer


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
    with pytest.raises(ValueError, match="takes one network; received a batch of 6"):
        batch(x, "erf")
    outputs = jax.vmap(lambda network: network(x, "erf"))(batch)
    one = TwoLayer(batch.incoming[2], batch.outgoing[2])
    np.testing.assert_allclose(outputs[2], one(x, "erf"), rtol=1e-13)


def test_layers_of_a_deep_network_are_its_hidden_activations_and_outputs():
    network = Deep.glorot([4, 3, 5, 2], seed=0, bias=0.5)
    x = np.random.default_rng(3).normal(size=(6, 4))
    first, second, last = (np.asarray(w) for w in network.weights)
    a, b, c = (np.asarray(bias) for bias in network.biases)
    expected = [np.maximum(x @ first.T + a, 0)]
    expected.append(np.maximum(expected[0] @ second.T + b, 0))
    expected.append(expected[1] @ last.T + c)
    found = network.layers(jax.numpy.asarray(x), "relu")
    for values, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(network(jax.numpy.asarray(x), "relu"), found[-1])
