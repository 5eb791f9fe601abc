"""Costs of convolutional networks."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.networks.convolutional import Convolutional
from understudy.papers.alignment.costs import cross_entropy


def test_cross_entropy_of_equal_scores_is_that_of_chance():
    network = Convolutional.start([2], 10, size=4)
    network = Convolutional(network.kernels, network.biases, jnp.zeros_like(network.weight), network.bias)
    assert float(cross_entropy(network, jnp.ones((3, 4, 4, 3)), jnp.asarray([0, 5, 9]))) == pytest.approx(np.log(10))
