"""A neuron on a kink never makes a false minimum, in a user's own module either."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import understudy as us


class Own(eqx.Module):
    """A user's ReLU network of one neuron."""

    w: Float[Array, " d"]

    def __call__(self, x: Float[Array, "*samples d"], activation: Any) -> Float[Array, "*samples"]:
        return jax.nn.relu(x @ self.w)


@pytest.mark.parametrize(("target", "kind"), [(1.0, "unconverged"), (-1.0, "undecided")])
def test_one_sided_ways_down_are_found(target, kind):
    """The second sample is on the kink: with a positive residual the neuron wants to see it, with a negative one it must not."""
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    network = Own(jnp.array([1.0, 0.0]))
    task = us.Empirical(network, x, np.array([1.0, target]), activation="relu")
    assert float(np.linalg.norm(task.gradient(network))) == 0
    found = us.certify(task, network)
    assert found.kind == kind
    assert "kink" in found.evidence[0]
    if kind == "unconverged":
        step = task.flatten(network) + 1e-3 * found.directions[0]
        assert float(task.loss(step)) < float(task.loss(network)) - 1e-5


def test_a_smooth_module_has_no_kink():
    class Smooth(Own):
        def __call__(self, x: Float[Array, "*samples d"], activation: Any) -> Float[Array, "*samples"]:
            return jnp.tanh(x @ self.w)

    x = np.random.default_rng(0).normal(size=(20, 2))
    network = Smooth(jnp.array([1.0, -0.5]))
    task = us.Empirical(network, x, np.tanh(x @ [1.0, -0.5]), activation="tanh")
    assert us.certify(task, network).kind == "minimum"
