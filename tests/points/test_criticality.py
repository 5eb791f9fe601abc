"""Slopes that run out flat are not critical points."""

import jax.numpy as jnp
import pytest

import understudy as us
from toys import Toy

PLATEAUS = {
    "exp(-x)": (lambda x: jnp.exp(-x), (25.0, 40.0, 200.0)),
    "-1/x": (lambda x: -1 / x, (1e3, 1e6, 1e12)),
    "exp(-x²)": (lambda x: jnp.exp(-(x**2)), (5.0, 25.0, 30.0)),
    "1 - tanh(x)": (lambda x: 1 - jnp.tanh(x), (25.0, 40.0)),
}


@pytest.mark.parametrize("name", PLATEAUS)
@pytest.mark.parametrize("beside", [False, True])
def test_far_plateaus_are_not_critical(name, beside):
    function, places = PLATEAUS[name]
    task = Toy(lambda x: function(x[0]) + x[-1] ** 2 * beside, 1 + beside)
    for place in places:
        found = us.certify(task, jnp.asarray([place, 0.0][: 1 + beside]))
        assert found.kind in ("unconverged", "undecided")
        assert found.evidence


@pytest.mark.parametrize(("power", "place"), [(4, 1e-5), (6, 1e-3), (8, 5e-3)])
def test_newton_finds_the_degenerate_point_and_says_how_far_it_is(power, place):
    found = us.certify(Toy(lambda x: x[0] ** power, 1), jnp.asarray([place]))
    assert found.kind == "minimum"
    assert found.distance == pytest.approx(place, rel=0.1)
