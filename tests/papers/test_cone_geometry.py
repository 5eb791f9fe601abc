"""Split cones: velocities on their edge by two routes."""

import numpy as np
import pytest

from understudy.papers.tight_balance import cone_geometry as split_cone
from understudy.tasks.sphere import Sphere


@pytest.mark.parametrize(("degree", "n", "k"), [(4, 3, 3), (6, 6, 6), (8, 5, 6)])
def test_velocity_on_the_edge_of_a_cone(degree, n, k):
    """Against the task's own gradient, and zero at the threshold, where pushes and attraction balance."""
    rows = split_cone.worst_start(degree, n, k, 0.01)
    task = Sphere(np.eye(k), n, activation=f"hermite:{degree}", repulsion=1 / n)
    slope = np.asarray(task.gradient(rows)).reshape(n, k)[0, 0]
    assert split_cone.velocity(rows, degree) == pytest.approx(-slope / degree, abs=1e-15)
    assert np.abs(np.linalg.norm(rows, axis=1) - 1).max() < 1e-15
    share = (n - 2 if k == n else n - 1) / n
    balanced = split_cone.worst_start(degree, n, k, split_cone.leaving_threshold(degree, share))
    assert abs(split_cone.velocity(balanced, degree)) < 1e-15
