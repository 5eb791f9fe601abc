"""Splitting: Y and V by two routes, the inertia theorem on random critical points, bounds and scenarios."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.papers.few_neurons.tailored import critical_data, critical_teacher
from understudy.points.splitting import (
    Inertia,
    expected_kind,
    inertia_of,
    lower_bound,
    mixing,
    non_trivial,
    split_matrices,
    zeros_of_coupling,
)
from understudy.surgery import split
from understudy.tasks import Empirical
from understudy.tasks.grids import on_grid

MUS = (-1.3, 0.0, 0.25, 0.5, 1.0, 2.2)


def student(rng, width, dim, outputs):
    w = rng.normal(size=(width, dim)) * 0.9
    return us.TwoLayer(w, rng.uniform(0.5, 1.5, size=(width, *outputs)) * rng.choice([-1, 1], size=(width, *outputs)))


def wider(task, network):
    if isinstance(task, us.Population):
        return us.Population(task.teacher, network.width)
    return Empirical(
        network, task.inputs, task.targets, activation=task.activation, cost=task.cost, weights=task.weights
    )


@eqx.filter_jit
def evaluate(task, vector):
    return task.evaluate(vector)


def check_inertia(task, network, neuron, layer=0, mus=MUS):
    _, gradient, hessian = evaluate(task, task.flatten(network))
    narrow = np.asarray(hessian)
    assert np.linalg.norm(np.asarray(gradient)) < 1e-10
    matrices = split_matrices(task, network, neuron, layer=layer)
    threshold = 1e-9 * np.abs(narrow).max()
    split_networks = [split(network, {neuron: [mu, 1 - mu]}, layer=layer) for mu in mus]
    wide = wider(task, split_networks[0])
    for mu, point in zip(mus, split_networks, strict=True):
        predicted = inertia_of(narrow, threshold).plus(matrices.inertia(mu, threshold))
        _, gradient, hessian = evaluate(wide, wide.flatten(point))
        assert predicted == inertia_of(np.asarray(hessian), threshold), (mu, neuron)
        assert np.linalg.norm(np.asarray(gradient)) < 1e-10 * (1 + abs(mu))
    return matrices


@pytest.mark.thorough
@pytest.mark.parametrize(("outputs", "bias", "cost"), [((), False, "squared"), ((2,), True, "log cosh")])
def test_inertia_on_data(outputs, bias, cost):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 2))
    x = np.concatenate([x, np.ones((60, 1))], axis=1) if bias else x
    for seed in range(3):
        network = student(rng, 3, x.shape[1], outputs)
        task = critical_data(network, x, activation="softplus", seed=seed, cost=cost)
        check_inertia(task, network, seed)


@pytest.mark.thorough
def test_inertia_in_a_hidden_layer_with_biases():
    layer = 1
    network = us.Deep.glorot([2, 3, 2, 2], seed=4, bias=0.5)
    x = np.random.default_rng(0).normal(size=(40, 2))
    task = critical_data(network, x, activation="tanh", seed=1)
    matrices = check_inertia(task, network, 1, layer=layer, mus=(-0.7, 0.4))
    assert matrices.curvature.shape == (4, 4)
    assert matrices.coupling.shape == (4, 2)


def test_inertia_on_population_losses():
    rng = np.random.default_rng(3)
    network = student(rng, 2, 2, (2,))
    incoming = rng.normal(size=(8, 2)) * 1.2
    task = critical_teacher(network, incoming, activation="erf")
    check_inertia(task, network, 1)


@pytest.mark.thorough
def test_the_matrices_agree_with_quadrature_and_with_the_wider_hessian():
    """Route 1: pair interactions. Route 2: Eq. 19 on quadrature nodes. Route 3: blocks of the Hessian at a split."""
    rng = np.random.default_rng(5)
    teacher = us.Teacher(rng.normal(size=(3, 2)) * 0.6, rng.normal(size=3), "softplus")
    network = us.TwoLayer(rng.normal(size=(2, 2)) * 0.6, rng.normal(size=2))
    exact = split_matrices(us.Population(teacher, 2), network, 1)
    summed = split_matrices(on_grid(teacher, 2), network, 1)
    assert np.abs(exact.curvature - summed.curvature).max() < 1e-11
    assert np.abs(exact.coupling - summed.coupling).max() < 1e-11
    mu = 0.3
    wide = np.asarray(us.Population(teacher, 3).hessian(split(network, {1: [mu, 1 - mu]}))).reshape(3, 3, 3, 3)
    y = wide[1, :2, 1, :2] / mu - wide[1, :2, 2, :2] / (1 - mu)
    assert np.abs(y - exact.curvature).max() < 1e-11
    assert np.abs(wide[1, :2, 1, 2] - wide[1, :2, 2, 2] - exact.coupling[:, 0]).max() < 1e-11


def test_correlated_inputs():
    covariance = np.array([[1.5, 0.4], [0.4, 0.7]])
    teacher = us.Teacher(np.array([[1.0, 0.2], [0.1, -0.8]]), [1.0, -0.5], "erf")
    network = us.TwoLayer([[0.4, 0.3]], [0.9])
    root = np.linalg.cholesky(covariance)
    turned = us.Population(us.Teacher(teacher.incoming @ root, teacher.outgoing, "erf"), 1)
    there = split_matrices(turned, us.TwoLayer(network.incoming @ root, network.outgoing), 0)
    here = split_matrices(us.Population(teacher, 1, covariance=covariance), network, 0)
    assert np.abs(root @ there.curvature @ root.T - here.curvature).max() < 1e-12
    assert np.abs(root @ there.coupling - here.coupling).max() < 1e-12


def test_bounds_hold_along_the_line():
    rng = np.random.default_rng(8)
    network = student(rng, 2, 2, ())
    x = rng.normal(size=(50, 2))
    task = critical_data(network, x, activation="softplus", seed=3)
    for neuron in range(2):
        matrices = split_matrices(task, network, neuron)
        points = {mu: split(network, {neuron: [mu, 1 - mu]}) for mu in (-1.0, 0.0, 1.0, -4.0, -0.5, 0.2, 0.5, 3.0)}
        wide = wider(task, points[0.0])
        hessians = {mu: np.asarray(wide.hessian(point)) for mu, point in points.items()}
        below = lower_bound(hessians[-1.0], hessians[0.0], hessians[1.0])
        assert below.least_quadratic > -1e-10
        for mu, hessian in hessians.items():
            values = np.linalg.eigvalsh(hessian)
            assert values[0] >= below(mu) - 1e-10
            if mu not in (0.0, 1.0):
                negative_free = non_trivial(values, 1e-9)
                assert negative_free <= matrices.upper_bound(mu) + 1e-10
    assert mixing(0.5) == 0.5
    assert abs(mixing(1e9) + 0.5) < 1e-15


def test_scenarios_and_zeros_of_v():
    matrices = split_matrices(us.Population(us.Teacher.orthonormal(2), 1), us.TwoLayer([[0.5, 0.5]], [1.0]), 0)
    flat = dataclasses.replace(matrices, coupling=np.zeros((2, 1)))
    cases = {"i": [1.0, 2.0], "ii": [-1.0, -2.0], "iii": [-1.0, 1.0], "degenerate": [0.0, 1.0]}
    for name, values in cases.items():
        assert dataclasses.replace(flat, curvature=np.diag(values)).scenario == name
    assert dataclasses.replace(matrices, coupling=np.ones((2, 1))).scenario == "degenerate"
    assert [expected_kind("i", mu) for mu in (-1.0, 0.0, 0.5, 1.0)] == [
        "strict saddle", "non-strict saddle", "minimum", "non-strict saddle",
    ]  # fmt: skip
    assert expected_kind("ii", 0.5) == "strict saddle"
    assert expected_kind("iii", -2.0) == "strict saddle"
    rng = np.random.default_rng(0)
    for q, m, rank in ((5, 3, 2), (5, 3, 1), (2, 4, 2), (3, 3, 0)):
        v = rng.normal(size=(q, rank)) @ rng.normal(size=(rank, m))
        zeros = zeros_of_coupling(v, 1e-10)
        assert zeros == q - m + 2 * (m - rank)
        full = np.block([[np.zeros((q, q)), v], [v.T, np.zeros((m, m))]])
        assert inertia_of(full, 1e-10) == Inertia(rank, zeros, rank)


def test_bad_input_is_refused():
    task = us.Population(us.Teacher.orthonormal(2), 2)
    network = us.TwoLayer(np.eye(2), np.ones(2))
    with pytest.raises(ValueError, match="neurons 0 to 1; received neuron 2"):
        split_matrices(task, network, 2)
    deep = us.Deep.glorot([2, 3, 1])
    data = Empirical(deep, np.eye(2), np.ones((2, 1)), activation="tanh")
    with pytest.raises(ValueError, match="hidden layers 0 to 0; received layer=1"):
        split_matrices(data, deep, 0, layer=1)
    with pytest.raises(ValueError, match="give more samples"):
        critical_data(deep, np.eye(2), activation="tanh", seed=0)
    with pytest.raises(ValueError, match="at least"):
        critical_teacher(us.TwoLayer(0.5 * np.eye(2), np.ones(2)), np.eye(2), activation="erf")


@pytest.mark.thorough
def test_written_out_derivatives_agree_with_automatic_ones():
    rng = np.random.default_rng(2)
    network = student(rng, 3, 2, (2,))
    task = critical_data(network, rng.normal(size=(30, 2)), activation="tanh", seed=0, cost="log cosh")
    vector = task.flatten(network) + 0.1
    written = evaluate(task, vector)
    automatic = eqx.filter_jit(lambda t, v: (t.value(v), jax.grad(t.value)(v), jax.hessian(t.value)(v)))(task, vector)
    slope = eqx.filter_jit(lambda t, v: t.value_and_gradient(v)[1])(task, vector)
    assert jnp.abs(slope - written.gradient).max() < 1e-14
    for x, y in zip(written, automatic, strict=True):
        assert jnp.abs(x - y).max() < 1e-12
