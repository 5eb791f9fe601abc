"""Small terms that decide close by, and the numbers that say at which scales that was seen."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from toys import Toy
from understudy.papers.promises.natures import functions
from understudy.points import certify
from understudy.points.relaxation import Relaxation
from understudy.points.scan import Scan, lower_term
from understudy.points.surroundings import Surroundings
from understudy.tasks import Regularised

HIDDEN = {
    "x² - 0.01 y³ + y⁴": (lambda x: x[0] ** 2 - 0.01 * x[1] ** 3 + x[1] ** 4, 2, {"non-strict saddle"}),
    "x² - 1e-14 y² + y⁴": (lambda x: x[0] ** 2 - 1e-14 * x[1] ** 2 + x[1] ** 4, 2, {"strict saddle", "undecided"}),
    "y⁴ - 10⁴ y⁶": (lambda x: x[0] ** 4 - 1e4 * x[0] ** 6, 1, {"minimum"}),
    "1e-12 y² - y³ + x²": (lambda x: x[0] ** 2 + 1e-12 * x[1] ** 2 - x[1] ** 3, 2, {"minimum", "undecided"}),
    "x² - y¹⁶": (lambda x: x[0] ** 2 - x[1] ** 16, 2, {"non-strict saddle", "undecided"}),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_term_that_is_small_where_one_looks_decides_close_by(name):
    function, size, kinds = HIDDEN[name]
    assert us.certify(Toy(function, size), jnp.zeros(size)).kind in kinds


def test_the_numbers_say_what_was_seen():
    found = us.certify(Toy(lambda x: x[0] ** 2 - 0.01 * x[1] ** 3 + x[1] ** 4, 2), jnp.zeros(2))
    assert found.radii[0] < 1e-10
    assert found.radii[1] > 0.1
    assert found.higher_order.order == pytest.approx(3, abs=0.1)
    assert np.abs(found.directions[0]) == pytest.approx([0, 1], abs=1e-9)
    assert found.drop < 1e-12


def test_a_pit_nearer_than_any_sphere_is_seen():
    """A gelu neuron at zero whose penalty cancels its curvature up to 1/300: the loss falls by 4e-10 at a distance of 0.01."""
    d = 14 / 2048
    task = Regularised([[1.0], [-1.0]], [[1.0], [d - 1]], (1,), penalty=(1 - d / 2) / 2, bias=0.0, activation="gelu")
    assert us.certify(task, np.zeros(task.size)).kind != "minimum"
    assert float(task.loss(jnp.array([0.0082, 0.0082]))) < float(task.loss(jnp.zeros(2))) - 1e-10


def test_a_fall_at_a_small_angle_to_an_axis_is_seen():
    """a⁴ - b⁶ in coordinates turned by 0.011: along the axes the loss rises, and only along a = 0 does it fall."""
    c, s = np.cos(0.011), np.sin(0.011)
    task = Toy(lambda x: (c * x[0] + s * x[1]) ** 4 - (c * x[1] - s * x[0]) ** 6, 2)
    assert us.certify(task, jnp.zeros(2)).kind == "non-strict saddle"


@pytest.mark.parametrize(("power", "fall"), [(6, 1e-9), (6, 1e-12), (8, 1e-7)])
@pytest.mark.parametrize("angle", [0.0, 0.7])
def test_a_fall_along_the_bottom_of_a_valley_is_found(power, fall, angle):
    """x²y² - c x^p falls only where y is zero to an angle of about √c, much finer than the first search."""
    turn = jnp.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    def loss(v):
        x, y = turn @ v
        return x**2 * y**2 - fall * x**power

    assert us.certify(us.Loss(loss, 2), np.zeros(2)).kind == "non-strict saddle"


@pytest.mark.parametrize(("away", "kinds"), [(0.0, {"non-strict saddle"}), (1e-8, {"non-strict saddle", "undecided"})])
def test_a_degenerate_pair_on_the_circle_is_a_saddle_or_undecided(away, kinds):
    """Two hermite:4 students at ±π/8 + s: relaxed across, the loss is ¼ - ¼(1 - cos 4s)² = ¼ - 16 s⁴ + …"""
    task = us.Sphere(us.Teacher.orthonormal(2, 2, "hermite:4"), 2)
    for turn in (-away, away):
        angles = np.array([np.pi / 8, -np.pi / 8]) + turn
        assert us.certify(task, np.stack([np.cos(angles), np.sin(angles)], axis=1)).kind in kinds


def test_a_power_that_is_seen_at_two_distances_only_is_not_flat():
    # 0.046 y¹³ beside a bowl, turned and bent: its slope is 1,000 times its rounding at two distances, and farther out
    # the loss cannot be followed.
    found = next(known for known in functions(542, 32) if known.words.startswith("0.046 y^(13, 0, 0, 0) + 0.54"))
    certificate = certify(found.task, found.point)
    assert certificate.kind == "undecided"


def test_a_plateau_that_is_level_to_rounding_almost_to_zero_is_no_minimum():
    """1/y² at 9e8 beside a bowl: its slope shows only within a millionth of the way to zero."""
    point = next(k for k in functions(611, 32) if k.kind == "far plateaus" and k.words.startswith("1/y² at 9.2e+08"))
    assert certify(point.task, point.point).kind in ("undecided", "unconverged")


def test_a_high_power_that_cannot_be_followed_to_where_it_shows_is_not_flat():
    """-0.028 y¹⁵ beside a bowl, bent: at a distance of ¼ its slope is below rounding, and farther out y(z) is lost."""
    found = next(known for known in functions(620, 32) if known.words.startswith("-0.028 y^(15, 0, 0, 0, 0, 0)"))
    assert certify(found.task, found.point).kind == "undecided"


def test_a_small_even_term_below_a_large_odd_one_is_seen_in_sums_of_slopes():
    """4 y⁴ - 7500 y⁵ in units in which the second term is the larger one wherever slopes are clear: a minimum."""
    found = next(known for known in functions(620, 32) if known.words.startswith("4 y^(4, 0) + -7.5e+03 y^(5, 0)"))
    assert certify(found.task, found.point).kind in ("minimum", "undecided")


def test_terms_of_lower_order():
    radii = 0.5 ** np.arange(20, 5, -1)

    def scan(side, even, odd):
        slopes = 4 * even * radii**3 + side * odd * radii**4
        return Scan(np.array([side]), radii, slopes, np.full(len(radii), 1e-22))

    for even in (1.0, -1.0):
        sides = [scan(side, even, -1e6) for side in (1.0, -1.0)]
        assert lower_term(*sides, even=True) == even
        assert lower_term(*sides, even=False) == 0  # the odd term is of higher order


def test_a_valley_that_is_lost_close_by_is_looked_for_there():
    """The last distance along one direction says nothing about the first along the next in the list."""
    around = Surroundings(Toy(lambda v: (v[0] * v[1] - 1.3) ** 2, 2), np.array([1.3, 1.0]))
    values, vectors = np.linalg.eigh(around.hessian)
    relaxation = Relaxation(around, vectors[:, :1], values[1:], vectors[:, 1:])
    directions, radii = np.array([[1.0], [1.0], [-1.0], [-1.0]]), np.array([1e-6, 0.1, 1e-6, 0.1])
    offsets, gradients = relaxation.relax(directions, radii)
    found = offsets[2].copy()
    offsets[2] = gradients[2] = np.nan
    start = radii[:, None] * (directions @ relaxation.null.T)
    relaxation._find_lost(start, radii, offsets, gradients, np.full(4, 1e-12))
    assert offsets[2] == pytest.approx(found, abs=1e-11)
