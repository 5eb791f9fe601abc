"""Settling: minima that are known, on kinks and off them."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from toys import Toy
from understudy.dynamics.settle import settle
from understudy.papers.attraction_repulsion.training import train_regularised
from understudy.tasks.regularised import Regularised
from understudy.tasks.task import Task


class Kink(Task):
    """L = (x - 2y)² + 0.1(y - target)² + pull·|x|: by hand, x is pinned at zero for a strong pull."""

    pull: float
    target: float
    kinked: bool = eqx.field(static=True, default=True)

    @property
    def size(self):
        return 2

    def flatten(self, parameters):
        return jnp.asarray(parameters, float)

    def unflatten(self, vector):
        return vector

    def _value(self, vector, size):
        x, y = vector
        return (x - 2 * y) ** 2 + 0.1 * (y - self.target) ** 2 + self.pull * size

    def value(self, vector):
        return self._value(vector, jnp.abs(vector[0]))

    def hidden_values(self, vector):
        return vector[:1]

    def gated_hidden(self, vector, gates):
        return vector[:1]

    def gated_value(self, vector, gates, offsets):
        return self._value(vector, gates[0] * vector[0] + offsets[0])

    def smoothed_value(self, vector, width):
        return self._value(vector, jnp.sqrt(vector[0] ** 2 + width**2))


@pytest.mark.parametrize(("pull", "target"), [(0.5, 1.0), (0.02, 1.0), (0.02, -1.0)])
def test_kinked_minimum_by_hand(pull, target):
    found = settle(Kink(pull, target), jnp.array([0.4, 0.7]))
    # On the kink: y = target/41. Off it: x = 2y - pull/2·sign, y = target - 10·pull·sign.
    y = target / 41
    slope = 4 * y / pull
    if abs(slope) <= 1:
        np.testing.assert_allclose(found.vector, [0, y], atol=1e-14)
        np.testing.assert_allclose(found.gates, [slope], rtol=1e-10)
        assert found.pinned.all()
    else:
        sign = np.sign(target)
        y = target - 10 * pull * sign
        np.testing.assert_allclose(found.vector, [2 * y - pull / 2 * sign, y], atol=1e-12)
        assert not found.pinned.any()
    assert found.residual + found.slack <= 1e-14


def test_smooth_minimum_past_a_saddle():
    task = Toy(lambda v: (v[0] ** 2 - 1) ** 2 + v[0] * v[1] + v[1] ** 2, 2)
    found = settle(task, jnp.array([1e-3, 0.0]))
    x = np.sqrt(1 + 1 / 8)  # L = (x² - 1)² - x²/4 once y = -x/2
    np.testing.assert_allclose(np.abs(found.vector), [x, x / 2], atol=1e-12)
    assert found.residual <= 1e-13
    assert found.least_curvature > 0


def test_one_relu_neuron_by_hand():
    # f(1) = c, f(-1) = 0 with a = b = √c: (1 - c)² + 1 + 2λc has its minimum 1 + 2λ - λ² at c = 1 - λ.
    task = Regularised([[1.0], [-1.0]], [[1.0], [1.0]], (1,), penalty=0.1, bias=0.0, weights=[1.0, 1.0])
    runs = train_regularised(task, [0, 1, 2, 3], steps=500)
    assert min(r.loss for r in runs) == pytest.approx(1 + 0.2 - 0.01, abs=1e-14)
    assert max(r.residual for r in runs) <= 1e-12
