"""ReLU networks under weight decay with neurons that have no weights: the largest response decides."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.dynamics.settle import settle
from understudy.regularised import minimise_globally


def data(samples=8, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(samples, 2)), rng.normal(size=(samples, outputs))


def with_a_zero_neuron(task, network):
    """The same function with one more neuron in the last hidden layer, whose weights are zero."""
    *before, incoming, outgoing = (np.asarray(w) for w in network)
    width = incoming.shape[0]
    incoming = np.concatenate([incoming, np.zeros((1, incoming.shape[1]))])
    outgoing = np.insert(outgoing, width, 0.0, axis=1)
    hidden = (*task.widths[1:-2], width + 1)
    wider = us.Regularised(
        np.asarray(task.entry)[:2].T, task.targets, hidden, penalty=task.penalty, bias=task.bias,
        activation=task.activation,
    )  # fmt: skip
    return wider, (*before, incoming, outgoing)


@pytest.mark.few(2)
@pytest.mark.parametrize("activation", ["relu", "abs"])
@pytest.mark.parametrize(("samples", "outputs"), [(8, 1), (12, 2)])
def test_a_global_minimum_stays_one_with_a_zero_neuron(activation, samples, outputs):
    x, y = data(samples, outputs)
    task = us.Regularised(x, y, (4,), penalty=0.1, activation=activation)
    best = minimise_globally(task, tolerance=1e-8, oracle="exact")
    count = len(best.weights)
    narrow = us.Regularised(x, y, (count,), penalty=0.1, activation=activation)
    settled = settle(narrow, narrow.flatten(best.network)).vector
    wider, point = with_a_zero_neuron(narrow, narrow.unflatten(jnp.asarray(settled)))
    found = us.certify(wider, point)
    assert found.kind == "minimum"
    assert "no network of any width" in found.evidence[0]
    assert found.loss == pytest.approx(best.value, rel=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("hidden", [(1,), (2, 1)])
def test_a_local_minimum_that_is_not_global_becomes_a_saddle(hidden):
    x, y = data()
    task = us.Regularised(x, y, hidden, penalty=0.02)
    runs = [r for r in us.fit(task, seeds=8, init="glorot") if r.certificate.kind == "minimum"]
    wider, point = with_a_zero_neuron(task, runs[0].parameters)
    found = us.certify(wider, point)
    assert (found.kind, found.index) == ("strict saddle", 1)  # no curvature along the kinks is negative
    start = np.asarray(wider.flatten(point))
    falls = [float(wider.loss(start + step * found.directions[0])) - found.loss for step in (0.1, 0.01)]
    assert max(falls) < 0
    assert falls[0] / falls[1] == pytest.approx(100, rel=0.3)  # of second order


def test_the_zero_network_is_a_minimum_where_the_penalty_outweighs_every_neuron():
    x, y = data(outputs=2)
    pulls = -2 / len(x) * y.T
    angles = np.linspace(0, 2 * np.pi, 20001)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    largest = float(np.linalg.norm(np.maximum(directions @ x.T, 0.0) @ pulls.T, axis=1).max())
    for share, kind in ((1.01, "minimum"), (0.99, "strict saddle")):
        task = us.Regularised(x, y, (2,), penalty=share * largest / 2, bias=0.0)
        found = us.certify(task, np.zeros(task.size))
        assert (found.kind, found.index) == (kind, 1 if kind == "strict saddle" else 0)


def test_a_neuron_that_no_sample_reaches_is_not_at_rest_under_decay():
    """Its own weights see only the penalty: the gradient is 2λw, and the point is not critical."""
    x, y = np.abs(data()[0]), data()[1]
    task = us.Regularised(x, y, (1,), penalty=0.1, bias=0.0)
    assert us.certify(task, (np.array([[-1.0, -1.0]]), np.zeros((1, 1)))).kind == "unconverged"
