"""Runs of the equations beside simulations: slope in d, divergence by name, schedules, asymptotic errors."""

import numpy as np
import pytest

import understudy as us
from understudy.online import Overlaps, asymptotic_error, follow_on_samples, sampled

COMMITTEE = us.Population(us.Teacher.orthonormal(2), width=2, outgoing=1.0)


def deviation(online, start, times, dim, seeds):
    """Root mean square distance of simulated overlaps from the equations', over seeds, times and entries."""
    run, simulated = online.run(start, times), online.simulate(start, times, dim=dim, seeds=seeds)
    gaps = [simulated.student_overlaps - run.student_overlaps, simulated.teacher_overlaps - run.teacher_overlaps]
    return float(np.sqrt(np.mean([np.mean(gap**2) for gap in gaps])))


@pytest.mark.parametrize(("activation", "outgoing"), [("erf", 1.0), ("relu", "trained")])
def test_simulations_approach_the_equations(activation, outgoing):
    """Four times the dimension, half the distance: 32 seeds know a slope to about 0.1."""
    task = us.Population(us.Teacher.orthonormal(2, activation=activation), 2, outgoing=outgoing)
    online = us.Online(task, 0.8, noise=0.2)
    a = [1.0, 1.0] if outgoing == 1.0 else [0.9, 0.7]
    start = Overlaps([[0.3, 0.1], [0.1, 0.4]], [[0.3, 0.1], [0.0, 0.2]], a)
    times = np.array([0.5, 1.0, 2.0, 4.0])
    found = [deviation(online, start, times, dim, 32) for dim in (50, 200)]
    assert np.log(found[1] / found[0]) / np.log(4) == pytest.approx(-0.5, abs=0.2)
    assert found[1] < 0.1


@pytest.mark.thorough
def test_slope_in_the_dimension():
    online = us.Online(COMMITTEE, 1.0, noise=0.1)
    start = Overlaps([[0.3, 0.1], [0.1, 0.4]], [[0.3, 0.1], [0.0, 0.2]], [1.0, 1.0])
    times = np.array([1.0, 2.0, 5.0, 10.0])
    dims = [100, 300, 1000, 3000]
    found = [deviation(online, start, times, dim, 24) for dim in dims]
    assert np.polyfit(np.log(dims), np.log(found), 1)[0] == pytest.approx(-0.5, abs=0.1)


def test_divergence_is_named():
    task = us.Population(us.Teacher.orthonormal(2, activation="linear"), 2, outgoing=1.0)
    online = us.Online(task, 5.0)
    result = online.run(Overlaps(0.3 * np.eye(2), 0.1 * np.ones((2, 2)), [1.0, 1.0]), np.linspace(0, 100, 11))
    assert result.ending == "diverged"
    assert "beyond stability" in result.message
    assert "learning rate 5" in result.message
    assert len(result.times) < 11
    assert np.all(np.isfinite(result.loss))


def test_schedule_of_one_value_is_a_constant():
    online, scheduled = us.Online(COMMITTEE, 0.5), us.Online(COMMITTEE, lambda time: 0.5)
    start = online.start(3, dim=50)
    first, second = online.run(start, [0.0, 5.0]), scheduled.run(start, [0.0, 5.0])
    np.testing.assert_allclose(first.vectors, second.vectors, atol=1e-9)
    one, two = (o.simulate(start, [5.0], dim=50, seeds=2) for o in (online, scheduled))
    np.testing.assert_allclose(one.student_overlaps, two.student_overlaps, atol=1e-12)
    slower = us.Online(COMMITTEE, lambda time: 0.5 / (1 + time)).run(start, [0.0, 5.0])
    assert slower.loss[-1] > first.loss[-1]
    with pytest.raises(ValueError, match="at least 0; received -1"):
        us.Online(COMMITTEE, lambda time: -1.0).run(start, [1.0])


@pytest.mark.thorough
def test_quadrature_states_its_error():
    task = us.Population(us.Teacher.orthonormal(2, activation="tanh"), 1)
    start = Overlaps([[0.3]], [[0.2, 0.1]], [0.5])
    rough, fine = (us.Online(task, 0.5, nodes=nodes).run(start, [0.0, 3.0]) for nodes in (16, 28))
    assert rough.average_error > 10 * fine.average_error > 0
    assert np.abs(rough.vectors - fine.vectors).max() < 10 * rough.average_error
    assert us.Online(COMMITTEE, 0.5).run(us.Online(COMMITTEE, 0.5).start(), [1.0]).average_error == 0


@pytest.mark.few(1)
@pytest.mark.parametrize(("students", "rate"), [(2, 0.5), (3, 0.1)])
def test_asymptotic_error(students, rate):
    """Linear response against a long run; small rates against the formula of Goldt et al. (2019), (ησ²/π)(L + M/√3)."""
    task = us.Population(us.Teacher.orthonormal(2), students, outgoing=1.0)
    w = np.zeros((students, 2))
    w[:2] = np.eye(2)
    perfect = us.TwoLayer(w, np.ones(students))
    online = us.Online(task, rate, noise=1e-3)
    error = asymptotic_error(online, perfect)
    long_run = online.run(perfect, [3e3 / rate]).loss[-1]
    assert long_run == pytest.approx(error.linear_response, rel=1e-3)
    assert error.small_rate == pytest.approx(rate * 1e-6 / np.pi * (students - 2 + 2 / np.sqrt(3)), rel=1e-12)
    tiny = asymptotic_error(us.Online(task, 1e-4, noise=1e-3), perfect)
    assert tiny.linear_response == pytest.approx(tiny.small_rate, rel=1e-3)
    with pytest.raises(ValueError, match="equals its teacher"):
        asymptotic_error(online, us.TwoLayer(w / 2, np.ones(students)))


def test_linear_students():
    """ε = ησ²K/(4 - 2ηK) for K linear students, which is L∞/2."""
    task = us.Population(us.Teacher.orthonormal(2, activation="linear"), 2, outgoing=1.0)
    error = asymptotic_error(us.Online(task, 0.3, noise=0.1), us.TwoLayer(np.eye(2), np.ones(2)))
    assert error.linear_response / 2 == pytest.approx(0.3 * 0.01 * 2 / (4 - 2 * 0.3 * 2), rel=1e-9)


@pytest.mark.thorough
def test_minima_on_samples():
    """With many samples a minimum moves by little, and as N^(-½) does; the teacher itself stays."""
    task = us.Population(us.Teacher.orthonormal(2), 1)
    minimum = us.fit(task, seeds=1)[0].parameters
    moved = follow_on_samples(task, minimum, [100, 10_000], seed=1)
    assert [m.samples for m in moved] == [100, 10_000]
    assert 3 < moved[0].distance / moved[1].distance < 40
    assert all(m.population_loss >= m.start_loss - 1e-12 for m in moved)
    assert all(m.kind == "minimum" for m in moved)
    with pytest.raises(ValueError, match="positive whole number"):
        sampled(task, 0)
    with pytest.raises(ValueError, match="trained outgoing"):
        sampled(COMMITTEE, 5)
