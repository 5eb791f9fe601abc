"""Slopes that run out flat are not critical points."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from toys import Toy
from understudy.points.case import _has_grown
from understudy.points.criticality import Spectrum, _is_critical
from understudy.points.plateaus import nearest_critical
from understudy.points.surroundings import Surroundings

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


def test_a_gradient_of_rounding_is_told_from_a_small_one():
    """Newton's steps do not shrink where they are rounding, and along exp(-x²), where every gradient is tiny."""

    def at(function, *place):
        return _is_critical(Surroundings(Toy(function, len(place)), np.array(place)))

    def bowl(x):
        return (jnp.exp(x[0]) - 3) ** 2 + 1e-8 * jnp.sin(x[1]) ** 2

    assert at(bowl, np.log(3.0), 0.0)
    assert not at(bowl, np.log(3.0) + 1e-13, 0.0)
    assert not at(bowl, np.log(3.0), 1e-13)
    for place in (5.0, 25.0):
        assert not at(lambda x: jnp.exp(-(x[0] ** 2)), place)


@pytest.mark.parametrize("steps", [3, 4])
def test_a_longer_step_may_be_the_last_one(monkeypatch, steps):
    from understudy.points import criticality

    monkeypatch.setattr(criticality, "_NEWTON_STEPS", steps)
    found = us.certify(Toy(lambda x: x[0] ** 6, 1), jnp.asarray([1e-3]))
    assert found.kind in ("minimum", "undecided")


@pytest.mark.parametrize("apart", [0.0, 1e-14, 1e-12])
def test_students_that_coincide_up_to_rounding_are_at_the_same_saddle(apart):
    """Their difference orthogonal to all teachers is a quartic valley: slopes there belong to the point's own error."""
    task = us.Population(us.Teacher.orthonormal(2, dim=4), width=2, outgoing="fixed")
    together = task.unflatten(jnp.asarray(nearest_critical(task, jnp.array([0.5, 0.5, 0, 0] * 2))[0]))
    incoming = np.tile(np.asarray(together.incoming).mean(axis=0), (2, 1))
    incoming[:, 2:] = apart * np.random.default_rng(0).normal(size=(2, 2))
    found = us.certify(task, us.TwoLayer(incoming, [1.0, 1.0]))
    assert (found.kind, found.index) == ("strict saddle", 1)


@pytest.mark.parametrize(("seed", "apart"), [(1, 1e-16), (2, 1e-16), (5, 1e-15), (2, 1e-13), (8, 1e-12)])
def test_rounding_along_a_valley_is_not_a_slope(seed, apart):
    """Two perturbations by rounding can cancel along a direction; slopes of 1e-17 are then 1e12 times their rounding."""
    task = us.Population(us.Teacher.orthonormal(2, dim=4), width=2, outgoing="fixed")
    plateau = np.array([[1.0, 1.0, 0.0, 0.0]] * 2) / np.sqrt(6)
    incoming = plateau + apart * np.random.default_rng(seed).normal(size=(2, 4))
    found = us.certify(task, us.TwoLayer(incoming, [1.0, 1.0]))
    assert (found.kind, found.index) == ("strict saddle", 1)


@pytest.mark.parametrize("curvature", [5e-14, -5e-14, 2e-13])
@pytest.mark.parametrize("place", [1.0, 1.5, 2.0, 2.625])
def test_a_curvature_made_by_a_weight_that_may_be_zero_is_not_counted(curvature, place):
    """L = a h(w, u) with h known to rounding: a is known to 1e-11, so that a u²/2 has no curvature to speak of."""

    def loss(x):
        rounding = jnp.cos(3 * x[1]) ** 2 + jnp.sin(3 * x[1]) ** 2 - 1
        return x[0] * (2.0**-16 * (x[1] - place) + x[2] ** 2 / 2 + rounding)

    found = us.certify(Toy(loss, 3), jnp.asarray([curvature, place, 0.0]))
    assert (found.kind, found.index, found.zeros, found.positives) == ("strict saddle", 1, 1, 1)


@pytest.mark.parametrize("aside", [1e-14, 1e-12, 1e-11])
def test_beside_a_circle_of_minima_the_point_on_it_counts(aside):
    """Off the circle by a rounding or more, the gradient makes a small curvature along it."""
    found = us.certify(Toy(lambda v: (v[0] ** 2 + v[1] ** 2 - 1) ** 2, 2), np.array([1 + aside, 0.0]))
    assert (found.kind, found.flat_dimension) == ("minimum", 1)
    assert found.distance == pytest.approx(aside, rel=0.5)


def test_a_degenerate_point_is_where_small_eigenvalues_vanish():
    """On a line of critical points Newton's method can end far away, where they are large and of either sign."""
    here = Spectrum(np.array([1e-9, 1.0]), np.eye(2), 1e-9, 0.0, 1)
    assert _has_grown(here, np.diag([-1e-3, 1.0]))
    assert not _has_grown(here, np.diag([1e-12, 1.0]))
