"""Lattice quadrature: moments, agreement with the exact loss, finer lattices for steeper students, frozen parameters."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.tasks import gaussian_grid, on_grid
from understudy.tasks.frozen import Frozen


@pytest.mark.parametrize("dim", [1, 2])
def test_moments(dim):
    nodes, weights = gaussian_grid(dim)
    x = nodes[:, -1]
    for power, moment in ((1, 0.0), (2, 1.0), (4, 3.0), (6, 15.0)):
        assert abs(weights @ x**power - moment) < 1e-7, "the tail beyond the ball: 8⁶ exp(-32)"
    assert abs(weights.sum() - 1) < 1e-14


@pytest.mark.thorough
def test_the_loss_is_the_population_loss_also_for_steep_students():
    teacher = us.Teacher.angular([0.0, 1.0], "softplus")
    exact, grid = us.Population(teacher, 2), on_grid(teacher, 2)
    for scale in (0.7, 3.0):
        network = us.TwoLayer(scale * np.array([[0.5, 0.9], [-0.8, 0.3]]), [0.7, -1.1])
        vector = grid.flatten(network)
        finer = grid.prepared(vector)
        assert (finer is grid) == (scale < 1)
        assert abs(float(grid.loss(network)) - float(exact.loss(network))) < 1e-10
    fixed = on_grid(teacher, 2, spacing=0.5)
    assert fixed.prepared(vector) is fixed


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="1 to 3 dimensions"):
        gaussian_grid(4)
    with pytest.raises(ValueError, match="radius > spacing"):
        gaussian_grid(1, spacing=-1.0)
    with pytest.raises(ValueError, match="kink of relu"):
        on_grid(us.Teacher.angular([0.0], "relu"), 1)


@pytest.mark.thorough
def test_frozen_parameters_feel_nothing():
    teacher = us.Teacher.angular([0.0, 1.0], "erf")
    task = us.Population(teacher, 2)
    vector = jnp.asarray(np.random.default_rng(0).normal(size=6))
    free = jnp.asarray([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    frozen = Frozen(task, free)
    whole, part = np.asarray(task.hessian(vector)), np.asarray(frozen.hessian(vector))
    assert np.array_equal(part[:3, :3], whole[:3, :3])
    assert np.array_equal(part[3:], np.eye(6)[3:])
    assert np.array_equal(np.asarray(frozen.gradient(vector))[3:], np.zeros(3))
    assert float(frozen.loss(vector)) == float(task.loss(vector))
    assert frozen.prepared(vector) is frozen
