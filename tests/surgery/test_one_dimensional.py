"""Prop. 15: outputs on the data to 1e-12, norm never up, at most 4N - 2 neurons; random, degenerate and unbalanced networks."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.networks import Deep, TwoLayer
from understudy.surgery import merge_by_activity, merge_one_dimensional, most_neurons


def random_net(rng, width):
    return Deep(
        (jnp.asarray(rng.normal(size=(width, 1))), jnp.asarray(rng.normal(size=(1, width)))),
        (jnp.asarray(rng.normal(size=width)), jnp.asarray(rng.normal(size=1))),
    )


def test_random_networks():
    largest = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        net, x = random_net(rng, 12 * n), rng.normal(size=n)
        found = merge_one_dimensional(net, x)
        report = found.report
        assert report.largest_change <= 1e-12
        assert report.norm_after <= report.norm_before
        assert report.after <= most_neurons(x) == 4 * n - 2 < 4 * n
        largest = max(largest, report.after - (4 * n - 2))
        a, c, d = (np.asarray(v).ravel() for v in (*found.network.weights[::-1], found.network.biases[0]))
        np.testing.assert_allclose(a**2, c**2 + d**2, rtol=1e-12)
        again = merge_one_dimensional(found.network, x).report
        assert again.after == report.after  # nothing is left to merge
    assert largest == 0  # the bound is reached


def test_two_neurons_by_hand():
    """Cusps at 0.25 and 0.75 between the inputs 0 and 1: Σ a c = 2, Σ a d = -1, so the cusp is in the middle."""
    net = Deep((jnp.ones((2, 1)), jnp.ones((1, 2))), (jnp.array([-0.25, -0.75]), jnp.zeros(1)))
    found = merge_one_dimensional(net, [0.0, 1.0]).network
    product = float(found.weights[1][0, 0]) * np.array([float(found.weights[0][0, 0]), float(found.biases[0][0])])
    np.testing.assert_allclose(product, [2.0, -1.0], rtol=1e-14)


def test_cusps_on_the_data_duplicates_and_constants():
    c, d, a = [1.0, 1.0, -1.0, 0.0, 0.0, 1.0], [0.0, -1.0, 1.0, 2.0, -1.0, -5.0], [1.0, 2.0, -1.0, 1.0, 1.0, 1.0]
    net = Deep((jnp.array(c)[:, None], jnp.array(a)[None]), (jnp.array(d), jnp.zeros(1)))
    x = np.array([0.0, 1.0, 1.0, 2.0])
    found = merge_one_dimensional(net, x)
    assert found.report.largest_change < 1e-15
    assert found.report.layers[0].removed == (4, 5)
    assert most_neurons(x) == 10


def test_without_biases_four_neurons_are_enough():
    rng = np.random.default_rng(0)
    net = TwoLayer(rng.normal(size=(30, 1)), rng.normal(size=30))
    found = merge_one_dimensional(net, np.array([-2.0, -1.0, 1.0, 3.0]))
    assert found.network.width == 4
    assert found.report.largest_change < 1e-13


def test_any_dimension():
    rng = np.random.default_rng(1)
    net = Deep.glorot([3, 200, 1], seed=2, bias=1.0)
    found = merge_by_activity(net, rng.normal(size=(4, 3)))
    assert found.report.after <= 2 * (2**4 - 1)
    assert found.report.largest_change < 1e-12
    assert found.report.norm_after <= found.report.norm_before


@pytest.mark.parametrize(
    ("net", "activation", "message"),
    [
        (Deep.glorot([2, 3, 1]), "relu", "scalar inputs; received dimension 2"),
        (Deep.glorot([1, 3, 2]), "relu", "2 outputs"),
        (Deep.glorot([1, 3, 3, 1]), "relu", "2 hidden layers"),
        (Deep.glorot([1, 3, 1]), "abs", "received 'abs'"),
    ],
)
def test_bad_input(net, activation, message):
    with pytest.raises(ValueError, match=message):
        merge_one_dimensional(net, [0.0, 1.0], activation)


@pytest.mark.thorough
def test_outputs_by_the_networks_own_forward_pass():
    rng = np.random.default_rng(5)
    net, x = random_net(rng, 60), rng.normal(size=6)
    found = merge_one_dimensional(net, x).network
    before, after = (np.asarray(f(jnp.asarray(x[:, None]), "relu")) for f in (net, found))
    assert np.abs(before - after).max() <= 1e-12
    middle = jnp.asarray(np.linspace(x.min(), x.max(), 97)[:, None])
    assert np.abs(np.asarray(net(middle, "relu") - found(middle, "relu"))).max() > 1e-3  # between the data it changed
