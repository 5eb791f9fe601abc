"""The same problem with inputs, outputs or time in other units: the same verdicts, labels, groups and losses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from cases import thorough_but
from understudy.dynamics import FlowOptions
from understudy.dynamics.divergence import find_divergence
from understudy.dynamics.flow import follow
from understudy.tasks import on_grid
from understudy.tasks.frozen import Frozen
from understudy.tasks.rescaled import rescaled
from understudy.tasks.units import Units, natural_size

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
X /= np.sqrt(np.mean(X**2))
Y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=12)
Y /= np.sqrt(np.mean(Y**2))
LABELS = np.arange(12) % 2
OPTIONS = FlowOptions(max_time=1e9, max_steps=3000, snapshots=9)


def teacher(k, dim, activation="erf", outgoing=1.0, length=1.0):
    return us.Teacher(length * np.eye(k, dim), np.full(k, outgoing), activation)


def on_data(x, y, network=None, **kwargs):
    network = us.Deep.glorot([2, 2, 1]) if network is None else network
    return us.Empirical(network, x, y, **{"activation": "tanh", **kwargs})


def bowl(v):
    return jnp.sum((v - jnp.array([1.0, -2.0])) ** 2) + v[0] ** 4


def valley(v):
    return (v[0] ** 2 - 1) ** 2 + (v[1] - v[0]) ** 2


class Own(eqx.Module):
    """A user's network: a hidden layer with a skip connection."""

    weight: jax.Array
    skip: jax.Array

    def __call__(self, x, activation):
        return jnp.sum(activation(x @ self.weight.T), axis=-1) + x @ self.skip


class Bowl(us.Task):
    """A subclass of `Task` with nothing but what a task must give."""

    unit: float

    @property
    def size(self):
        return 2

    def flatten(self, parameters):
        return jnp.asarray(parameters, float)

    def unflatten(self, vector):
        return vector

    def value(self, vector):
        return self.unit * bowl(vector)


