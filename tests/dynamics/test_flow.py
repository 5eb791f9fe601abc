"""The flow against SciPy, its independence of how seeds are batched, its snapshots, and every way a run can end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import understudy as us
from toys import Toy
from understudy.dynamics import FlowOptions, follow, starts
from understudy.dynamics.divergence import find_divergence

# Erf, five teachers, four students: the flow has two minima, so that verdicts can go wrong.
TASK = us.Population(us.Teacher.orthonormal(5, dim=6), width=4)
STARTS = np.asarray(TASK.flatten(starts.gaussian(TASK, 100, 0.1)))


@pytest.fixture(scope="module")
def hundred():
    return dict(follow(TASK, STARTS))


def basin(trajectory):
    """The two minima differ in the loss: 0.0029 and 0.0048."""
    return round(trajectory.loss, 9)


@pytest.mark.thorough
def test_all_of_a_hundred_end_in_one_of_two_minima_at_rounding(hundred):
    assert {t.ending for t in hundred.values()} == {"polished"}
    assert max(t.gradient_norm for t in hundred.values()) < 1e-13
    assert len({basin(t) for t in hundred.values()}) == 2


@pytest.mark.thorough
def test_halving_the_tolerance_changes_no_verdict_in_a_hundred_seeds(hundred):
    finer = dict(follow(TASK, STARTS, FlowOptions(rtol=5e-7, atol=5e-7)))
    assert [basin(finer[i]) for i in range(100)] == [basin(hundred[i]) for i in range(100)]


def test_every_jump_is_recorded_and_lands_inside_its_ellipsoid(hundred):
    for t in hundred.values():
        assert t.jump is not None
        assert 0 < t.jump["ratio"] <= 1
        assert t.jump["distance"] == pytest.approx(np.linalg.norm(t.vector - t.flow_end), rel=1e-9)
        assert t.jump["gradient_norm"] == pytest.approx(float(np.linalg.norm(TASK.gradient(t.flow_end))), rel=1e-6)


def test_without_jumps_the_flow_ends_in_the_same_points(hundred):
    for i, t in follow(TASK, STARTS[:16], FlowOptions(polish=False)):
        assert t.ending == "stationary"
        assert t.jump is None
        np.testing.assert_allclose(t.vector, hundred[i].vector, atol=1e-8)


@pytest.mark.thorough
def test_snapshots_lie_on_scipys_trajectory():
    """Radau at 1e-9 stands for the exact flow; the flow's own error at 1e-6 a step adds up to some 1e-5."""
    times = np.array([0.0, 0.5, 3.0, 20.0, 50.0, 100.0, 400.0, 900.0])
    evaluate = jax.jit(lambda x: TASK.evaluate(x)[1:])
    for seed, t in follow(TASK, STARTS[:2], FlowOptions(snapshots=times)):
        reference = solve_ivp(
            lambda _, x: -np.asarray(evaluate(x)[0]),
            (0, 900),
            STARTS[seed],
            method="Radau",
            jac=lambda _, x: -np.asarray(evaluate(x)[1]),
            t_eval=times,
            rtol=1e-9,
            atol=1e-9,
        )
        np.testing.assert_array_equal(t.times, times)
        np.testing.assert_array_equal(t.snapshots[0], STARTS[seed])
        np.testing.assert_allclose(t.snapshots, reference.y.T, atol=2e-4)
        assert np.abs(t.snapshots[:3] - reference.y.T[:3]).max() < 5e-5


def test_log_spaced_snapshots_stop_where_the_run_does(hundred):
    t = hundred[0]
    assert t.times[0] == pytest.approx(1e-2)
    assert t.times[-1] <= t.time < t.times[-1] * 2
    np.testing.assert_allclose(np.diff(np.log(t.times)), np.diff(np.log(t.times))[0])
    assert np.all(np.isfinite(t.snapshots))
    losses = np.asarray(TASK.loss(t.snapshots))
    assert np.all(np.diff(losses) < 0)


@pytest.mark.thorough
def test_a_seed_ends_the_same_alone_and_in_any_company(hundred):
    for lanes, chosen in ((1, [7]), (16, [7, 50, 2, 90, 11]), (16, [99, 7])):
        result = dict(follow(TASK, STARTS[chosen], lanes=lanes))
        t = result[chosen.index(7)]
        assert t.loss == pytest.approx(hundred[7].loss, abs=1e-14)
        np.testing.assert_allclose(t.vector, hundred[7].vector, atol=1e-10)
        assert t.steps == pytest.approx(hundred[7].steps, abs=2)


