"""Solves, jumps and lowest eigenvalues from Hessian products alone, beside those from built Hessians."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.dynamics import far_jump, follow, jump, starts
from understudy.dynamics.krylov import Curvature, preconditioned_eigenpairs
from understudy.dynamics.trajectory import FlowOptions
from understudy.points import certificate


@pytest.fixture(scope="module")
def task():
    return us.Population(us.Teacher.orthonormal(5, dim=6), width=4)


@pytest.fixture(scope="module")
def minimum(task):
    """The end of a run, and a point of the flow just before it."""
    begin = np.asarray(task.flatten(starts.gaussian(task, [0], 0.1)))
    run = next(follow(task, begin, FlowOptions(), lanes=1))[1]
    return run.vector, run.flow_end


def draw(task, seed=0, size=0.5):
    return size * np.random.default_rng(seed).normal(size=task.size)


@pytest.mark.few(2)
@pytest.mark.parametrize("outgoing", ["trained", "fixed"])
@pytest.mark.parametrize("activation", ["erf", "relu", "softplus"])
def test_blocks_are_those_of_the_hessian(activation, outgoing):
    task = us.Population(us.Teacher.orthonormal(5, dim=6, activation=activation), width=3, outgoing=outgoing)
    point = draw(task)
    hessian, groups = np.asarray(task.hessian(jnp.asarray(point))), task.hessian_groups
    assert sorted(groups.ravel()) == list(range(task.size))
    blocks = task.prepared(point).hessian_blocks(jnp.asarray(point))
    for group, block in zip(groups, blocks, strict=True):
        np.testing.assert_allclose(block, hessian[np.ix_(group, group)], atol=1e-13)


def test_tasks_without_blocks_say_so():
    teacher = us.Teacher.orthonormal(3, dim=4)
    assert us.Population(teacher, 2, bias="trained").hessian_groups is None
    assert us.Population(teacher, 2, covariance=np.diag([1.0, 1.0, 2.0, 1.0])).hessian_groups is None


def test_solves_are_those_with_the_hessian(task):
    curvature, point, other = Curvature(task), draw(task), draw(task, 1)
    right, tangent = draw(task, 2), np.ones((1, task.size)) / np.sqrt(task.size)
    hessian, there = (np.asarray(task.hessian(jnp.asarray(x))) for x in (point, other))
    np.testing.assert_allclose(curvature.product(point, right[None])[0], hessian @ right, atol=1e-12)
    shift = 1.0 - np.linalg.eigvalsh(hessian - there / 2)[0]
    inverse = curvature.inverse(point, shift)
    found = curvature.solve(
        point, inverse, right, shift=shift, minus=(other, 0.5), lift=(tangent, 3.0), tolerance=1e-13
    )
    matrix = hessian - there / 2 + shift * np.eye(task.size) + 3 * tangent.T @ tangent
    assert found.converged
    assert found.positive
    np.testing.assert_allclose(found.x, np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-11)


def test_negative_curvature_is_noticed(task):
    point, right = draw(task), draw(task, 2)
    curvature = Curvature(task)
    lowest = np.linalg.eigvalsh(np.asarray(task.hessian(jnp.asarray(point))))[0]
    assert lowest < 0
    found = curvature.solve(point, curvature.inverse(point, 0.0), right, tolerance=1e-10)
    assert not found.positive


def test_jumps_end_where_those_with_hessians_end(task, minimum):
    end, before = minimum
    near, far = jump.justified(task, before[None], [0])[0], far_jump.attempt(task, before)
    np.testing.assert_allclose(far.end, end, atol=1e-12)
    np.testing.assert_allclose(far.end, near.end, atol=1e-12)
    assert far.gradient_norm < 1e-12
    np.testing.assert_allclose(far.distance, near.distance, rtol=1e-5)
    # In other coordinates the decrement is another one, by about the distance.
    np.testing.assert_allclose(far.decrement, near.decrement, rtol=10 * float(near.distance))


@pytest.mark.thorough
def test_jumps_follow_a_curved_valley():
    """One neuron for 33 teachers is nearly linear: w → w/s, a → s a hardly changes the loss, along a hyperbola."""
    task = us.Population(us.Teacher.orthonormal(33, dim=34), width=1)
    best = us.theory.one_neuron("erf", teachers=33)
    point = np.concatenate([np.full(33, best.norm / np.sqrt(33)), [0.0, best.outgoing]])
    local, origin = task.straight_chart(jnp.asarray(point))
    soft = np.linalg.eigh(np.asarray(local.evaluate(origin).hessian))[1][:, 0]
    beside = np.asarray(local.point(origin + 0.3 * soft))
    found = far_jump.attempt(task, beside)
    np.testing.assert_allclose(found.end, point, rtol=1e-7, atol=1e-10)
    assert far_jump._attempt(task, beside) is None  # the ends of a straight ellipsoid are on the slopes


def test_settling_is_one_implicit_step(task, minimum):
    """It removes errors in stiff directions and keeps the place in soft ones; next to a saddle it does nothing."""
    duration = 50.0
    values, vectors = np.linalg.eigh(np.asarray(task.hessian(jnp.asarray(minimum[0]))))
    start = minimum[0] + 1e-4 * (vectors[:, 0] + vectors[:, -1])
    settled = far_jump.settled(task, start, duration)
    equation = (settled - start) / duration + np.asarray(task.gradient(jnp.asarray(settled)))
    assert np.linalg.norm(equation) < 1e-9
    along = vectors.T @ (settled - minimum[0])
    np.testing.assert_allclose(along[[0, -1]], 1e-4 / (1 + duration * values[[0, -1]]), rtol=1e-3)
    saddle = draw(task)
    assert np.array_equal(far_jump.settled(task, saddle, duration), saddle)


def test_no_jump_from_a_saddle_or_from_far_away(task, minimum):
    assert far_jump.attempt(task, draw(task)) is None  # negative curvature
    assert far_jump.attempt(task, minimum[0] + draw(task, 3, 0.3)) is None
    assert far_jump.attempt(task, np.zeros(task.size)) is None


def test_lowest_eigenvalues_come_with_their_errors(task, minimum):
    curvature, point = Curvature(task), minimum[0]
    values, vectors, errors = preconditioned_eigenpairs(curvature, point, curvature.inverse(point, 0.0), 3, 1e-9, 100)
    exact = np.linalg.eigvalsh(np.asarray(task.hessian(jnp.asarray(point))))
    assert np.all(np.abs(values - exact[:3]) <= errors + 1e-12)
    assert errors.max() < 1e-7
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-9)


@pytest.mark.thorough
def test_certificates_without_the_hessian_agree(task, minimum, monkeypatch):
    dense = us.certify(task, minimum[0])
    monkeypatch.setattr(certificate, "DENSE", 10)
    free = us.certify(task, minimum[0])
    assert (dense.kind, free.kind) == ("minimum", "minimum")
    assert free.method == "matrix-free"
    assert free.least_eigenvalue == pytest.approx(dense.least_eigenvalue, rel=1e-6)
