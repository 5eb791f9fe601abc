"""Barriers between minima against known saddles, and paths between networks against symmetries."""

import numpy as np
import pytest

import understudy as us
from understudy.landscape import mode_connectivity
from understudy.landscape.strings import losses_along, relax, straight

RHO = 6
TOY = us.Sphere(np.eye(2), width=2, activation=f"hermite:{RHO}")


def rows(first, second):
    return np.array([[np.cos(first), np.sin(first)], [np.cos(second), np.sin(second)]])


@pytest.fixture(scope="module")
def tight():
    """The tight pair around teacher 1: w = (cos φ, ± sin φ), where its loss is least, by a grid and Newton's method."""
    angles = np.linspace(0.05, 0.7, 400)
    losses = losses_along(TOY, np.stack([rows(x, -x).ravel() for x in angles]))
    from understudy.dynamics.trajectory import FlowOptions

    start = rows(angles[losses.argmin()], -angles[losses.argmin()])
    return us.fit(TOY, seeds=1, init=start.reshape(1, -1), options=FlowOptions(snapshots=0))[0].parameters


def test_the_barrier_of_the_toy_is_its_leaning_pair(tight):
    """The only saddle between a tight pair and copies has loss 7/8 (see `toy-points`)."""
    found = us.barrier(TOY, rows(0.0, np.pi / 2), tight, tries=1)
    assert found.certified
    assert found.height == pytest.approx(0.875, abs=1e-10)
    assert [p.certificate.index for p in found.passes] == [1] * len(found.passes)
    assert found.height <= found.aligned + 1e-12
    assert found.losses.max() <= found.aligned + 1e-9


def test_images_of_one_network_have_no_barrier():
    task = us.Population(us.Teacher.orthonormal(2, dim=2), width=2)
    one = us.TwoLayer([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    same = us.TwoLayer([[0.0, -1.0], [1.0, 0.0]], [-1.0, 1.0])
    found = us.barrier(task, one, same, tries=1)
    assert (found.certified, found.passes) == (True, ())
    assert found.height == pytest.approx(0.0, abs=1e-14)
    assert found.line > 0.01
    modes = mode_connectivity(task, one, same, images=11, iterations=0)
    assert modes.aligned == pytest.approx(0.0, abs=1e-14)
    assert modes.wider == pytest.approx(0.0, abs=1e-14)
    assert modes.line > 0.01


def test_a_relaxed_path_is_lower_and_keeps_its_ends():
    path = straight(TOY, rows(0.0, np.pi / 2).ravel(), rows(0.4, -0.4).ravel(), 11)
    relaxed = relax(TOY, path, 200)
    np.testing.assert_array_equal(relaxed[[0, -1]], path[[0, -1]])
    assert losses_along(TOY, relaxed).max() < losses_along(TOY, path).max()
    gaps = np.linalg.norm(np.diff(relaxed, axis=0), axis=1)
    np.testing.assert_allclose(gaps, gaps.mean(), rtol=0.05)


@pytest.mark.parametrize("options", [{"images": 2}, {"tries": 0}, {"iterations": -1}])
def test_bad_arguments_are_refused(options):
    with pytest.raises(ValueError, match=r"images ≥ 5, iterations ≥ 0 and tries ≥ 1; received"):
        us.barrier(TOY, np.eye(2), np.eye(2), **options)
