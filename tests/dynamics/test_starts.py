"""Random starts: what they are drawn from, that a seed is a seed, and what is refused."""

import numpy as np
import pytest

import understudy as us
from understudy.dynamics import starts

TASK = us.Population(us.Teacher.orthonormal(3, dim=200), width=50)


def test_gaussian_weights_have_the_given_standard_deviation():
    """10,000 weights a seed: the standard deviation is known to 1/√20,000 of itself; five of these are allowed."""
    for net in (starts.gaussian(TASK, [3], 0.1), starts.gaussian(TASK, [4], 0.1)):
        w = np.asarray(net.incoming)
        assert abs(w.std() / 0.1 - 1) < 5 / np.sqrt(2 * w.size)
        assert abs(w.mean()) < 5 * 0.1 / np.sqrt(w.size)
        assert abs(np.asarray(net.outgoing).std() / 0.1 - 1) < 5 / np.sqrt(2 * 50)


def test_glorot_has_the_variance_of_each_layer():
    net = starts.glorot(TASK, [0])
    assert abs(np.asarray(net.incoming).var() * (200 + 50) / 2 - 1) < 5 * np.sqrt(2 / 10_000)
    assert abs(np.asarray(net.outgoing).var() * (50 + 1) / 2 - 1) < 5 * np.sqrt(2 / 50)


@pytest.mark.parametrize("draw", [starts.gaussian, starts.glorot])
def test_a_seed_gives_the_same_student_in_any_company(draw):
    many, alone = draw(TASK, 5), draw(TASK, [3])
    np.testing.assert_array_equal(many.incoming[3], alone.incoming[0])
    np.testing.assert_array_equal(many.outgoing[3], alone.outgoing[0])
    assert not np.allclose(many.incoming[0], many.incoming[1])


def test_fixed_outgoing_weights_stay_as_they_are():
    task = us.Population(us.Teacher.orthonormal(3), width=2, outgoing=[1.0, -2.0])
    np.testing.assert_array_equal(starts.gaussian(task, 4).outgoing, np.tile([1.0, -2.0], (4, 1)))


def test_perturbations_have_the_given_length():
    point = np.zeros(TASK.size)
    rows = np.asarray(starts.perturbed(TASK, TASK.flatten(point), [0, 5, 9], 0.25))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 0.25, rtol=1e-12)
    np.testing.assert_array_equal(rows[1], starts.perturbed(TASK, TASK.flatten(point), [5], 0.25)[0])


@pytest.mark.parametrize("seeds", [0, -1, [], [1, 1], [-2]])
def test_seeds_that_are_none_are_refused(seeds):
    with pytest.raises(ValueError, match=r"seed|Seed"):
        starts.gaussian(TASK, seeds)


@pytest.mark.parametrize("std", [0.0, -1.0, float("nan"), float("inf")])
def test_a_standard_deviation_must_be_positive(std):
    with pytest.raises(ValueError, match="standard deviation"):
        starts.gaussian(TASK, 1, std)
