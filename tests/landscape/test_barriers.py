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
    for way in found.passes:
        for down, end in zip(way.descents, way.end_losses, strict=True):
            heights = losses_along(TOY, down)
            assert np.all(np.diff(heights) <= 1e-12)  # steepest descent never rises
            assert (heights[0], heights[-1]) == pytest.approx((way.loss, end), abs=1e-10)
            assert len(down) > 5


def test_networks_that_are_still_training_are_followed_down_first(tight):
    rng = np.random.default_rng(0)
    near = [np.asarray(x) + 0.02 * rng.normal(size=(2, 2)) for x in (rows(0.0, np.pi / 2), tight.incoming)]
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in near]
    found = us.barrier(TOY, *unit, tries=1)
    assert found.certified
    assert found.height == pytest.approx(0.875, abs=1e-10)
    np.testing.assert_allclose(np.linalg.norm(TOY.gradient(found.path[0])), 0.0, atol=1e-9)


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


@pytest.mark.parametrize(
    ("activation", "flip"), [("erf", (-1.0, -1.0)), ("relu", (1.0, 1.0)), ("hermite:2", (-1.0, 1.0))]
)
def test_line_segments_with_a_spare_neuron_change_the_order_at_no_loss(activation, flip):
    """Tian, Section 4.3: equal networks in another order are joined by segments, but not by one straight line."""
    teacher = us.Teacher.orthonormal(4, activation=activation)
    task = us.Population(teacher, width=4)
    w, order = np.asarray(teacher.incoming), [2, 0, 1, 3]
    inner, outer = (np.where([False, True, False, True], s, 1.0) for s in flip)
    moved = us.TwoLayer(inner[:, None] * w[order], outer)
    found = mode_connectivity(task, us.TwoLayer(w, np.ones(4)), moved, images=5, iterations=0)
    assert found.line > 0.01
    assert found.segments == pytest.approx(0.0, abs=1e-13)
    assert len(found.profiles["segments"]) >= 5 * (2 * 4 + 1)  # a cycle of three needs four moves of two segments


def test_mode_connectivity_keeps_biases():
    """Wider networks used to lose their biases: equal networks in another order were not joined at no loss."""
    bias = np.array([0.5, -0.3])
    task = us.Population(us.Teacher(np.eye(2), np.ones(2), "erf", bias=bias), 2, bias="trained")
    first = us.TwoLayer(np.eye(2), np.ones(2), bias=bias)
    swapped = us.TwoLayer(np.array([[0.0, -1.0], [1.0, 0.0]]), np.array([-1.0, 1.0]), bias=np.array([0.3, 0.5]))
    found = mode_connectivity(task, first, swapped, images=5, iterations=0)
    assert found.line > 1e-3
    for way in ("aligned", "wider", "segments"):
        assert getattr(found, way) == pytest.approx(0.0, abs=1e-12), way


def test_mode_connectivity_needs_outgoing_weights_that_can_vanish():
    with pytest.raises(ValueError, match="trained outgoing weights; received Sphere"):
        mode_connectivity(TOY, np.eye(2), np.eye(2))
