"""The parts of the landscape claims that can be checked without measuring them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import understudy as us
from understudy.papers.landscape.basins import half_point
from understudy.papers.landscape.relu_case import _wider
from understudy.papers.landscape.repeats import signature
from understudy.papers.landscape.sphere_case import _end


def test_the_half_point_is_that_of_the_logistic_curve():
    ratios = np.linspace(0.4, 0.7, 13)
    share = 1 / (1 + np.exp(-60 * (ratios - 0.55)))
    at, error = half_point(ratios, 400 * share, 400)
    assert at == pytest.approx(0.55, abs=1e-4)
    assert 0 < error < 0.005
    shifted, _ = half_point(ratios + 0.1, 400 * share, 400)
    assert shifted == pytest.approx(0.65, abs=1e-4)


def test_a_jump_between_two_ratios_is_known_to_their_distance():
    at, error = half_point(np.array([0.4, 0.5, 0.6]), np.array([0, 0, 20]), 20)
    assert 0.5 <= at <= 0.6
    assert error <= 0.1


@pytest.mark.thorough
def test_graphs_that_differ_have_different_signatures():
    graph = us.explore(us.Population(us.Teacher.orthonormal(2), width=1), starts=32, bridges=0)
    assert signature(graph) == signature(graph)
    assert signature(replace(graph, points=graph.points[:1])) != signature(graph)
    broken = tuple(replace(c, certified=not c.certified) for c in graph.connections)
    assert signature(replace(graph, connections=broken)) != signature(graph)


def test_runs_are_named_by_where_they_end():
    def run(loss, kind):
        structure, certificate = SimpleNamespace(label="1-tight-pair"), SimpleNamespace(kind=kind)
        return SimpleNamespace(loss=loss, structure=structure, certificate=certificate)

    assert _end(run(1e-12, "minimum")) == "copies"
    assert _end(run(0.8, "minimum")) == "1-tight-pair, loss 0.800000"
    assert _end(run(0.8, "non-strict saddle")) == "1-tight-pair (non-strict saddle)"


def turning(degree, angle):
    """What ∂L/∂θ is proportional to if both students are turned outwards by θ (see `sphere_case`)."""
    c, s = np.cos(angle), np.sin(angle)
    other = np.sin(2 * angle) ** (degree - 1) * np.cos(2 * angle)
    return c ** (degree - 1) * s + s ** (degree - 1) * c - other


@pytest.mark.parametrize("degree", [5, 7])
def test_two_students_turned_outwards_feel_the_gradient_of_the_loss(degree):
    task = us.Sphere(np.eye(2), width=2, activation=f"hermite:{degree}")

    def loss(angle):
        c, s = np.cos(angle), np.sin(angle)
        return float(task.loss(us.TwoLayer(np.array([[c, -s], [-s, c]]), np.ones(2))))

    slope = (loss(0.6 + 1e-5) - loss(0.6 - 1e-5)) / 2e-5
    assert slope == pytest.approx(2 * degree * turning(degree, 0.6), rel=1e-6)


def test_cones_of_30_degrees_are_safe_for_odd_degrees_and_those_of_45_are_not():
    angles = np.radians(np.linspace(0.01, 44.99, 2000))
    assert np.all(turning(5, angles) > 0)
    for degree in (7, 9, 11):
        assert np.all(turning(degree, angles[angles <= np.pi / 6]) > 0)
        assert turning(degree, np.radians(36)) < 0


def test_halves_of_the_one_neuron_minimum_keep_the_sign_of_their_curvature():
    """One ReLU student of one teacher: zero loss, so that Y = 0 and every split is a minimum."""
    teacher = us.Teacher.orthonormal(1, activation="relu")
    row = _wider(1, us.TwoLayer(np.asarray(teacher.incoming), np.asarray(teacher.outgoing)), 1.0)
    assert row["contradicted"] == 0
    assert row["neurons that stay minima"] == 1
    assert row["neurons whose split is a saddle"] == "0 of 1"
