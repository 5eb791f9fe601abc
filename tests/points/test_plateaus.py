"""Critical points of any kind near a point, by Newton's method."""

import numpy as np
import pytest

from understudy.papers.tight_balance import tight_pairs as theory
from understudy.points.plateaus import nearest_critical
from understudy.tasks.sphere import Sphere


@pytest.mark.parametrize("angles", [(44.0, -46.0), (46.0, 43.0), (1.0, -2.0), (21.0, -24.0)])
def test_newton_finds_saddles_maxima_and_degenerate_points(angles):
    phi = np.radians(angles)
    start = np.stack([np.cos(phi), np.sin(phi)], axis=1).ravel()
    found, norm = nearest_critical(Sphere(np.eye(2), 2), start)
    assert norm < 1e-14
    assert np.linalg.norm(found - start) < 0.1


def test_newton_reaches_the_degenerate_point_itself():
    start = theory.slow_curve(np.array(0.02)).ravel()
    found, _ = nearest_critical(Sphere(np.eye(2), 2), start)
    # The gradient is 64 s³ there: at rounding s is about (1e-16/64)^(1/3).
    assert np.linalg.norm(found - theory.tight_pairs(2, 2, 2, 4).ravel()) < 5e-6
