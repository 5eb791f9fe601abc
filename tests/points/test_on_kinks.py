"""Verdicts on kinks: losses whose nature is known by hand, and a ReLU network compared with losses around it."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.points.on_kinks import examine_kinks
from understudy.tasks.task import Task


class Kink(Task):
    """smooth(x, y) + pull |x|."""

    smooth: Callable[[Any, Any], Any] = eqx.field(static=True)
    pull: float

    @property
    def size(self):
        return 2

    @property
    def kinked(self):
        return True

    def flatten(self, parameters):
        return jnp.asarray(parameters, float)

    def unflatten(self, vector):
        return vector

    def value(self, vector):
        return self.smooth(*vector) + self.pull * jnp.abs(vector[0])

    def hidden_values(self, vector):
        return vector[:1]

    def gated_value(self, vector, gates, offsets):
        return self.smooth(*vector) + self.pull * (gates[0] * vector[0] + offsets[0])


@pytest.mark.parametrize(
    ("smooth", "pull", "kind"),
    [
        (lambda x, y: x + y**2, 2.0, "minimum"),  # slope -1/2
        (lambda x, y: x * (1 + 3 * y) - x**2 + y**2, 2.0, "minimum"),  # curved down across the kink: no matter
        (lambda x, y: x - y**2, 2.0, "strict saddle"),
        (lambda x, y: x + y**4, 2.0, "undecided"),  # level along the kink
        (lambda x, y: x + y**2, 1.0, "undecided"),  # slope -1, at the end of its range
        (lambda x, y: x**2 + y**2, -1.0, "unconverged"),  # a concave kink
        (lambda x, y: 3 * x + y**2, 2.0, "unconverged"),  # falls to one side
        (lambda x, y: x + y + y**2, 2.0, "unconverged"),
    ],
)
def test_known_natures(smooth, pull, kind):
    assert us.certify(Kink(smooth, pull), [0.0, 0.0]).kind == kind


def test_slopes_and_curvatures():
    found = examine_kinks(Kink(lambda x, y: x + 3 * y**2, 4.0), np.zeros(2), 1e-10)
    assert found.margin == pytest.approx(0.75)
    assert found.pinned == 1
    np.testing.assert_allclose(found.eigenvalues, [6.0])


def test_a_settled_relu_network_lies_below_everything_around_it():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    task = us.Regularised(x, y, (3,), penalty=0.02)
    run = us.fit(task, seeds=[1], init="glorot")[0]
    assert run.certificate.kind == "minimum"
    assert run.trajectory.ending == "settled"
    assert task.kinks(run.parameters)
    end = np.asarray(task.flatten(run.parameters))
    steps = rng.normal(size=(4000, task.size))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    for radius in (1e-2, 1e-4):
        # The least curvature along the kinks bounds the rise, up to terms of third order.
        rise = np.asarray(task.loss(end + radius * steps)) - run.loss
        assert rise.min() > 0.4 * run.certificate.least_eigenvalue * radius**2
