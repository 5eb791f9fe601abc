"""Merging: function kept, norm never up, for every homogeneous activation, depth, bias and number of outputs."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.networks import Deep, TwoLayer
from understudy.surgery import merge, reduce_by_covariance, squared_norm

RNG = np.random.default_rng(3)


def split(net, activation, *, opposite=False):
    """Each hidden neuron in two aligned (or opposite) ones of different sizes, with outgoing weights that may cancel in part."""
    degree = 2 if activation == "quadratic" else 1
    weights, biases = [np.array(w) for w in net.weights], [np.array(b) for b in net.biases]
    turn = -1.0 if opposite else 1.0
    back = -1.0 if opposite and activation == "linear" else 1.0
    for l in range(len(weights) - 1):
        first, second, share = RNG.uniform(0.3, 2, (3, len(weights[l])))
        weights[l + 1] = np.concatenate(
            [weights[l + 1] * share / first**degree, back * weights[l + 1] * (1 - share) / second**degree], axis=1
        )
        weights[l] = np.concatenate([first[:, None] * weights[l], turn * second[:, None] * weights[l]])
        biases[l] = np.concatenate([first * biases[l], turn * second * biases[l]])
    return Deep(tuple(map(jnp.asarray, weights)), tuple(map(jnp.asarray, biases)))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("activation", "opposite"),
    [("relu", False), ("abs", True), ("linear", True), ("quadratic", True), ("quadratic", False)],
)
def test_split_neurons_merge_in_every_layer(activation, opposite):
    net = Deep.glorot([3, 5, 4, 2], seed=1, bias=0.3)
    wide = split(net, activation, opposite=opposite)
    found = merge(wide, activation)
    assert [w.shape for w in found.network.weights] == [w.shape for w in net.weights]
    report = found.report
    assert (report.before, report.after) == (18, 9)
    assert report.layers[0].groups == tuple((i, i + 5) for i in range(5))
    assert report.norm_after <= report.norm_before
    assert report.norm_after == pytest.approx(squared_norm(found.network))
    assert report.relative_change < 1e-13
    x = jnp.asarray(RNG.normal(size=(50, 3)))
    np.testing.assert_allclose(found.network(x, activation), net(x, activation), atol=1e-12)


def test_opposite_relu_neurons_do_not_merge():
    wide = split(Deep.glorot([3, 4, 2], seed=1), "relu", opposite=True)
    assert merge(wide, "relu").report.after == 8


def test_a_merged_neuron_has_the_least_norm_of_its_function():
    """Against a scan of the scale α: α² + ‖A‖²/α^(2p)."""
    for activation, p in (("relu", 1), ("quadratic", 2)):
        found = merge(TwoLayer([[1.0, 2.0], [2.0, 4.0]], [[1.0, -2.0], [0.5, 3.0]]), activation)
        a, w = np.asarray(found.network.outgoing)[0], np.asarray(found.network.incoming)[0]
        scales = np.geomspace(0.2, 5, 2001)
        costs = scales**2 * (w @ w) + (a @ a) / scales ** (2 * p)
        assert squared_norm(found.network) <= costs.min() * (1 + 1e-12)


def test_cancelling_and_silent_neurons_are_removed():
    net = TwoLayer([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [2.0, -1.0, 5.0, 0.0, 1.0])
    found = merge(net, "relu")
    assert found.network.width == 1
    assert found.report.layers[0].removed == (0, 1, 2, 3)
    assert found.report.largest_change < 1e-15
    nothing = merge(TwoLayer([[1.0, 0.0], [1.0, 0.0]], [1.0, -1.0]), "relu")
    assert nothing.network.width == 0
    assert nothing.report.norm_after == 0


def test_untouched_neurons_keep_their_weights():
    net = Deep.glorot([3, 6, 2], seed=4, bias=0.2)
    same = merge(net, "relu")
    np.testing.assert_array_equal(same.network.weights[0], net.weights[0])
    assert same.report.largest_change == 0
    assert same.report.layers[0].groups == ()


def test_tolerance_trades_neurons_for_accuracy():
    net = split(Deep.glorot([3, 4, 1], seed=5), "relu")
    noisy = Deep((net.weights[0] + 1e-3 * jnp.asarray(RNG.normal(size=(8, 3))), net.weights[1]), net.biases)
    assert merge(noisy, "relu").report.after == 8
    found = merge(noisy, "relu", tolerance=0.02)
    assert found.report.after == 4
    assert 1e-6 < found.report.relative_change < 1e-2
    assert found.report.norm_after <= found.report.norm_before


def test_on_data_silent_and_proportional_neurons_go():
    x = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [3.0, 3.0, 0.0]])  # the third coordinate is never used
    net = TwoLayer([[1.0, 0.0, 5.0], [2.0, 0.0, 0.0], [-1.0, -1.0, 0.0]], [1.0, 1.0, 1.0])
    assert merge(net, "relu").report.after == 3
    found = merge(net, "relu", inputs=x)
    assert found.report.after == 1
    assert found.report.layers[0].removed == (2,)
    assert found.report.inputs == "data"
    assert found.report.largest_change < 1e-14
    assert found.report.norm_after <= found.report.norm_before
    assert (
        np.asarray(found.network.incoming)[0, 2] == 0
    )  # the member with the least weights for its activation serves both


@pytest.mark.parametrize("activation", ["relu", "abs"])
@pytest.mark.parametrize("deep", [True, False])
def test_reduction_by_covariance_keeps_outputs_and_covariances(activation, deep):
    n = 3
    x = RNG.normal(size=(n, 3))
    net = (
        Deep.glorot([3, 40, 30, 2], seed=6, bias=0.3)
        if deep
        else TwoLayer(RNG.normal(size=(40, 3)), RNG.normal(size=(40, 2)))
    )
    found = reduce_by_covariance(net, activation, x)
    limit = n * (n + 1) if activation == "relu" else n * n
    assert all(layer.after <= limit for layer in found.report.layers)
    assert found.report.relative_change < 1e-10
    assert found.report.norm_after <= found.report.norm_before * (1 + 1e-12)
    first = [np.asarray(m.weights[0] if deep else m.incoming) @ x.T for m in (net, found.network)]
    if deep:
        first = [z + np.asarray(m.biases[0])[:, None] for z, m in zip(first, (net, found.network), strict=True)]
    np.testing.assert_allclose(first[0].T @ first[0], first[1].T @ first[1], rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: merge(TwoLayer([[1.0]], [1.0]), "erf"), "received 'erf'"),
        (lambda: merge(TwoLayer([[1.0]], [1.0]), "relu", tolerance=2.0), "less than 2; received 2.0"),
        (lambda: merge(TwoLayer([[[1.0]]], [[1.0]]), "relu"), "one network"),
        (lambda: merge(Deep.glorot([2, 1]), "relu"), "depth must be at least 2"),
        (lambda: merge(TwoLayer([[1.0]], [1.0]), "relu", inputs=np.ones((2, 3))), r"\(N, 1\)"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
