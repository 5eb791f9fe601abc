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
    assert _end(run(0.8, "minimum")) == "1-tight-pair"
    assert _end(run(0.8, "non-strict saddle")) == "1-tight-pair (non-strict saddle)"


def test_halves_of_the_one_neuron_minimum_keep_the_sign_of_their_curvature():
    """One ReLU student of one teacher: zero loss, so that Y = 0 and every split is a minimum."""
    teacher = us.Teacher.orthonormal(1, activation="relu")
    row = _wider(1, us.TwoLayer(np.asarray(teacher.incoming), np.asarray(teacher.outgoing)), 1.0)
    assert row["contradicted"] == 0
    assert row["neurons that stay minima"] == 1
    assert row["neurons whose split is a saddle"] == "0 of 1"
