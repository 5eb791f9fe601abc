"""What holds of a loss at every point: its symmetries, and what follows from them for its derivatives."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

import understudy as us
from cases import thorough_but
from examples import arrays, few_or_many, for_all, rotations
from understudy.tasks.sphere import Sphere

EPS = np.finfo(float).eps
N, K, D = 3, 2, 4  # two dimensions that no teacher uses: there is a rotation to be orthogonal to
TEACHER = us.Teacher([[1.0, 0.2, 0.0, 0.0], [-0.3, 0.8, 0.0, 0.0]], [1.0, -0.7], "erf")
NAMES = thorough_but(["erf", "relu", "softplus", "hermite:3"], ["erf", "relu"])
REACH = 2.0
NOISE = 2e3 * EPS * (1 + REACH**2) ** 2 * (N + K) ** 2
"""Rounding of sums of (n + k)² terms of size (1 + w²)² a²; cubic polynomials have the largest."""

points = st.tuples(arrays(N, D, largest=REACH), arrays(N, largest=REACH))


def task_of(name, teacher=TEACHER):
    task = us.Population(us.Teacher(teacher.incoming, teacher.outgoing, name), N)
    return task.prepared(jnp.full(task.size, REACH))


def evaluate(task, w, a):
    return [np.asarray(x) for x in _evaluate(task, task.flatten(us.TwoLayer(w, a)))]


@eqx.filter_jit
def _evaluate(task, vector):
    return *task.evaluate(vector), task.symmetry_tangents(vector)


def clear_of_kinks(name, w):
    """ReLU has no derivatives at zero vectors, and loses digits of the Hessian near parallel ones."""
    if name == "relu":
        norms = np.linalg.norm(w, axis=1)
        assume(norms.min() > 0.1)
        cosines = np.abs(w @ w.T / np.outer(norms, norms))[np.triu_indices(N, 1)]
        against = np.abs(w @ np.asarray(TEACHER.incoming).T) / np.outer(
            norms, np.linalg.norm(np.asarray(TEACHER.incoming), axis=1)
        )
        assume(max(cosines.max(), against.max()) < 0.999)


@few_or_many
@pytest.mark.parametrize("name", NAMES)
def test_turning_students_and_teachers_turns_the_gradient(name, examples):
    straight = task_of(name)

    @for_all(points, rotations(D), examples=examples)
    def check(point, rotation):
        w, a = point
        clear_of_kinks(name, w)
        turned = task_of(name, us.Teacher(np.asarray(TEACHER.incoming) @ rotation, TEACHER.outgoing, name))
        loss, gradient, hessian, _ = evaluate(straight, w, a)
        other, moved, bent, _ = evaluate(turned, w @ rotation, a)
        whole = np.kron(np.eye(N), np.block([[rotation, np.zeros((D, 1))], [np.zeros((1, D)), np.ones((1, 1))]]))
        assert abs(loss - other) < NOISE + 64 * EPS * abs(loss)  # a sum of (n + k)² terms as large as the loss itself
        np.testing.assert_allclose(gradient @ whole, moved, atol=NOISE)
        np.testing.assert_allclose(whole.T @ hessian @ whole, bent, atol=1e3 * NOISE if name == "relu" else NOISE)


@few_or_many
@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_students_does_not_matter(name, examples):
    task = task_of(name)

    @for_all(points, st.permutations(range(N)), examples=examples)
    def check(point, order):
        w, a = point
        clear_of_kinks(name, w)
        loss, gradient, hessian, _ = evaluate(task, w, a)
        other, moved, bent, _ = evaluate(task, w[order], a[order])
        place = np.arange(task.size).reshape(N, D + 1)[order].ravel()
        assert abs(loss - other) < NOISE
        np.testing.assert_allclose(gradient[place], moved, atol=NOISE)
        np.testing.assert_allclose(hessian[np.ix_(place, place)], bent, atol=1e3 * NOISE if name == "relu" else NOISE)


@few_or_many
@pytest.mark.parametrize("name", thorough_but(["erf", "hermite:3"], ["erf"]))
def test_an_odd_neuron_and_its_mirror_image_are_one(name, examples):
    task = task_of(name)

    @for_all(points, arrays(N), examples=examples)
    def check(point, signs):
        w, a = point
        signs = np.where(signs < 0, -1.0, 1.0)
        loss, gradient, hessian, _ = evaluate(task, w, a)
        other, moved, bent, _ = evaluate(task, signs[:, None] * w, signs * a)
        flips = np.repeat(signs, D + 1)
        assert abs(loss - other) < NOISE
        np.testing.assert_allclose(flips * gradient, moved, atol=NOISE)
        np.testing.assert_allclose(flips[:, None] * hessian * flips, bent, atol=NOISE)


@few_or_many
def test_a_homogeneous_neuron_can_be_rescaled(examples):
    task = task_of("relu")

    @for_all(points, arrays(N, largest=1.0), examples=examples)
    def check(point, powers):
        w, a = point
        clear_of_kinks("relu", w)
        scales = 2.0**powers
        loss, gradient, _, _ = evaluate(task, w, a)
        other, moved, _, _ = evaluate(task, scales[:, None] * w, a / scales)
        stretch = np.column_stack([np.repeat(scales[:, None], D, axis=1), 1 / scales]).ravel()
        assert abs(loss - other) < NOISE
        np.testing.assert_allclose(gradient / stretch, moved, atol=10 * NOISE)


@few_or_many
@pytest.mark.parametrize("name", NAMES)
def test_no_gradient_along_a_symmetry_and_a_symmetric_hessian(name, examples):
    task = task_of(name)

    @for_all(points, examples=examples)
    def check(point):
        w, a = point
        clear_of_kinks(name, w)
        _, gradient, hessian, tangents = evaluate(task, w, a)
        assert len(tangents) == (4 if name == "relu" else 1)
        np.testing.assert_allclose(tangents @ gradient, 0, atol=REACH * NOISE)
        np.testing.assert_allclose(hessian, hessian.T, atol=NOISE)


@few_or_many
def test_sphere_gradients_are_tangent_and_turn_with_everything(examples):
    @for_all(arrays(N, D), rotations(D), examples=examples)
    def check(rows, rotation):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        assume(norms.min() > 0.1)
        rows = rows / norms
        loss, gradient, hessian, _ = evaluate_sphere(np.eye(D)[:K], rows)
        assert np.abs(np.sum(rows * gradient.reshape(N, D), axis=1)).max() < NOISE
        np.testing.assert_allclose(hessian, hessian.T, atol=NOISE)
        other, moved, _, _ = evaluate_sphere(np.eye(D)[:K] @ rotation, rows @ rotation)
        assert abs(loss - other) < NOISE
        np.testing.assert_allclose((gradient.reshape(N, D) @ rotation).ravel(), moved, atol=NOISE)


def evaluate_sphere(teachers, rows):
    task = Sphere(teachers, N, activation="hermite:4")
    return [np.asarray(x) for x in _evaluate(task, task.flatten(rows))]
