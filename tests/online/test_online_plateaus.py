"""The symmetric plateau of two students: found, certified, and left when the linearised equations say so."""

import numpy as np
import pytest

import understudy as us
from understudy.online import find_plateaus
from understudy.online.plateaus import fixed_point

COMMITTEE = us.Population(us.Teacher.orthonormal(2), width=2, outgoing=1.0)


@pytest.fixture(scope="module")
def result():
    online = us.Online(COMMITTEE, 0.1)
    return online.run(online.start(0, dim=1000), np.linspace(0.0, 2000.0, 401))


def test_symmetric_plateau(result):
    """(k, n) = (2, 2), η = 0.1: one plateau near Q = C = 1/3, R = 1/√6, then each student takes a teacher."""
    (plateau,) = find_plateaus(result)
    assert plateau.duration > 300
    certificate = plateau.certificate
    assert certificate.kind == "strict saddle"
    assert plateau.index == 1
    # Saad and Solla 1995: ε = (K/π)(π/6 - K asin(1/2K)) and R = 1/√(K(2K-1)), K = 2; the loss is 2ε.
    assert certificate.loss == pytest.approx(4 / np.pi * (np.pi / 6 - 2 * np.arcsin(1 / 4)), abs=1e-12)
    np.testing.assert_allclose(np.abs(np.asarray(plateau.critical.incoming)[:, :2]), 1 / np.sqrt(6), atol=1e-9)
    assert plateau.growth_rates[0] == pytest.approx(plateau.critical_rates[0], rel=0.02)
    specialised = np.sort(result.teacher_overlaps[-1], axis=1)
    assert np.all(specialised[:, 1] > 0.99)
    assert np.all(specialised[:, 0] < 0.05)


def test_time_to_leave(result):
    (plateau,) = find_plateaus(result)
    predicted, measured = plateau.predicted_leaving - plateau.time, plateau.measured_leaving - plateau.time
    assert predicted == pytest.approx(measured, rel=0.1)
    assert measured > 200


def test_fixed_points_approach_critical_points(result):
    """The fixed point of the noiseless equations goes to the critical point linearly in η."""
    (plateau,) = find_plateaus(result)
    gaps = []
    for eta in (0.1, 0.05):
        online = us.Online(COMMITTEE, eta)
        gaps.append(online.loss(fixed_point(online, plateau.fixed_point)) - plateau.certificate.loss)
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.1)


def test_no_plateau_without_later_speed():
    online = us.Online(COMMITTEE, 0.1)
    start = us.TwoLayer([[0.9, 0.0], [0.0, 0.8]], [1.0, 1.0])
    assert find_plateaus(online.run(start, np.linspace(0.0, 200.0, 101))) == []
