"""The complete search on the torus: counts, indices, completeness, and that it would notice a missing point."""

import math

import numpy as np
import pytest

from understudy.papers.tight_balance import tight_pairs as theory
from understudy.papers.tight_balance import torus
from understudy.papers.tight_balance.torus import search_torus
from understudy.tasks.sphere import Sphere


@pytest.fixture(scope="module")
def searches():
    return {rho: search_torus(Sphere(np.eye(2), 2, activation=f"hermite:{rho}")) for rho in (4, 6, 8)}


@pytest.mark.few(2)
@pytest.mark.parametrize(("degree", "count"), [(4, 12), (6, 20), (8, 20)])
def test_complete(searches, degree, count):
    found = searches[degree]
    assert found.complete
    assert len(found.points) == count
    assert found.index_sum == 0
    assert max(p.gradient_norm for p in found.points) < 1e-13
    for point in found.points:
        task = Sphere(np.eye(2), 2, activation=f"hermite:{degree}")
        assert float(task.loss(point.rows)) == pytest.approx(point.loss, abs=1e-13)


def test_degree_four_against_the_solution_by_hand(searches):
    """φ_1 + φ_2 ∈ (π/2)ℤ with sin 4φ (1 - (-1)^m - cos 4φ) = 0; the other family, φ_1 - φ_2 ∈ π/4 + (π/2)ℤ, adds nothing."""
    expected = set()
    for m in (0, 1):
        steps = 8 if m == 0 else 4
        for j in range(steps):
            phi = j * math.pi / steps
            expected.add((round(phi, 9), round((m * math.pi / 2 - phi) % math.pi, 9) % round(math.pi, 9)))
    found = {tuple(round(a, 9) for a in p.angles) for p in searches[4].points}
    assert found == expected


def test_degenerate_points_are_tight_balance_and_only_there(searches):
    flat = [p for p in searches[4].points if p.degenerate]
    assert len(flat) == 4
    assert all(p.index == -1 and 0 < p.unresolved < 5e-3 for p in flat)
    assert max(abs(math.sin(4 * p.angles[0])) for p in flat) == pytest.approx(1.0, abs=1e-14)
    assert not any(p.degenerate for p in searches[6].points)


def test_six_and_eight_have_leaning_pairs_and_tight_minima(searches):
    leaning = [p for p in searches[6].points if abs(p.loss - 0.875) < 1e-12]
    assert len(leaning) == 8
    assert {round(math.degrees(a) % 45, 6) for p in leaning for a in p.angles} == {7.5, 37.5}
    for degree in (6, 8):
        minima = [p for p in searches[degree].points if p.eigenvalues[0] > 0 and p.loss > 1e-9]
        assert len(minima) == 4
        assert min(abs(p.angles[0] - theory.angle(degree)) for p in minima) < 1e-14


def test_odd_degrees_and_general_teachers():
    assert search_torus(Sphere(np.eye(2), 2, activation="hermite:3")).complete
    tilted = [[1.0, 0.0], [math.cos(1.2), math.sin(1.2)], [math.cos(2.5), math.sin(2.5)]]
    found = search_torus(Sphere(tilted, 2, activation="hermite:4", repulsion=0.7))
    assert found.complete
    assert found.index_sum == 0


def test_a_missing_point_is_noticed(monkeypatch):
    """With one zero struck from the list its neighbourhood cannot be settled, and the indices do not add up."""
    original = torus._polish
    monkeypatch.setattr(torus, "_polish", lambda *arguments: original(*arguments)[1:])
    found = search_torus(Sphere(np.eye(2), 2, activation="hermite:6"), depth=4)
    assert not found.complete
    assert found.stray > 0
    assert found.index_sum != 0


def test_other_sizes_are_refused():
    with pytest.raises(ValueError, match="two students in dimension 2"):
        search_torus(Sphere(np.eye(3), 2))
