"""Losses on data: costs by name, class labels, kinks of any network, symmetries, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.tasks import costs

RNG = np.random.default_rng(3)
X = RNG.normal(size=(7, 2))
LABELS = np.array([0, 2, 1, 0, 2, 2, 0])


class Open(eqx.Module):
    """A network of a user's own."""

    weight: jax.Array

    def __call__(self, x, activation):
        return jnp.sum(activation(x @ self.weight.T), axis=-1)


class Hidden(Open):
    """The same, one sample at a time: its pre-activations cannot be seen from outside."""

    def __call__(self, x, activation):
        return jax.vmap(lambda row: jnp.sum(activation(self.weight @ row)))(x)


def test_class_labels_are_one_hot_targets():
    deep = us.Deep.glorot([2, 4, 3], seed=0)
    by_label = us.Empirical(deep, X, LABELS, activation="tanh", cost="cross-entropy")
    outputs = np.asarray(deep(jnp.asarray(X), "tanh"))
    plain = np.mean(np.log(np.exp(outputs).sum(axis=1)) - outputs[np.arange(7), LABELS])
    assert float(by_label.loss(deep)) == pytest.approx(plain, abs=1e-14)
    one_hot = us.Empirical(deep, X, np.eye(3)[LABELS], activation="tanh", cost="cross-entropy")
    assert float(one_hot.loss(deep)) == pytest.approx(plain, abs=1e-14)


@pytest.mark.parametrize("targets", [LABELS % 2, 2 * (LABELS % 2) - 1])
def test_logistic_cost_takes_both_kinds_of_labels(targets):
    network = us.TwoLayer(RNG.normal(size=(3, 2)), RNG.normal(size=3))
    task = us.Empirical(network, X, targets, activation="tanh", cost="logistic")
    signs = 2 * (LABELS % 2) - 1
    plain = np.mean(np.log1p(np.exp(-signs * np.asarray(network(jnp.asarray(X), "tanh")))))
    assert float(task.loss(network)) == pytest.approx(plain, abs=1e-14)


def test_targets_in_a_row_fit_a_network_with_one_output():
    deep = us.Deep.glorot([2, 3, 1], seed=0)
    row, column = (us.Empirical(deep, X, y, activation="tanh") for y in (X[:, 0], X[:, :1]))
    assert float(row.loss(deep)) == float(column.loss(deep))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": np.ones((7, 5))}, "inputs of dimension 2; received dimension 5"),
        ({"cost": "hinge"}, "cost is 'squared', 'cross-entropy', 'logistic' or a function; received 'hinge'"),
        ({"targets": LABELS}, "cost='cross-entropy'"),
        ({"targets": LABELS - 1, "cost": "cross-entropy"}, "whole numbers 0, 1"),
        ({"targets": LABELS + 0.5, "cost": "cross-entropy"}, "np.unique"),
        ({"targets": LABELS + 1, "cost": "cross-entropy"}, "only 3 outputs"),
        ({"targets": -np.eye(3)[LABELS], "cost": "cross-entropy"}, "not negative"),
        ({"targets": np.full((7, 3), 0.3), "cost": "logistic"}, "0 and 1, or -1 and 1"),
        ({"targets": np.ones(3)}, "as many targets"),
    ],
)
def test_bad_data_is_refused(arguments, message):
    options = {"inputs": X, "targets": np.zeros((7, 3)), "cost": "squared"} | arguments
    with pytest.raises(ValueError, match=message):
        us.Empirical(
            us.Deep.glorot([2, 4, 3]), options["inputs"], options["targets"], activation="tanh", cost=options["cost"]
        )


def test_a_module_that_cannot_be_called_is_refused():
    with pytest.raises(ValueError, match=r"network\(x, activation\)"):
        us.Empirical(Open(jnp.zeros((2, 5))), X, X[:, 0], activation="tanh")


def test_a_pair_of_arrays_is_a_two_layer_network():
    w, a = RNG.normal(size=(3, 2)), RNG.normal(size=3)
    data = us.Empirical(us.TwoLayer(w, a), X, X[:, 0], activation="tanh")
    population = us.Population(us.Teacher.orthonormal(2), 3)
    for task in (data, population):
        assert float(task.loss((w, a))) == float(task.loss(us.TwoLayer(w, a)))


