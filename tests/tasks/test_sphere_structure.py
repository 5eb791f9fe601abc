"""Names of configurations on the sphere."""

import numpy as np
import pytest

import understudy as us
from understudy.papers.tight_balance import tight_pairs as theory
from understudy.tasks.sphere import Sphere
from understudy.tasks.sphere_structure import orbit_key

HALF = 0.5**0.5


def at(*degrees):
    phi = np.radians(degrees)
    return np.stack([np.cos(phi), np.sin(phi)], axis=1)


@pytest.mark.parametrize(
    ("rows", "label"),
    [
        (at(0, 90), "2-copy"),
        (at(180, -90), "2-copy"),
        (at(22.5, -22.5), "1-tight-pair"),
        (at(22.5, 157.5), "1-tight-pair"),
        (at(67.5, 112.5), "1-tight-pair"),
        (at(45, -45), "1-balance-pair"),
        (at(0, 180), "1-same-copy"),
        (at(45, 225), "1-same-average"),
        (at(7.5, -37.5), "1-leaning-pair"),
        (at(45, 0), "1-copy-1-average"),
    ],
)
def test_two_students_in_the_plane(rows, label):
    assert Sphere(np.eye(2), 2).structure(us.TwoLayer(rows, np.ones(2))).label == label


@pytest.mark.parametrize(
    ("rows", "k", "label"),
    [
        (theory.tight_pairs(4, 4, 5, 4, 1), 4, "2-copy-1-tight-pair"),
        (theory.tight_pairs(4, 5, 5, 4, 2), 5, "2-tight-pair"),
        (theory.outside_pair(3, 4), 2, "1-outside-pair"),
        (np.array([[1.0, 0, 0], [0.6, 0, 0.8]]), 2, "1-copy-1-idle"),
        (np.array([[1.0, 0, 0], [0.6, 0.8, 0]]), 2, "1-copy-1-other"),
        (np.array([[0.9, 0.3, 0.1], [0.9, -0.3, -0.1]]) / np.sqrt(0.91), 2, "1-split-pair"),
        (np.full((1, 3), 3**-0.5), 3, "1-average"),
    ],
)
def test_more_dimensions(rows, k, label):
    task = Sphere(np.eye(k, rows.shape[1]), len(rows))
    assert task.structure(us.TwoLayer(rows, np.ones(len(rows)))).label == label


def test_signs_count_for_odd_degrees():
    rows = -np.eye(2)
    task = Sphere(np.eye(2), 2, activation="hermite:3")
    assert task.structure(us.TwoLayer(rows, np.ones(2))).label == "2-other"


def test_neurons_say_what_they_share():
    found = Sphere(np.eye(2), 2).structure(us.TwoLayer(at(0, 180), np.ones(2)))
    assert [n.role for n in found.neurons] == ["copy", "duplicate"]
    assert found.neurons[1].partner == 0
    assert found.distance < 1e-15


def test_orbits():
    rows = theory.tight_pairs(2, 2, 2, 4)
    assert orbit_key(rows) == orbit_key(-rows[::-1]) == orbit_key(rows[:, ::-1]) == orbit_key(rows * [1.0, -1.0])
    assert orbit_key(rows) != orbit_key(np.eye(2))
