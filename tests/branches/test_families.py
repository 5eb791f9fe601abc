"""Ready families: each moves what it says, and its slope agrees with differences."""

import numpy as np
import pytest

import understudy as us
from understudy import branches
from understudy.branches.slices import Slices

ERF, SOFTPLUS = us.Teacher.orthonormal(2, dim=3), us.Teacher.orthonormal(2, dim=3, activation="softplus:1")
FAMILIES = {
    "angle": (branches.teacher_angle(ERF, 1), 0.4, 2.0),
    "outgoing": (branches.outgoing_weight(ERF, 1), 0.5, 1.5),
    "variance": (branches.input_variance(ERF, 1), 0.0, 2.0),
    "sharpness": (branches.softplus_sharpness(SOFTPLUS, 1), 0.5, 4.0),
    "bias": (branches.teacher_bias(ERF, 1), -0.5, 0.5),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", FAMILIES)
def test_slopes_agree_with_differences_of_gradients(name):
    family, low, high = FAMILIES[name]
    slices = Slices(family, low, high)
    assert slices.mode == "arrays"
    x = np.random.default_rng(3).normal(size=slices.size)
    assert slices.slope_error(x, 0.3 * low + 0.7 * high) < 1e-5
    assert np.linalg.norm(slices.at(x, low).slope) > 0  # the stencil stays inside the interval


def test_sharpness_in_scaled_coordinates_is_that_of_the_named_activation():
    network = us.TwoLayer([[0.3, -0.2, 0.9]], [1.3])
    named = us.Population(us.Teacher(SOFTPLUS.incoming, SOFTPLUS.outgoing, "softplus:3"), 1)
    back = branches.at_sharpness(network, 3.0)
    assert float(named.loss(back)) == pytest.approx(float(FAMILIES["sharpness"][0](3.0).loss(network)), abs=1e-13)


def test_impossible_families_are_refused():
    with pytest.raises(ValueError, match="neurons 0 to 1"):
        branches.outgoing_weight(ERF, 1, neuron=2)
    with pytest.raises(ValueError, match="span no plane"):
        branches.teacher_angle(us.Teacher([[1.0, 0.0], [2.0, 0.0]], [1.0, 1.0], "erf"), 1)
    with pytest.raises(ValueError, match="Two different"):
        branches.teacher_angle(ERF, 1, first=1, second=1)
    with pytest.raises(ValueError, match="not all zero"):
        branches.input_variance(ERF, 1, direction=[0.0, 0.0, 0.0])