NETWORKS = {
    "two-layer": us.TwoLayer(RNG.normal(size=(3, 2)), RNG.normal(size=3)),
    "deep": us.Deep.glorot([2, 3, 4, 1], seed=1, bias=0.3),
    "own": Open(jnp.asarray(RNG.normal(size=(3, 2)))),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_kinks_of_every_network_are_seen(name):
    network = NETWORKS[name]
    task = us.Empirical(network, X, X[:, 0], activation="relu")
    vector = task.flatten(network)
    hidden = task.hidden_values(vector)
    assert hidden.shape[0] == {"two-layer": 21, "deep": 49, "own": 21}[name]
    assert task.kinks(vector) == []
    zero = jnp.zeros_like(hidden)
    assert float(task.gated_value(vector, jnp.sign(hidden), zero)) == pytest.approx(float(task.loss(vector)), abs=1e-14)
    np.testing.assert_allclose(task.gated_hidden(vector, jnp.sign(hidden)), hidden, atol=1e-14)
    assert float(task.smoothed_value(vector, 1e-9)) == pytest.approx(float(task.loss(vector)), abs=1e-8)
    # A pre-activation is zero at a distance of |z| / ‖∇z‖, to first order: exactly, in the first layer.
    if name != "deep":
        rows = np.abs(np.asarray(hidden).reshape(7, 3)) / np.linalg.norm(X, axis=1)[:, None]
        assert task.kink_distance(vector) == pytest.approx(rows.min(), rel=1e-12)


def test_a_point_on_a_kink_is_no_minimum_where_the_loss_falls_to_one_side():
    network = us.TwoLayer([[0.0, 1.0]], [1.0])
    inputs, targets = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 1.0])
    task = us.Empirical(network, inputs, targets, activation="relu")
    assert task.kinks(network)
    assert us.certify(task, network).kind == "unconverged"  # the loss falls as w_1 grows


def test_hidden_kinks_are_admitted():
    network = Hidden(jnp.asarray(RNG.normal(size=(3, 2))))
    task = us.Empirical(network, X, X[:, 0], activation="relu")
    assert not task.kinked
    assert "cannot be seen" in task.kinks(network)[0]
    assert us.certify(task, network).kind != "minimum"
    assert us.Empirical(network, X, X[:, 0], activation="tanh").kinks(network) == []


@pytest.mark.parametrize("name", ["two-layer", "deep"])
def test_rescaling_does_not_change_the_loss(name):
    task = us.Empirical(NETWORKS[name], X, X[:, 0], activation="relu")
    vector = task.flatten(NETWORKS[name])
    tangents = task.symmetry_tangents(vector)
    assert tangents.shape == ({"two-layer": 3, "deep": 7}[name], task.size)
    assert jnp.abs(tangents @ task.gradient(vector)).max() < 1e-14
    assert us.Empirical(NETWORKS[name], X, X[:, 0], activation="tanh").symmetry_tangents(vector).shape[0] == 0


def test_the_same_seed_gives_the_same_student_on_data_and_on_gaussian_inputs():
    data = us.Empirical(us.TwoLayer(np.zeros((3, 2)), np.zeros(3)), X, X[:, 0], activation="erf")
    population = us.Population(us.Teacher.orthonormal(2), 3)
    for init in ("gaussian", "glorot"):
        first, second = (task.unflatten(task.starts([5], init)[0]) for task in (data, population))
        np.testing.assert_array_equal(first.incoming, second.incoming)
        np.testing.assert_array_equal(first.outgoing, second.outgoing)


def test_named_costs_are_not_negative():
    for name, cost in costs.COSTS.items():
        assert costs.is_bounded(cost), name
    assert us.Empirical(NETWORKS["own"], X, X[:, 0], activation="erf", cost=lambda f, y: f - y).lower_bound == -np.inf


def test_the_cross_entropy_needs_one_output_per_class():
    network = us.TwoLayer(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ValueError, match=r"one output per class; received one with a single output.*cost='logistic'"):
        us.Empirical(network, np.ones((4, 3)), np.array([0, 1, 0, 1]), activation="tanh", cost="cross-entropy")
