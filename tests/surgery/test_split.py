"""Splitting and joining keep the function and criticality, in any layer, with any coefficients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.papers.few_neurons.tailored import critical_data
from understudy.surgery import irreducible, join_parts, part_positions, remove, split
from understudy.tasks import Empirical

PARTS = {0: [0.3, -0.5, 1.2], 2: [2.0, -1.0]}


def networks():
    rng = np.random.default_rng(0)
    return [
        (us.TwoLayer(rng.normal(size=(3, 2)), rng.normal(size=3)), 0),
        (us.TwoLayer(rng.normal(size=(3, 2)), rng.normal(size=(3, 2))), 0),
        (us.Deep.glorot([2, 4, 3, 2], seed=1, bias=0.4), 1),
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize(("network", "layer"), networks())
def test_split_keeps_function_and_criticality_and_joins_back(network, layer):
    x = np.random.default_rng(1).normal(size=(50, 2))
    task = critical_data(network, x, activation="softplus", seed=2)
    wide = split(network, PARTS, layer=layer)
    inputs = jnp.asarray(x)
    assert np.abs(np.asarray(wide(inputs, "softplus") - network(inputs, "softplus"))).max() < 1e-14
    wider = Empirical(wide, x, task.targets, activation="softplus")
    assert np.linalg.norm(np.asarray(wider.gradient(wide))) < 1e-12
    positions = part_positions(3, PARTS)
    assert positions == {0: [0, 1, 2], 2: [4, 5]}
    for back in (join_parts(wide, list(positions.values()), layer=layer), irreducible(wide, layer=layer)):
        for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(network), strict=True):
            assert np.abs(np.asarray(a - b)).max() < 1e-14


def test_remove_and_silent_neurons():
    network = us.TwoLayer([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [2.0, 3.0, -2.0])
    assert irreducible(network).outgoing.tolist() == [3.0]
    assert remove(network, [0, 2]).incoming.tolist() == [[0.0, 1.0]]
    silent = us.TwoLayer([[1.0, 0.0]], [0.0])
    assert irreducible(silent).width == 1


def test_bad_input_is_refused():
    network = us.TwoLayer(np.eye(2), np.ones(2))
    with pytest.raises(ValueError, match=r"must sum to one.*sum to 1.2"):
        split(network, {0: [0.5, 0.7]})
    with pytest.raises(ValueError, match="cannot split neuron 5"):
        split(network, {5: [1.0]})
    with pytest.raises(ValueError, match="hidden layers 0 to 0"):
        split(network, {0: [1.0]}, layer=1)
    with pytest.raises(ValueError, match="hidden layers 0 to 0"):
        split(us.Deep.glorot([2, 3, 1]), {0: [1.0]}, layer=1)
    with pytest.raises(ValueError, match="batch of 2"):
        split(us.TwoLayer(np.ones((2, 3, 1)), np.ones((2, 3))), {0: [1.0]})
    with pytest.raises(TypeError, match="a TwoLayer, a Deep network, or a module"):
        split(np.ones(3), {0: [1.0]})
    with pytest.raises(ValueError, match="would change the function"):
        join_parts(network, [[0, 1]])
    with pytest.raises(ValueError, match="disjoint"):
        join_parts(network, [[0, 1], [1]])
    with pytest.raises(ValueError, match="cannot remove"):
        remove(network, [3])
    with pytest.raises(ValueError, match="at least one"):
        remove(network, [0, 1])