def half_frozen(task):
    """Only the first neuron is trained."""
    return Frozen(task, jnp.arange(task.size) < task.size // 2)


OWN = Own(jnp.zeros((1, 2)), jnp.zeros(2))
TWO = us.TwoLayer(np.zeros((2, 2)), np.zeros(2))
WEIGHTS = np.full(12, 1 / 12)

# name: (the task in units c, the unit of its loss, the unit of its starts if the task cannot know it)
PROBLEMS = {
    "population, outputs": (lambda c: us.Population(teacher(2, 6, outgoing=c), 1), 2, 0),
    "population, inputs": (
        lambda c: us.Population(teacher(2, 3, length=1 / c), 1, covariance=c**2 * np.eye(3)),
        0,
        0,
    ),
    "committee, outputs": (lambda c: us.Population(teacher(2, 2, outgoing=c), 2, outgoing=np.full(2, c)), 2, 0),
    "relu population, outputs": (lambda c: us.Population(teacher(2, 2, "relu", c), 2), 2, 0),
    "relu population, inputs": (lambda c: us.Population(teacher(2, 2, "relu"), 2, covariance=c**2 * np.eye(2)), 2, 0),
    "population with biases, outputs": (
        lambda c: us.Population(us.Teacher(np.eye(2, 3), [c, c], "erf", bias=[0.5, -0.5]), 1, bias="trained"),
        2,
        0,
    ),
    "grid, outputs": (lambda c: on_grid(us.Teacher([[1.0, 0.0], [0.5, 0.8]], [c, c], "erf"), 1), 2, 0),
    "two-layer data, outputs": (lambda c: on_data(X, c * Y, TWO), 2, 0),
    "two-layer data, inputs": (lambda c: on_data(c * X, Y, TWO), 0, 0),
    "labels, inputs": (
        lambda c: on_data(c * X, LABELS, us.Deep.glorot([2, 2]), activation="linear", cost="cross-entropy"),
        0,
        0,
    ),
    "deep data, outputs": (lambda c: on_data(X, c * Y), 2, 0),
    "deep data, time": (lambda c: on_data(X, Y, weights=c * WEIGHTS), 1, 0),
    "relu data, outputs": (lambda c: on_data(X, c * Y, activation="relu"), 2, 0),
    "relu data, inputs": (lambda c: on_data(c * X, Y, activation="relu"), 0, 0),
    "own cost, time": (
        lambda c: on_data(X, Y, TWO, cost=lambda f, y: c * jnp.sum(jnp.log(jnp.cosh(f - y)))),
        1,
        0,
    ),
    "regularised, time": (
        lambda c: us.Regularised(X, Y, (2,), penalty=0.05 * c, activation="tanh", weights=c * WEIGHTS),
        1,
        0,
    ),
    "regularised relu, outputs": (lambda c: us.Regularised(X, c * Y, (2,), penalty=0.05 * c, bias=0.0), 2, 0),
    "regularised relu, time": (lambda c: us.Regularised(X, Y, (2,), penalty=0.05 * c, weights=c * WEIGHTS), 1, 0),
    "regularised relu, inputs": (lambda c: us.Regularised(c * X, Y, (2,), penalty=0.05 * c, bias=0.0), 0, 0),
    "regularised labels, time": (
        lambda c: us.Regularised(
            X, np.eye(2)[LABELS], (2,), penalty=0.05 * c, activation="tanh", cost="cross-entropy", weights=c * WEIGHTS
        ),
        1,
        0,
    ),
    "labels, time": (
        lambda c: on_data(
            X, LABELS, us.Deep.glorot([2, 2]), activation="linear", cost="cross-entropy", weights=c * WEIGHTS
        ),
        1,
        0,
    ),
    "own module, inputs": (lambda c: on_data(c * X, Y, OWN), 0, -1),
    "own module, time": (lambda c: on_data(X, Y, OWN, weights=c * WEIGHTS), 1, 0),
    "population with fixed biases, outputs": (
        lambda c: us.Population(us.Teacher(np.eye(2, 3), [c, c], "erf"), 2, bias=[0.5, 0.5]),
        2,
        0,
    ),
    "softplus population, outputs": (lambda c: us.Population(teacher(2, 2, "softplus", c), 1), 2, 0),
    "population, two outputs, outputs": (
        lambda c: us.Population(us.Teacher(np.eye(2), c * np.array([[1.0, 0.5], [0.2, 1.0]]), "erf"), 2),
        2,
        0,
    ),
    "frozen, outputs": (lambda c: half_frozen(us.Population(teacher(2, 2, outgoing=c), 2)), 2, 0),
    "sphere, outputs": (  # with fixed outgoing weights the correlation is linear in the students' outputs
        lambda c: us.Sphere(np.eye(2), 2, activation="hermite:3", loss="correlation", outgoing=np.full(2, c)),
        1,
        0,
    ),
    "sphere in more dimensions, outputs": (
        lambda c: us.Sphere(np.eye(2, 6), 2, activation="hermite:4", loss="correlation", outgoing=np.full(2, c)),
        1,
        0,
    ),
    "own task, time": (Bowl, 1, 0),
    "own loss, time": (lambda c: us.Loss(lambda v: c * valley(v), 2, lower_bound=0.0), 1, 0),
    "own loss, parameters": (lambda c: us.Loss(lambda v: valley(v / c), 2, lower_bound=0.0), 0, 1),
    "own loss without a bound, parameters": (lambda c: us.Loss(lambda v: bowl(v / c), 2), 0, 1),
    "own loss without a bound, time": (lambda c: us.Loss(lambda v: c * bowl(v), 2), 1, 0),
}
QUICK = ["own loss, time"]


def ends(name, c):
    build, _, starts = PROBLEMS[name]
    return us.fit(build(c), seeds=3, init_std=0.5 * c**starts, options=OPTIONS)


@pytest.mark.parametrize("c", [2.0**-30, 2.0**30])
@pytest.mark.parametrize("name", thorough_but(list(PROBLEMS), QUICK))
def test_other_units_give_the_same_verdicts_labels_groups_and_losses(name, c):
    """2^±30 is about 10^±9. Data have size 1, so that starts are the same up to units and reach the same minima."""
    base, other = ends(name, 1.0), ends(name, c)
    power = PROBLEMS[name][1]
    assert [r.certificate.kind for r in other] == [r.certificate.kind for r in base]
    assert [r.structure.label for r in other] == [r.structure.label for r in base]
    assert [g.members for g in other.groups()] == [g.members for g in base.groups()]
    found, wanted = (np.array([r.loss for r in runs]) for runs in (other, base))
    settled = np.array([r.certificate.kind == "minimum" for r in base])
    np.testing.assert_allclose(found[settled] / c**power, wanted[settled], rtol=1e-7, atol=1e-13)


def test_ordinary_problems_keep_their_units():
    for task in (us.Population(us.Teacher.orthonormal(8), 4), on_data(X, Y), us.Loss(valley, 2)):
        assert task.units(task.starts(2)).ordinary
    assert (natural_size(100.0), natural_size(1e9), natural_size(np.inf)) == (1.0, 2.0**30, 1.0)


def test_a_small_start_is_not_taken_for_a_small_problem():
    task = us.Loss(valley, 2, lower_bound=0.0)
    assert task.units(1e-9 * np.ones((2, 2))).ordinary


def test_a_rescaled_task_has_the_derivatives_of_its_loss():
    task = us.Population(teacher(2, 2), 2)
    natural = rescaled(task, Units(np.array([2.0, 2.0, 0.5] * 2), 4.0))
    x = jnp.asarray(RNG.normal(size=6))
    loss, gradient, hessian = natural.evaluate(x)
    assert float(loss) == pytest.approx(float(task.loss(x * natural.lengths)) / 4, rel=1e-14)
    np.testing.assert_allclose(gradient, jax.grad(natural.value)(x), atol=1e-13)
    np.testing.assert_allclose(hessian, jax.hessian(natural.value)(x), atol=1e-12)
    np.testing.assert_allclose(natural.flatten(natural.unflatten(x)), x, rtol=1e-15)


def test_divergence_is_seen_in_other_units():
    """Separable classes under a logistic cost of 1e-9: weights grow like log t, and times are in natural units."""
    task = us.Empirical(
        us.Deep.glorot([1, 1]), [[-1.0], [1.0]], [0, 1], activation="linear", cost="logistic", weights=[5e-10, 5e-10]
    )
    ((_, run),) = follow(task, task.starts(1), FlowOptions(max_time=1e9))
    assert find_divergence(run) is not None
