"""Pruning of channels changes nothing where it should."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.networks.convolutional import Convolutional
from understudy.papers.alignment.channels import fan_out, keep_channels, prune_channels

RNG = np.random.default_rng(0)


@pytest.mark.thorough
def test_channels_that_nothing_listens_to_can_go():
    network = Convolutional.start([4, 3], 2, size=8, seed=1)
    silent = network.kernels[1].at[:, :, 2].set(0.0)
    weight = network.weight.reshape(2, -1, 3).at[:, :, 0].set(0.0).reshape(2, -1)
    network = Convolutional((network.kernels[0], silent), network.biases, weight, network.bias)
    images = jnp.asarray(RNG.normal(size=(5, 8, 8, 3)))
    smaller, kept = prune_channels(network, 0.34)
    assert [k.tolist() for k in kept] == [[0, 1, 3], [1, 2]]
    np.testing.assert_allclose(smaller(images), network(images), atol=1e-13)
    assert [f.shape for f in fan_out(smaller)] == [(3,), (2,)]
    assert [h.shape for h in smaller.hidden(images)] == [(5, 6, 6, 3), (5, 4, 4, 2)]


def test_bad_choices_are_explained():
    network = Convolutional.start([2], 3, size=4)
    with pytest.raises(ValueError, match="some channels are kept"):
        keep_channels(network, [[]])
    with pytest.raises(ValueError, match="below 1"):
        prune_channels(network, 1.0)
