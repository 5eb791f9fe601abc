"""Hessian products from second partials are those of the dense Hessian, which is assembled in another way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.tasks.task import Task

CASES = {
    "erf": us.Population(us.Teacher.orthonormal(5, dim=6), width=3),
    "erf, fixed outgoing weights": us.Population(us.Teacher.orthonormal(4), width=3, outgoing=np.ones(3)),
    "erf, two outputs": us.Population(
        us.Teacher(np.eye(3), np.array([[1.0, 0.2], [0.5, -1.0], [0.0, 2.0]]), "erf"), width=2
    ),
    "softplus": us.Population(us.Teacher.orthonormal(3, activation="softplus"), width=2),
    "tanh taught by erf": us.Population(us.Teacher.orthonormal(3), width=2, activation="tanh"),
    "quadratic": us.Population(us.Teacher.orthonormal(3, activation="quadratic"), width=2),
    "relu": us.Population(us.Teacher.orthonormal(3, activation="relu"), width=2),
}


def linear(task, point, directions):
    """The gradient at a point, and the products with these directions."""

    @jax.jit
    def both(point, directions):
        slope, product = task.linearised(point)
        return slope, jax.vmap(product)(directions)

    return both(point, directions)


@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_the_dense_hessian(name):
    task = CASES[name]
    random = np.random.default_rng(1)
    point, directions = random.normal(size=task.size), random.normal(size=(3, task.size))
    task = task.prepared(point)
    slope, products = linear(task, point, directions)
    _, gradient, hessian = jax.jit(lambda x: task.evaluate(x))(point)
    np.testing.assert_allclose(slope, gradient, atol=1e-13)
    np.testing.assert_allclose(products, directions @ hessian, atol=1e-12)


@pytest.mark.parametrize("name", ["erf", "erf, two outputs", "softplus"])
def test_products_are_those_of_automatic_differentiation(name):
    task = CASES[name]
    random = np.random.default_rng(2)
    point, directions = random.normal(size=task.size), random.normal(size=(2, task.size))
    task = task.prepared(point)
    automatic = jax.jit(jax.vmap(lambda v: Task.linearised(task, jnp.asarray(point))[1](v)))(directions)
    np.testing.assert_allclose(linear(task, point, directions)[1], automatic, atol=1e-12)


def test_students_that_coincide_oppose_or_vanish():
    """u = ±1 and a zero neuron: the partials are those of the dense Hessian there, too."""
    task = CASES["erf"]
    w = np.array([[1.0, 0, 0, 0, 0, 0], [-2.0, 0, 0, 0, 0, 0], [0.0, 0, 0, 0, 0, 0]])
    point = np.asarray(task.flatten(us.TwoLayer(w, np.array([1.0, 0.5, 0.3]))))
    hessian = jax.jit(lambda x: task.evaluate(x))(point)[2]
    np.testing.assert_allclose(linear(task, point, np.eye(task.size))[1], hessian, atol=1e-12)