def test_the_last_state_of_a_run_that_hits_a_limit_is_kept():
    _, t = next(follow(TASK, STARTS[:1], FlowOptions(max_time=37.5), lanes=16))
    assert (t.ending, t.time) == ("time limit", 37.5)
    assert t.gradient_norm == pytest.approx(float(np.linalg.norm(TASK.gradient(t.vector))), rel=1e-9)
    _, t = next(follow(TASK, STARTS[:1], FlowOptions(max_steps=10), lanes=16))
    assert t.ending == "step limit"
    assert t.steps + t.rejected == 10
    assert t.loss == pytest.approx(float(TASK.loss(t.vector)), rel=1e-12)


def test_growth_on_the_way_to_a_limit_is_not_divergence():
    """Stopped while neurons still grow, the run is unconverged and nothing more."""
    runs = us.fit(TASK, [0], options=FlowOptions(max_time=30.0))
    assert runs[0].certificate.kind == "unconverged"


def test_a_stalled_run_is_unconverged():
    runs = us.fit(TASK, [0], options=FlowOptions(max_steps=20))
    assert runs[0].trajectory.ending == "step limit"
    assert runs[0].certificate.kind == "unconverged"
    np.testing.assert_array_equal(TASK.flatten(runs[0].parameters), runs[0].trajectory.vector)


def test_a_polished_run_is_never_called_diverging(hundred):
    assert not any(find_divergence(t) for t in hundred.values())


def test_a_saddle_is_left_by_shorter_steps_where_cholesky_fails():
    """From 1e-12 beside the saddle of x²/2 - y²/2 + y⁴/4, steps have grown long when the escape begins."""
    task = Toy(lambda x: x[0] ** 2 / 2 - x[1] ** 2 / 2 + x[1] ** 4 / 4, 2)
    _, t = next(follow(task, np.array([[1.0, 1e-12]])))
    np.testing.assert_allclose(t.vector, [0.0, 1.0], atol=1e-12)
    assert t.rejected > 0


def test_exactly_on_the_stable_manifold_the_run_ends_in_the_saddle():
    task = Toy(lambda x: x[0] ** 2 / 2 - x[1] ** 2 / 2 + x[1] ** 4 / 4, 2)
    _, t = next(follow(task, np.array([[1.0, 0.0]])))
    assert t.ending == "stationary"
    np.testing.assert_allclose(t.vector, 0, atol=1e-12)
    assert us.certify(task, t.vector).kind == "strict saddle"


def test_numbers_that_overflow_are_named():
    _, t = next(follow(Toy(lambda x: -jnp.sum(jnp.exp(x)), 1), np.array([[1.0]])))
    assert t.ending in ("not finite", "step limit")
    assert np.all(np.isfinite(t.vector))


@pytest.mark.thorough
def test_relu_neurons_that_rest_at_zero_cost_few_steps():
    """Seeds 1 and 8: a neuron with |a| > ‖w‖ and the wrong sign is driven into w = 0, rests there, and comes back."""
    task = us.Population(us.Teacher.orthonormal(8, dim=9, activation="relu"), width=4)
    vectors = np.asarray(task.flatten(starts.gaussian(task, [1, 8], 0.1)))
    options = FlowOptions(snapshots=np.linspace(0.6, 1.2, 5))
    for i, t in follow(task, vectors, options, lanes=2):
        assert t.steps + t.rejected < 400
        assert t.loss == pytest.approx(1.282946930977, abs=1e-11)
        assert t.gradient_norm < 1e-13
        resting = np.linalg.norm(np.asarray(task.unflatten(jnp.asarray(t.snapshots)).incoming), axis=-1)
        assert resting[:, (1, 2)[i]].min() < 1e-5
        found = us.certify(task, t.vector)
        assert (found.kind, found.flat_dimension) == ("minimum", 5)
        assert found.gradient_norm < 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rtol": 0.0}, "rtol must be positive"),
        ({"max_steps": 0}, "max_steps must be positive"),
        ({"snapshots": [1.0, 0.5]}, "increasing"),
        ({"snapshots": [-1.0]}, "not negative"),
    ],
)
def test_bad_options_are_told(options, message):
    with pytest.raises(ValueError, match=message):
        FlowOptions(**options)


def test_observing_every_step_sees_the_run_and_does_not_change_it():
    seen = []
    options = FlowOptions(snapshots=200)
    (_, observed), (_, alone) = (
        next(follow(TASK, STARTS[:1], options, observe=lambda index, glimpse: seen.append((index, glimpse)))),
        next(follow(TASK, STARTS[:1], options)),
    )
    np.testing.assert_array_equal(observed.vector, alone.vector)
    assert {index for index, _ in seen} == {0}
    times = [glimpse.time for _, glimpse in seen]
    assert times == sorted(times)
    assert len(times) >= observed.steps
    last = seen[-1][1]
    np.testing.assert_array_equal(last.snapshots, observed.snapshots)
    np.testing.assert_array_equal(last.vector, observed.flow_end)
