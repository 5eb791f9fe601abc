"""Natural units and measured rounding: verdicts do not depend on the units of inputs, outputs or loss."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from toys import Toy
from understudy.points.surroundings import Surroundings, natural_lengths
from understudy.theory import copy_average, one_neuron

UNITS = [1e-9, 1e-3, 1e5, 1e9]


def known_points():
    """A minimum, a strict saddle, a non-strict saddle and a global minimum of erf students of three teachers."""
    best = one_neuron("erf", teachers=3)
    w = np.full(3, best.norm * best.correlation)
    return {
        "minimum": us.TwoLayer(*(np.asarray(x) for x in _weights(copy_average("erf", (1, 2))))),
        "strict saddle": us.TwoLayer(np.stack([w, w]), best.outgoing * np.array([0.4, 0.6])),
        "non-strict saddle": us.TwoLayer(np.stack([w, w]), best.outgoing * np.array([1.0, 0.0])),
    }


def _weights(point):
    return point.incoming, point.outgoing


@pytest.mark.parametrize("unit", UNITS)
def test_outputs_in_other_units_give_the_same_verdicts(unit):
    task = us.Population(us.Teacher(np.eye(3), np.full(3, unit), "erf"), 2)
    for kind, point in known_points().items():
        found = us.certify(task, us.TwoLayer(point.incoming, unit * point.outgoing))
        assert found.kind == kind
        aside = us.TwoLayer(point.incoming + 1e-6, unit * point.outgoing)
        assert us.certify(task, aside).kind == "unconverged"


@pytest.mark.parametrize("unit", UNITS)
def test_inputs_in_other_units_give_the_same_verdicts(unit):
    task = us.Population(us.Teacher(np.eye(3) / unit, np.ones(3), "erf"), 2, covariance=unit**2 * np.eye(3))
    for kind, point in known_points().items():
        assert us.certify(task, us.TwoLayer(point.incoming / unit, point.outgoing)).kind == kind


@pytest.mark.parametrize("unit", UNITS)
def test_samples_in_other_units_give_the_same_verdicts(unit):
    """Zero loss, and the zero network with weight decay on either side of the curvature's change of sign."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 3))
    network = us.TwoLayer(rng.normal(size=(2, 3)), rng.normal(size=2))
    y = np.asarray(network(jnp.asarray(x), "tanh"))
    scaled = us.TwoLayer(network.incoming / unit, network.outgoing * unit)
    task = us.Empirical(network, x * unit, y * unit, activation="tanh")
    assert us.certify(task, scaled).kind == "minimum"
    weighted = us.Empirical(network, x, y + 0.1 * rng.normal(size=12), activation="tanh", weights=np.full(12, unit))
    assert us.certify(weighted, network).kind == "unconverged"


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6])
def test_a_slope_is_small_beside_the_loss_it_belongs_to(unit):
    """Losses times a unit: a point a little beside the minimum does not become critical because numbers are small."""
    bowl = Toy(lambda x: unit * (x[0] ** 2 + 3 * x[1] ** 2), 2)
    assert us.certify(bowl, jnp.asarray([1e-3, 0.0])).kind == "unconverged"
    assert us.certify(bowl, jnp.zeros(2)).kind == "minimum"
    saddle = Toy(lambda x: unit * (x[0] ** 2 - 1e-6 * x[1] ** 2), 2)
    assert us.certify(saddle, jnp.zeros(2)).kind == "strict saddle"


def test_ordinary_sizes_are_left_as_they_are():
    task = us.Population(us.Teacher.orthonormal(3), 2)
    assert np.all(natural_lengths(task, np.ones(8)) == 1)
    large = us.Population(us.Teacher(np.eye(3), np.full(3, 1e6), "erf"), 2)
    lengths = natural_lengths(large, np.ones(8)).reshape(2, 4)
    assert np.all(lengths[:, :3] == 1)
    assert np.all(lengths[:, 3] == 2.0**20)


def test_rounding_is_measured():
    """sin(1 + x) by the addition theorem and directly: their difference is nothing but rounding."""
    exact = Surroundings(Toy(lambda x: x[0] ** 2, 1), np.array([1e-7])).rounding

    def cancel(x):
        y = x[0] + 0.3
        return x[0] ** 2 + jnp.sin(1 + y) - jnp.sin(1.0) * jnp.cos(y) - jnp.cos(1.0) * jnp.sin(y)

    cancelling = Surroundings(Toy(cancel, 1), np.array([1e-7])).rounding
    assert exact.loss < 1e-20
    assert cancelling.loss < 1e-12
    assert cancelling.loss > 1e-18


@pytest.mark.parametrize("unit", [1.0, 2.0**-30, 2.0**30])
def test_weights_at_rounding_level_set_no_units(unit):
    """What Newton's method leaves of zeros counts as zero; weights that are small but not lost keep their own unit."""
    x, y = np.linspace(-1, 1, 12).reshape(6, 2), np.sin(np.arange(6.0))
    shapes = ((3, 2), (3, 3), (1, 3))
    network = us.Deep(tuple(map(jnp.zeros, shapes)), tuple(jnp.zeros(shape[0]) for shape in shapes))
    task = us.Empirical(network, x, y * unit, activation="tanh")
    units = task.units(np.zeros(task.size)).lengths
    gone, small = 1e-22 * units, 1e-4 * units
    np.testing.assert_array_equal(natural_lengths(task, gone), natural_lengths(task, units))
    assert np.all(natural_lengths(task, small) < 2e-4 * units)
