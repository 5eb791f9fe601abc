"""Convolutional networks against SciPy's correlation."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import correlate

from understudy.networks.convolutional import Convolutional, convolve

RNG = np.random.default_rng(0)


def test_convolution_against_scipy():
    x, k = RNG.normal(size=(2, 6, 7, 3)), RNG.normal(size=(3, 3, 3, 4))
    found = np.asarray(convolve(jnp.asarray(x), jnp.asarray(k)))
    for b in range(2):
        for n in range(4):
            np.testing.assert_allclose(found[b, :, :, n], correlate(x[b], k[..., n], mode="valid")[:, :, 0], atol=1e-13)


def test_bad_shapes_are_explained():
    with pytest.raises(ValueError, match="too small for"):
        Convolutional.start([2, 2], 3, size=4)
