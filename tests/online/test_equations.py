"""The equations of one-pass SGD: against gradient flow, autodiff, simulation of single steps, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.dynamics import FlowOptions, follow
from understudy.online import Overlaps, equations
from understudy.online.overlaps import unpack, weights_of

RNG = np.random.default_rng(5)


def make(activation="erf", k=3, n=2, outgoing="trained", rate=0.3, teacher=None, **options):
    teacher = us.Teacher.random(k, 6, activation, seed=1) if teacher is None else teacher
    return us.Online(us.Population(teacher, n, outgoing=outgoing), rate, **options)


@pytest.mark.few(4)
@pytest.mark.parametrize("activation", ["erf", "relu", "softplus", "hermite:3"])
@pytest.mark.parametrize("outgoing", ["trained", 1.0])
def test_drift_is_the_gradient_of_the_task(activation, outgoing):
    """To first order in η, overlaps move as under -(η/2)∇L of the weights: autodiff of Q = wwᵀ, R = wvᵀ along it."""
    online = make(activation, outgoing=outgoing, rate=1e-9)
    task = online.task
    a = RNG.normal(size=2) if outgoing == "trained" else np.ones(2)
    network = us.TwoLayer(RNG.normal(size=(2, 6)) / 2, a)
    vector = task.flatten(network)
    velocity = -0.5e-9 * task.gradient(network)

    def order(flat):
        w, a = task.unflatten(flat).incoming, task.unflatten(flat).outgoing
        q, r = w @ w.T, w @ task.teacher.incoming.T
        return jnp.concatenate([q[np.triu_indices(2)], r.ravel(), *([a] if outgoing == "trained" else [])])

    wanted = np.asarray(jax.jvp(order, (vector,), (velocity,))[1]) * 1e9
    found = online.slope(online.flatten(network)) * 1e9
    order_two = equations.moments(online.problem, online.flatten(network), online.resolution(online.flatten(network)))
    found[:3] -= 1e-9 * np.asarray(order_two)[np.triu_indices(2)]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11)
    assert online.loss(online.flatten(network)) == pytest.approx(float(task.loss(network)), abs=1e-13)


@pytest.mark.parametrize("outgoing", ["trained", 1.0])
def test_small_rates_are_gradient_flow(outgoing):
    """At η = 1e-9 every order parameter and the loss are those of gradient flow at flow time ηα/2, to 1e-8."""
    task = us.Population(us.Teacher.orthonormal(3), 2, outgoing=outgoing)
    a = [0.6, 0.4] if outgoing == "trained" else [1.0, 1.0]
    network = us.TwoLayer([[0.4, 0.1, -0.2], [-0.1, 0.3, 0.2]], a)
    times = np.array([1.0, 3.0, 10.0])
    options = FlowOptions(rtol=1e-12, atol=1e-12, snapshots=times, max_time=10.5, polish=False)
    _, flow = next(iter(follow(task, np.asarray(task.flatten(network))[None], options)))
    ends = [task.unflatten(jnp.asarray(v)) for v in flow.snapshots]
    w = np.stack([np.asarray(end.incoming) for end in ends])
    wanted = {
        "student_overlaps": w @ np.swapaxes(w, 1, 2),
        "teacher_overlaps": w,  # the teachers are the unit vectors
        "outgoing": np.stack([np.asarray(end.outgoing) for end in ends]),
        "loss": np.array([float(task.loss(end)) for end in ends]),
    }
    assert np.linalg.norm(w[-1] - np.asarray(network.incoming)) > 0.1, "the flow goes somewhere"

    def distances(eta):
        run = us.Online(task, eta).run(network, 2 * times / eta, rtol=1e-12, atol=1e-14)
        return {name: np.abs(getattr(run, name) - value).max() for name, value in wanted.items()}

    assert max(distances(1e-9).values()) < 1e-8
    first, second = (distances(eta)["student_overlaps"] for eta in (2e-3, 1e-3))
    assert first / second == pytest.approx(2, rel=0.01), "what remains is of first order in η"


@pytest.mark.parametrize("activation", ["erf", "relu", "tanh", "quadratic"])
def test_one_step_of_sgd(activation):
    """d × the mean change of Q, R and a in one step, over many samples in a large dimension, is the right-hand side."""
    dim, count, eta, noise, decay = 400, 100_000, 0.7, 0.3, 0.2
    online = make(activation, rate=eta, noise=noise, weight_decay=decay, outgoing_ratio=0.5)
    start = Overlaps([[0.5, 0.1], [0.1, 0.8]], RNG.normal(size=(2, 3)) / 5, [0.7, -0.4])
    problem = online.problem
    w, v = weights_of(problem, start, dim)
    a, sigma = np.asarray(start.outgoing), problem.student
    x = RNG.normal(size=(count, 5)).astype(float)  # only the first n + k coordinates matter, and |x|² ≈ dim
    h, first = (np.asarray(z) for z in sigma.derivatives(jnp.asarray(x @ w[:, :5].T), 1))
    e = h @ a - np.asarray(sigma(x @ v[:, :5].T)) @ np.asarray(problem.teacher_outgoing)[:, 0]
    e = e - noise * RNG.normal(size=count)
    g = first * e[:, None] * a
    moved = -eta * (np.einsum("si,sd->sid", g, x) + decay * w[None, :, :5])
    by_r = moved @ v[:, :5].T
    half = moved @ w[:, :5].T
    by_q = half + np.swapaxes(half, 1, 2) + eta**2 * g[:, :, None] * g[:, None, :]
    by_a = -0.5 * eta * (h * e[:, None] + decay * a)
    upper = np.triu_indices(2)
    samples = np.concatenate([by_q[:, upper[0], upper[1]], by_r.reshape(count, -1), by_a], axis=1)
    error = samples.std(axis=0) / np.sqrt(count)
    found = online.slope(online.flatten(start))
    assert np.all(np.abs(samples.mean(axis=0) - found) < 5 * error)


@pytest.mark.few(1)
@pytest.mark.parametrize("activation", ["erf", "softplus"])
def test_jacobian_by_taylor_slope(activation):
    online = make(activation, noise=0.2, weight_decay=0.1)
    point = online.flatten(Overlaps([[0.5, 0.1], [0.1, 0.8]], RNG.normal(size=(2, 3)) / 5, [0.7, -0.4]))
    direction = RNG.normal(size=len(point))
    steps = np.array([1e-2, 1e-3])
    rest = [
        np.linalg.norm(
            online.slope(point + h * direction) - online.slope(point) - h * online.jacobian(point) @ direction
        )
        for h in steps
    ]
    assert np.log10(rest[0] / rest[1]) == pytest.approx(2, abs=0.1)


def test_perfect_learning_is_a_fixed_point():
    """At Q = R = T nothing moves, and the Jacobian there, with singular covariances, is that of one side."""
    online = us.Online(us.Population(us.Teacher.orthonormal(3), 3), 0.5)
    point = online.flatten(us.TwoLayer(np.eye(3), np.ones(3)))
    np.testing.assert_allclose(online.slope(point), 0, atol=1e-14)
    inward = online.flatten(Overlaps(1.001 * np.eye(3), np.eye(3), np.ones(3))) - point
    found = (online.slope(point + 1e-3 * inward) - online.slope(point)) / 1e-3
    np.testing.assert_allclose(online.jacobian(point) @ inward, found, atol=1e-8)


def test_many_outputs_agree_with_one():
    """Two outputs, of which the second is zero in student and teacher: the same equations as with one."""
    v = np.eye(2, 3)
    one = us.Online(us.Population(us.Teacher(v, [1.0, 0.5], "erf"), 2), 0.4)
    two = us.Online(us.Population(us.Teacher(v, [[1.0, 0.0], [0.5, 0.0]], "erf"), 2), 0.4)
    w, a = RNG.normal(size=(2, 3)), np.array([0.3, 0.8])
    first = one.slope(one.flatten(us.TwoLayer(w, a)))
    second = two.slope(two.flatten(us.TwoLayer(w, np.stack([a, 0 * a], axis=1))))
    np.testing.assert_allclose(second[:7], first[:7], atol=1e-15)
    np.testing.assert_allclose(second[7:].reshape(2, 2)[:, 0], first[7:], atol=1e-15)


def test_packing_is_invertible():
    online = make()
    vector = np.arange(1.0, 1 + len(online.flatten(online.start(0))))
    q, r, a = unpack(online.problem, jnp.asarray(vector))
    np.testing.assert_array_equal(q, q.T)
    np.testing.assert_array_equal(equations.pack(q, r, a, True), vector)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": -0.1}, "learning_rate must be finite and not negative"),
        ({"rate": float("nan")}, "learning_rate"),
        ({"noise": -1.0}, "noise must be finite"),
        ({"nodes": 3}, "nodes must lie between"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        make(**options)


def test_biases_are_refused():
    with pytest.raises(ValueError, match="without biases"):
        us.Online(us.Population(us.Teacher.orthonormal(2), 2, bias="trained"), 0.1)


def test_bad_tasks_and_starts():
    teacher = us.Teacher.orthonormal(2, 3)
    with pytest.raises(ValueError, match="isotropic"):
        us.Online(us.Population(teacher, 2, covariance=np.diag([1.0, 2.0, 3.0])), 0.1)
    with pytest.raises(ValueError, match="received a Empirical task"):
        us.Online(us.Empirical(us.TwoLayer(np.eye(2), np.ones(2)), np.eye(2), np.ones(2), activation="erf"), 0.1)
    mixed = us.Population(us.Teacher.orthonormal(2, activation="relu"), 2, activation="tanh")
    with pytest.raises(ValueError, match="both activations kinked or both smooth"):
        us.Online(mixed, 0.1)
    online = us.Online(us.Population(teacher, 2, outgoing=1.0), 0.1)
    with pytest.raises(ValueError, match="No weights have these overlaps"):
        online.run(Overlaps(0.1 * np.eye(2), np.ones((2, 2)), np.ones(2)), [1.0])
    with pytest.raises(ValueError, match="this task needs"):
        online.run(Overlaps(np.eye(3), np.zeros((3, 2)), np.ones(3)), [1.0])
    with pytest.raises(ValueError, match="fixed outgoing weights"):
        online.run(Overlaps(np.eye(2), np.zeros((2, 2)), [1.0, 2.0]), [1.0])
    with pytest.raises(ValueError, match="times must increase"):
        online.run(online.start(0), [1.0, 0.5])
    kinked = us.Online(us.Population(us.Teacher.orthonormal(2, activation="relu"), 1), 0.1)
    with pytest.raises(ValueError, match="zero incoming vector"):
        kinked.run(Overlaps([[0.0]], [[0.0, 0.0]], [1.0]), [1.0])
