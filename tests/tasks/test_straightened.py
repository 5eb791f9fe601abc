import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.tasks.straightened import Straightened


@pytest.fixture(scope="module", params=[(), (2,)], ids=["one output", "two outputs"])
def both(request):
    teacher = us.Teacher(np.eye(3, 4), np.ones((3, *request.param)), "erf")
    task = us.Population(teacher, width=2)
    point = np.random.default_rng(0).normal(size=task.size)
    local, origin = task.straight_chart(jnp.asarray(point))
    return task, point, local, origin


def test_coordinates_are_inverted_by_points(both):
    task, point, local, origin = both
    assert isinstance(local, Straightened)
    np.testing.assert_allclose(local.point(origin), point, atol=1e-14)
    np.testing.assert_allclose(local.value(origin), task.value(jnp.asarray(point)), rtol=1e-14)


def test_derivatives_are_those_of_the_loss(both):
    _, _, local, origin = both
    _, gradient, hessian = local.evaluate(origin)
    np.testing.assert_allclose(local.value_and_gradient(origin)[1], gradient, atol=1e-14)
    np.testing.assert_allclose(gradient, jax.grad(local.value)(origin), atol=1e-13)
    np.testing.assert_allclose(hessian, jax.hessian(local.value)(origin), atol=1e-12)


def test_blocks_of_incoming_weights_are_exact(both):
    task, _, local, origin = both
    hessian, groups = np.asarray(local.evaluate(origin).hessian), local.hessian_groups
    for group, block in zip(groups[: task.dim], local.hessian_blocks(origin), strict=False):
        np.testing.assert_allclose(block, hessian[np.ix_(group, group)], atol=1e-13)


def test_other_tasks_have_no_such_coordinates():
    relu = us.Population(us.Teacher.orthonormal(3, activation="relu"), width=2)
    assert relu.straight_chart(jnp.ones(relu.size))[0] is relu
    committee = us.Population(us.Teacher.orthonormal(3), width=2, outgoing="fixed")
    assert committee.straight_chart(jnp.ones(committee.size))[0] is committee
