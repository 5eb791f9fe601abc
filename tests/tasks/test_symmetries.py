"""Orbits against brute force: apply every symmetry, and count the different images."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.networks import Teacher, TwoLayer
from understudy.tasks import Population, Sphere, on_grid

RNG = np.random.default_rng(0)


def images(symmetries, vector):
    """Every image of a point, one by one."""
    rows = vector[symmetries.layout]
    signs = [1.0] if symmetries.flip is None else [1.0, -1.0]
    for turn in symmetries.turns:
        turned = rows.copy()
        turned[:, : symmetries.dim] = rows[:, : symmetries.dim] @ turn
        for order in itertools.permutations(range(len(rows))):
            if not np.array_equal(symmetries.kinds[list(order)], symmetries.kinds):
                continue
            for chosen in itertools.product(signs, repeat=len(rows)):
                image = turned[list(order)].copy()
                for i, sign in enumerate(chosen):
                    if sign < 0:
                        image[i] = image[i] * symmetries.flip
                moved = vector.copy()
                moved[symmetries.layout] = image
                yield moved


TASKS = {
    "erf": Population(Teacher.orthonormal(3, dim=4), width=2),
    "in the span": Population(Teacher.orthonormal(2, dim=2), width=2),
    "unequal": Population(Teacher(np.eye(3)[:2], [1.0, 2.0], "erf"), width=2),
    "biases": Population(Teacher.orthonormal(2, dim=2), width=2, bias="trained"),
    "fixed": Population(Teacher.orthonormal(2, dim=3), width=3, outgoing=[1.0, 1.0, -1.0]),
    "even": Population(Teacher.orthonormal(2, dim=2, activation="hermite:2"), width=2),
    "angles": on_grid(Teacher.angular([0.0, 2.0, 4.0], "softplus"), width=2),
    "sphere": Sphere(np.eye(2), width=2, activation="hermite:4"),
    "odd sphere": Sphere(np.eye(3), width=2, activation="hermite:3"),
}


@pytest.mark.parametrize("name", TASKS)
def test_every_image_has_the_same_loss_and_orbits_count_them(name):
    task = TASKS[name]
    symmetries = task.symmetries()
    special = np.array(task.starts(1, "gaussian", 0.7)[0])
    rows = special[symmetries.layout]
    rows[1] = rows[0]  # a duplicate, which has fewer images
    special[symmetries.layout] = rows
    for vector in (np.array(task.starts([7], "gaussian", 0.7)[0]), special):
        found = np.stack(list(images(symmetries, vector)))
        losses = np.asarray(task.loss(jnp.asarray(found)))
        np.testing.assert_allclose(losses, losses[0], rtol=1e-11, atol=1e-13)
        distinct = np.unique(np.round(found, 8) + 0.0, axis=0)
        assert symmetries.orbit(vector) == len(distinct)


def test_known_numbers_of_maps():
    assert len(TASKS["erf"].symmetries().turns) == 6 * 2  # permutations, and the reflection beyond the span
    assert len(TASKS["unequal"].symmetries().turns) == 2
    assert len(TASKS["even"].symmetries().turns) == 8
    assert len(TASKS["angles"].symmetries().turns) == 2  # the isosceles triangle 0, 2, 4
    many = Population(Teacher.orthonormal(9), width=1).symmetries()
    assert many.turns is None
    assert many.orbit(np.ones(11)) is None


def test_copies_and_averages_are_counted():
    """One copy and one average of three: 4 teachers to copy, 2 orders of the students, 4 signs."""
    task = Population(Teacher.orthonormal(4, dim=4), width=2)
    point = TwoLayer(np.array([[1.0, 0, 0, 0], [0, 0.4, 0.4, 0.4]]), np.array([1.0, 3.0]))
    assert task.symmetries().orbit(np.asarray(task.flatten(point))) == 4 * 2 * 4


def test_the_closest_image_undoes_a_permutation_with_signs():
    task = TASKS["erf"]
    symmetries = task.symmetries()
    vector = np.array(task.starts([3], "gaussian", 1.0)[0])
    rows = vector[symmetries.layout]
    moved = vector.copy()
    moved[symmetries.layout] = np.stack([-rows[1], rows[0]])
    np.testing.assert_array_equal(symmetries.closest(moved, vector), vector)


def test_balanced_keeps_the_function_and_forgets_the_scale():
    task = Population(Teacher.orthonormal(3, activation="relu"), width=2)
    vector = np.array(task.starts([3], "gaussian", 1.0)[0])
    rows = vector.reshape(2, 4) * np.array([[3.0, 3, 3, 1 / 3], [0.1, 0.1, 0.1, 10]])
    image = task.balanced(jnp.asarray(rows.ravel()))
    np.testing.assert_allclose(image, task.balanced(jnp.asarray(vector)), rtol=1e-13)
    np.testing.assert_allclose(task.loss(image), task.loss(vector), rtol=1e-13)


def test_random_images_are_other_points_with_the_same_loss():
    task = Population(Teacher.orthonormal(3), width=2)
    rng = np.random.default_rng(0)
    vector = rng.normal(size=task.size)
    images = [task.symmetries().image(vector, rng) for _ in range(8)]
    np.testing.assert_allclose([float(task.loss(x)) for x in images], float(task.loss(vector)), rtol=1e-12)
    assert len({tuple(np.round(x, 9)) for x in images}) > 4


@pytest.mark.parametrize(
    "task",
    [
        Population(Teacher.orthonormal(4), width=3),
        Population(Teacher.orthonormal(3, activation="relu"), width=2),
        Sphere(np.eye(3), width=3, activation="hermite:6"),
    ],
)
def test_symmetric_points_have_fewer_copies_and_a_symmetric_gradient(task):
    symmetries, rng = task.symmetries(), np.random.default_rng(3)
    start = np.asarray(task.starts([0], "gaussian", 0.5))[0]
    everything, fewer = symmetries.orbit(start), 0
    for _ in range(30):
        point = symmetries.symmetric(start, rng)
        rows = point[symmetries.layout]
        if np.linalg.norm(rows, axis=1).min() < 1e-3:
            continue
        point = task.retract(jnp.asarray(point), jnp.zeros(task.size))  # rows of norm 1 on the sphere
        count = symmetries.orbit(np.asarray(point))
        fewer += count < everything
        assert everything % count == 0
        moved = task.retract(point, 0.1 * task.gradient(task.unflatten(point)))
        assert symmetries.orbit(np.asarray(moved)) <= count
    assert fewer >= 5
