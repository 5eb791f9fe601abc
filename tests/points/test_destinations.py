"""Pushes off points end somewhere with a name; escapes to infinity are told apart from slow convergence."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.dynamics.divergence import Divergence
from understudy.dynamics.flow import Trajectory
from understudy.points.destinations import Catalogue, follow_pushes, least_direction
from understudy.points.infinity import Tangent, describe_escape
from understudy.points.plateaus import nearest_critical
from understudy.surgery import split
from understudy.tasks import on_grid


@pytest.fixture(scope="module")
def teacher():
    return us.Teacher.angular([0.0, 2.0], "softplus")


@pytest.mark.thorough
def test_a_split_saddle_leads_to_the_global_minimum_both_ways(teacher):
    task, wide = on_grid(teacher, 1, spacing=0.5), on_grid(teacher, 2, spacing=0.5)
    start = us.TwoLayer(np.mean(np.asarray(teacher.incoming), axis=0)[None], [2.0])
    best = task.unflatten(jnp.asarray(nearest_critical(task, np.asarray(task.flatten(start)))[0]))
    assert us.certify(task, best).kind == "minimum"
    point = split(best, {0: [0.5, 0.5]})
    value, direction = least_direction(wide, point)
    assert value < 0
    assert direction[np.argmax(np.abs(direction))] > 0
    found = follow_pushes(wide, [point], [direction], size=1e-2, catalogue=Catalogue(wide, {"one": best}))
    assert [d.sign for d in found] == [1, -1]
    assert {d.name for d in found} == {"global minimum"}
    assert {d.kind for d in found} == {"minimum"}
    assert all(d.distance > 0.1 for d in found)


def test_the_teacher_is_named_whatever_the_rounding_of_its_loss():
    """Both pushes recover the teacher, with the students in either order and losses of 1e-16."""
    task = us.Population(us.Teacher.orthonormal(2, dim=3), width=2)
    saddle = us.TwoLayer([[6**-0.5, 6**-0.5, 0.0]] * 2, [1.0, 1.0])
    ends = follow_pushes(task, [saddle], [least_direction(task, saddle)[1]])
    assert [(end.kind, end.name) for end in ends] == [("minimum", "global minimum")] * 2
    assert all(0 <= end.loss < 1e-20 for end in ends)


def test_points_that_a_symmetry_exchanges_share_a_name():
    task = us.Population(us.Teacher.orthonormal(3), width=1)
    catalogue = Catalogue(task)
    names = [catalogue.name(us.TwoLayer([row], [1.0]), 2 / 3) for row in np.eye(3)]
    assert float(task.loss(us.TwoLayer([[1.0, 0.0, 0.0]], [1.0]))) == pytest.approx(2 / 3, abs=1e-15)
    assert names == ["new 1", "new 1, up to symmetry", "new 1, up to symmetry"]
    other = us.TwoLayer([[0.5, 0.5, 0.0]], [1.0])
    assert catalogue.name(other, float(task.loss(other))) == "new 2"


@pytest.mark.thorough
def test_functions_are_compared_and_named(teacher):
    grid, exact = on_grid(teacher, 2), us.Population(teacher, 2)
    network = us.TwoLayer([[0.5, 0.2], [-0.3, 0.4]], [1.0, -0.6])
    parts = split(network, {0: [0.3, 0.7]})
    assert grid.function_distance(parts, network) < 1e-28
    other = us.TwoLayer([[0.1, 0.9]], [0.8])
    assert abs(grid.function_distance(network, other) - exact.function_distance(network, other)) < 1e-10
    assert abs(grid.target_scale - exact.target_scale) < 1e-11
    catalogue = Catalogue(grid, {"known": network})
    loss = float(grid.loss(network))
    assert catalogue.name(parts, loss) == "known"
    assert catalogue.name(other, 0.3) == "new 1"
    assert catalogue.name(other, 0.3) == "new 1"
    assert catalogue.name(network, 1e-25) == "global minimum"
    with pytest.raises(ValueError, match="Each point needs a direction"):
        follow_pushes(grid, [network], [])


def trajectory(task, times, networks):
    vectors = np.stack([np.asarray(task.flatten(n)) for n in networks])
    end = vectors[-1]
    return Trajectory(
        end, float(task.loss(end)), 1e-12, "time limit", float(times[-1]), 9, 0, np.asarray(times), vectors, end
    )


@pytest.mark.thorough
def test_a_pair_that_grows_apart_is_recognised_with_its_rate_and_limit(teacher):
    """A pair made to measure: the target is a neuron with a tangent, which two neurons reach only at infinity."""
    grid = on_grid(teacher, 1)
    w, b = np.array([0.6, 0.1]), np.array([0.2, -0.4])
    limit = Tangent(us.TwoLayer(w[None], [1.1]), jnp.asarray(b[None]), (0,))
    targets = limit(grid.inputs, grid.activation)
    pair = us.TwoLayer(np.zeros((2, 2)), np.zeros(2))
    task = us.Empirical(pair, grid.inputs, targets, activation="softplus", weights=grid.weights)
    times = np.geomspace(1e4, 1e8, 17)
    networks = []
    for t in times:
        m = 0.5 * t**0.25
        networks.append(us.TwoLayer(np.stack([w + b / (2 * m), w - b / (2 * m)]), [0.55 + m, 0.55 - m]))
    losses = [float(task.loss(n)) for n in networks]
    slope = np.polyfit(np.log(times), np.log(losses), 1)[0]
    assert abs(slope + 1.0) < 0.05, "the squared residual of a pair falls like M⁻⁴ = t⁻¹"
    escape = describe_escape(task, trajectory(task, times, networks), Divergence(0.24, 50.0, ()))
    assert escape.pairs == ((0, 1),)
    assert abs(escape.exponent - 0.25) < 1e-9
    assert abs(escape.tangents[0] - np.linalg.norm(b)) < 1e-9
    assert escape.smaller.width == 1
    assert escape.limit_loss < 1e-20
    assert escape.limit_certificate.kind == "minimum"
    assert np.abs(np.asarray(escape.limit.slopes[0]) - b).max() < 1e-8
    assert "grow like ±t^0.25" in escape.words


def test_without_a_pair_only_what_grows_is_told(teacher):
    task = on_grid(teacher, 2, spacing=0.5)
    networks = [us.TwoLayer([[s, 0.0], [0.0, 1.0]], [1.0 / s, 1.0]) for s in (1.0, 2.0, 4.0)]
    escape = describe_escape(task, trajectory(task, [1.0, 10.0, 100.0], networks), Divergence(0.3, 4.0, ()))
    assert escape.pairs == ()
    assert escape.lengthening == (0,)
    assert escape.limit is None
    assert "incoming vectors of neurons [0] grow" in escape.words


@pytest.mark.thorough
def test_a_short_push_back_to_a_minimum(teacher):
    task = on_grid(teacher, 2, spacing=0.5)
    network = teacher.network
    _, direction = least_direction(task, network)
    found = follow_pushes(task, [network], [direction])
    assert {d.name for d in found} == {"global minimum"}
    assert all(d.distance < 1e-6 for d in found)


def test_a_push_goes_along_an_eigenvector():
    task = us.Loss(lambda x: x[0] ** 2 - 2 * x[1] ** 2, 2)
    np.testing.assert_allclose(us.points.push(task, np.zeros(2)), [0, 1e-3], atol=1e-15)
    np.testing.assert_allclose(us.points.push(task, np.zeros(2), direction=1, sign=-1, size=0.5), [-0.5, 0], atol=1e-15)
    with pytest.raises(ValueError, match="directions 0 to 1"):
        us.points.push(task, np.zeros(2), direction=2)


def test_a_push_on_the_sphere_stays_there():
    task = us.Sphere(us.Teacher.orthonormal(2, dim=3, activation="hermite:4"), 2)
    start = np.asarray(task.starts([0], "gaussian", 1.0))[0]
    moved = task.unflatten(jnp.asarray(us.points.push(task, start)))
    np.testing.assert_allclose(np.linalg.norm(moved.incoming, axis=1), 1, atol=1e-14)
