"""Every task the package defines, and a user's own, through every door: starts, fit, certify, pushes, tables of results."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from cases import thorough_but
from understudy.dynamics import FlowOptions
from understudy.points.destinations import follow_pushes, least_direction
from understudy.results import to_dataset
from understudy.tasks import on_grid

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
Y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=12)
LABELS = np.arange(12) % 2  # whatever the inputs are: no line separates them
OPTIONS = FlowOptions(max_time=1e9, max_steps=3000, snapshots=9)


class Own(eqx.Module):
    """A user's module: a hidden layer with a skip connection, and a leaf that is no array."""

    weight: jax.Array
    skip: jax.Array
    name: str

    def __call__(self, x, activation):
        return jnp.sum(activation(x @ self.weight.T), axis=-1) + x @ self.skip


class Bowl(us.Task):
    """A subclass of `Task` with nothing but what a task must give."""

    @property
    def size(self):
        return 2

    def flatten(self, parameters):
        return jnp.asarray(parameters, float)

    def unflatten(self, vector):
        return vector

    def value(self, vector):
        return jnp.sum((vector - jnp.array([1.0, -2.0])) ** 2) + vector[0] ** 4


def two_layer(*outputs):
    return us.TwoLayer(np.zeros((2, 2)), np.zeros((2, *outputs)))


OWN = Own(jnp.zeros((1, 2)), jnp.zeros(2), "mine")
TASKS = {
    "population": lambda: us.Population(us.Teacher.orthonormal(2, dim=6), width=1),
    "committee": lambda: us.Population(us.Teacher.orthonormal(2), width=2, outgoing="fixed"),
    "relu population": lambda: us.Population(us.Teacher.orthonormal(2, activation="relu"), width=2),
    "sphere": lambda: us.Sphere(us.Teacher.orthonormal(2, 6, "hermite:4"), 2),
    "grid": lambda: on_grid(us.Teacher.angular([0.0, 1.0], "erf"), 1),
    "two-layer data": lambda: us.Empirical(two_layer(), X, Y, activation="tanh"),
    "labels": lambda: us.Empirical(us.Deep.glorot([2, 2]), X, LABELS, activation="linear", cost="cross-entropy"),
    "deep data": lambda: us.Empirical(us.Deep.glorot([2, 2, 1]), X, Y, activation="tanh"),
    "own module": lambda: us.Empirical(OWN, X, Y, activation="tanh"),
    "relu data": lambda: us.Empirical(us.Deep.glorot([2, 2, 1]), X, Y, activation="relu"),
    "regularised": lambda: us.Regularised(X, Y, (2,), penalty=0.05, activation="tanh"),
    "regularised relu": lambda: us.Regularised(X, Y, (2,), penalty=0.05),
    "own loss": lambda: us.Loss(lambda v: (v[0] ** 2 - 1) ** 2 + (v[1] - v[0]) ** 2, 2, lower_bound=0.0),
    "own task": Bowl,
}
KINDS = {"minimum", "strict saddle", "non-strict saddle", "undecided", "diverging", "unconverged"}


@cache
def fitted(name):
    task = TASKS[name]()
    return task, us.fit(task, seeds=2, init_std=0.5, options=OPTIONS)


QUICK = ["own module", "relu data", "own loss"]
every_task = pytest.mark.parametrize("name", TASKS)
followed = pytest.mark.parametrize("name", thorough_but(list(TASKS), QUICK))  # compiling a flow takes seconds


@every_task
def test_starts_are_the_same_for_a_seed_whatever_the_others_are(name):
    task = TASKS[name]()
    three, alone = task.starts(3, "gaussian", 0.3), task.starts([2], "gaussian", 0.3)
    assert three.shape == (3, task.size)
    np.testing.assert_array_equal(three[2], alone[0])


@followed
def test_fit_ends_in_a_point_with_a_verdict(name):
    task, runs = fitted(name)
    for run in runs:
        assert run.certificate.kind in KINDS
        assert run.certificate.kind != "minimum" or run.certificate.gradient_norm < 1e-9
        assert run.loss >= task.lower_bound - 1e-15
        assert run.loss == pytest.approx(float(task.loss(run.parameters)), abs=1e-12)
        assert isinstance(run.structure.label, str)
    assert any(run.certificate.kind == "minimum" for run in runs), [run.certificate.evidence for run in runs]


@followed
def test_certify_agrees_with_fit(name):
    task, runs = fitted(name)
    run = runs[0]
    for given in (run.parameters, task.flatten(run.parameters)):
        assert us.certify(task, given, diverging=None).kind == run.certificate.kind


@followed
def test_results_are_a_dataset(name):
    _, runs = fitted(name)
    data = to_dataset(runs, OPTIONS.times)
    assert data.sizes["seed"] == 2
    assert np.all(np.isfinite(data["loss_along"].values[:, 0]))


@followed
def test_results_survive_a_file(name, tmp_path):
    task, runs = fitted(name)
    opened = us.open(runs.save(tmp_path / "runs"), task)
    assert repr(opened) == repr(runs)
    assert [run.summary() for run in opened] == [run.summary() for run in runs]


@followed
def test_the_figure_of_a_fit_is_drawn(name):
    """Losses for every task; also correlations and the flow for those with students and teachers."""
    _, runs = fitted(name)
    panels = us.plots.fit(runs).axes
    assert (len(panels) > 1) == ("student_teacher" in runs.to_dataset())
    assert panels[0].get_ylabel() == "loss at the end"


@followed
def test_pushes_lead_somewhere_with_a_name(name):
    task, runs = fitted(name)
    _, direction = least_direction(task, runs[0].parameters)
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    for end in follow_pushes(task, [runs[0].parameters], [direction], size=0.05, options=OPTIONS):
        assert end.certificate.kind in KINDS
        assert end.name
        assert end.loss <= float(task.loss(runs[0].parameters)) + 0.1


@every_task
def test_hessian_products_are_those_of_the_dense_hessian(name):
    task = TASKS[name]()
    point, direction = task.starts([0], "gaussian", 0.3)[0], jnp.linspace(-1.0, 1.0, task.size)
    product = eqx.filter_jit(lambda t, v, d: t.hessian_product(v, d))(task.prepared(point), point, direction)
    np.testing.assert_allclose(product, task.hessian(point) @ direction, rtol=1e-9, atol=1e-11)


@every_task
def test_lower_bounds_hold(name):
    task = TASKS[name]()
    assert float(jnp.min(task.loss(task.starts(20, "gaussian", 1.0)))) >= task.lower_bound


@every_task
def test_reduction_keeps_the_loss_and_lifts_back(name):
    task = TASKS[name]()
    vectors = task.starts(2, "gaussian", 0.5)
    reduction = task.reduce(vectors)
    np.testing.assert_allclose(reduction.task.loss(reduction.vectors), task.loss(vectors), rtol=0, atol=1e-13)
    for i, vector in enumerate(reduction.vectors):
        np.testing.assert_allclose(reduction.lift(vector, i), vectors[i], rtol=0, atol=1e-13)
