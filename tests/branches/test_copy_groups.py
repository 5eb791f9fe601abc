"""Symmetric networks by counts: they are the networks that they count, and have all their eigenvalues."""

import numpy as np
import pytest

import understudy as us
from understudy.branches.copy_groups import CopyGroups


@pytest.mark.parametrize(("students", "teachers"), [([3, 1], [2]), ([2], [1, 2]), ([3, 2], [])])
def test_the_loss_is_that_of_the_network(students, teachers):
    task = CopyGroups(students, teachers)
    x = np.random.default_rng(1).normal(size=task.size)
    network = task.network(x)
    whole = us.Population(us.Teacher.orthonormal(sum(students) + sum(teachers)), sum(students))
    assert float(task.loss(x)) == pytest.approx(float(whole.loss(network)), abs=1e-13)
    # Moving one parameter moves all entries that it stands for.
    moved = [np.asarray(whole.flatten(task.network(x + row)) - whole.flatten(network)) for row in np.eye(task.size)]
    np.testing.assert_allclose(np.stack(moved) @ np.asarray(whole.gradient(network)), task.gradient(x), atol=1e-12)
    np.testing.assert_allclose(np.sum(np.stack(moved) ** 2, axis=1), task.multiplicities, atol=1e-12)


def test_refined_eigenvalues_are_all_eigenvalues_of_the_network():
    task = CopyGroups([4, 1], [2])
    average = us.theory.one_neuron("erf", 3)
    step = average.norm * average.correlation
    x = np.array([1.0, 0.0, 0.0, 0.0, 1.0, step, 0.0, step, average.outgoing])  # four copies, one average of three
    network = task.network(x)
    wide = us.TwoLayer(np.pad(np.asarray(network.incoming), ((0, 0), (0, 1))), network.outgoing)
    whole = us.Population(us.Teacher.orthonormal(7, dim=8), 5)
    assert np.linalg.norm(whole.gradient(wide)) < 1e-13
    full, found = np.linalg.eigvalsh(whole.hessian(wide)), task.network_eigenvalues(x)
    apart = np.abs(full[:, None] - found[None, :])
    assert apart.min(axis=0).max() < 1e-12
    assert apart.min(axis=1).max() < 1e-12


def test_bad_groups_are_explained():
    with pytest.raises(ValueError, match="at least one group"):
        CopyGroups([])
    with pytest.raises(ValueError, match="positive sizes"):
        CopyGroups([3], [-1.0])
    with pytest.raises(ValueError, match="needs a weight"):
        CopyGroups([3], [1.0], weights=[])
    with pytest.raises(ValueError, match="whole group sizes"):
        CopyGroups([3], [1.5]).network(np.zeros(4))
    with pytest.raises(ValueError, match="at least 4 students"):
        CopyGroups([3.5], [1.5]).network_eigenvalues(np.zeros(4))
    with pytest.raises(ValueError, match="4 parameters"):
        CopyGroups([3], [1.5]).loss(np.zeros(5))
