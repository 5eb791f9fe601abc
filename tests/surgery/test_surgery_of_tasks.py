"""Every task through split, grow and warm_start: what keeps the function, and reasons where nothing does."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from cases import thorough_but
from understudy.dynamics import FlowOptions
from understudy.networks import HiddenLayer
from understudy.points.splitting import inertia_of, split_matrices
from understudy.surgery import grow, split_point, warm_start
from understudy.tasks import on_grid

RNG = np.random.default_rng(3)
X = RNG.normal(size=(12, 2))
Y = np.stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1]], axis=1)
OUTGOING = np.array([[1.0, 0.5], [-0.4, 1.2], [0.7, -0.9]])
WITH_BIASES = us.Teacher(np.eye(3, 4), OUTGOING, "erf", [0.3, -0.2, 0.1], [0.1, 0.2])


class Own(eqx.Module):
    """A user's network, with all that surgery needs: a hidden layer and a trained shift of the inputs."""

    weight: jnp.ndarray
    out: jnp.ndarray
    shift: jnp.ndarray

    @property
    def hidden_widths(self):
        return (len(self.weight),)

    def hidden(self, layer=0):
        return HiddenLayer(self.weight, None, self.out[:, None])

    def with_hidden(self, hidden, layer=0):
        return Own(jnp.asarray(hidden.incoming), jnp.asarray(hidden.outgoing)[:, 0], self.shift)

    def __call__(self, x, activation):
        return activation((x + self.shift[None]) @ self.weight.T) @ self.out


def two_layer(biased):
    extra = (np.zeros(2), np.zeros(2)) if biased else ()
    return us.TwoLayer(np.zeros((2, 2)), np.zeros((2, 2)), *extra)


DEEP = us.Deep.glorot([2, 3, 2, 2], seed=1)
TASKS = {
    "population": (lambda: us.Population(us.Teacher.orthonormal(3), 2), 0),
    "biases, two outputs": (lambda: us.Population(WITH_BIASES, 2, bias="trained"), 0),
    "mean and covariance": (
        lambda: us.Population(WITH_BIASES, 2, mean=[0.1, 0.2, 0, 0], covariance=np.diag([0.5, 1, 2, 1])),
        0,
    ),
    "committee": (lambda: us.Population(us.Teacher.orthonormal(3), 2, outgoing="fixed", bias=0.2), 0),
    "relu population": (lambda: us.Population(us.Teacher.orthonormal(3, activation="relu"), 2), 0),
    "sphere": (lambda: us.Sphere(us.Teacher.random(3, 4, "hermite:4"), 2, repulsion=1.5), 0),
    "grid": (lambda: on_grid(us.Teacher.angular([0.0, 1.0], "softplus"), 2), 0),
    "two-layer data": (lambda: us.Empirical(two_layer(False), X, Y, activation="tanh"), 0),
    "two-layer data, biases": (lambda: us.Empirical(two_layer(True), X, Y, activation="tanh"), 0),
    "deep data": (lambda: us.Empirical(DEEP, X, Y, activation="tanh"), 1),
    "labels": (lambda: us.Empirical(DEEP, X, np.arange(12) % 2, activation="tanh", cost="cross-entropy"), 0),
    "relu data": (lambda: us.Empirical(DEEP, X, Y, activation="relu"), 1),
    "own module": (lambda: us.Empirical(Own(*map(jnp.zeros, ((2, 2), 2, 2))), X, Y[:, 0], activation="tanh"), 0),
    "regularised": (lambda: us.Regularised(X, Y, (3, 2), penalty=0.01), 1),
}
every_task = pytest.mark.parametrize("name", TASKS)


def outputs(task, vector):
    """The function at X (padded with zeros to the dimension of the task)."""
    network = task.unflatten(task.flatten(vector))
    if isinstance(network, tuple):
        return np.asarray(task.representations(task.flatten(vector))[-1])
    dim = network.incoming.shape[1] if isinstance(network, us.TwoLayer) else 2
    x = jnp.asarray(np.pad(X, ((0, 0), (0, dim - 2))))
    return np.asarray(network(x, task.activation))


@every_task
def test_a_split_keeps_function_loss_and_a_zero_gradient(name):
    make, layer = TASKS[name]
    task = make()
    vector = task.starts([1], "gaussian", 0.6)[0]
    shares = [0.3, 0.7] if name == "regularised" else [1.4, -0.4]
    wide, point = split_point(task, vector, {1: shares}, layer=layer)
    np.testing.assert_allclose(outputs(wide, point), outputs(task, vector), rtol=0, atol=1e-12)
    assert float(wide.loss(point)) == pytest.approx(float(task.loss(vector)), abs=1e-12)
    # The gradient of a part is a multiple of the neuron's, so it vanishes with it: μ (incoming) and 1 (outgoing).
    gradient, wider = np.asarray(task.gradient(vector)), np.asarray(wide.gradient(point))
    before, after = task.hidden_positions(layer), wide.hidden_positions(layer)
    fixed = name in ("committee", "sphere")
    incoming = before.shape[1] - (0 if fixed else np.shape(task.hidden_layer(vector, layer).outgoing)[1])
    for row, (origin, share) in enumerate([(0, 1.0), (1, shares[0]), (1, shares[1])]):
        factors = np.where(np.arange(before.shape[1]) < incoming, share, 1.0)
        if name == "regularised":
            factors = np.full(before.shape[1], np.sqrt(share))
        np.testing.assert_allclose(wider[after[row]], factors * gradient[before[origin]], rtol=0, atol=1e-12)
    rest = np.setdiff1d(np.arange(task.size), before)
    others = np.setdiff1d(np.arange(wide.size), after)
    np.testing.assert_allclose(wider[others], gradient[rest], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["biases, two outputs", "committee", "sphere", "two-layer data, biases"])
def test_y_and_v_give_the_inertia_of_the_split_point(name):
    """Theorem 4.1 is algebra: the Hessian of a split is congruent to a direct sum, whether the point is critical or
    not."""
    make, layer = TASKS[name]
    task = make()
    vector = task.starts([1], "gaussian", 0.6)[0]
    matrices = split_matrices(task, vector, 0, layer=layer)
    for mu in (0.5, -0.5):
        wide, point = task.split(vector, {0: [mu, 1 - mu]}, layer)
        narrow, found = (inertia_of(hessian(*at), 1e-9) for at in ((task, vector), (wide, point)))
        assert narrow.plus(matrices.inertia(mu, 1e-9)) == found


def hessian(task, vector):
    local, origin = task.prepared(vector).chart(vector)
    return np.asarray(local.hessian(origin))


def test_with_a_penalty_the_hessian_of_a_split_is_a_direct_sum():
    task = us.Regularised(X, Y, (3,), penalty=0.05, activation="linear", bias=1.0)
    vector = task.starts([0])[0]
    block = split_matrices(task, vector, 1).block(0.3)
    both = np.concatenate([np.linalg.eigvalsh(matrix) for matrix in (hessian(task, vector), block)])
    wider = np.linalg.eigvalsh(hessian(*task.split(vector, {1: [0.3, 0.7]})))
    np.testing.assert_allclose(wider, np.sort(both), atol=1e-12)


@pytest.mark.parametrize("name", thorough_but(list(TASKS), ["deep data"]))
def test_growth_adds_a_neuron_and_goes_on(name):
    make, layer = TASKS[name]
    task = make()
    before = task.hidden_layer(task.starts([0])[0], layer).width
    if name == "own module":
        with pytest.raises(TypeError, match="no known curvature of splits"):
            grow(task, before + 1, layer=layer)
        return
    start = task.starts([0], "gaussian", 0.5)[0]
    options = FlowOptions(snapshots=0, max_time=1e6, max_steps=3000)
    first, second = grow(task, before + 1, start=start, layer=layer, options=options)
    assert (first.width, second.width) == (before, before + 1)
    assert second.loss <= first.loss + 1e-9
    assert second.loss == pytest.approx(float(second.task.loss(second.parameters)), abs=1e-12)
    assert second.norms.shape == (before + 1,)
    if name != "regularised":  # a penalty gives the line of splits a curvature, which may be positive
        assert second.pushed_along < 1e-6
    if second.pushed_along < -1e-3:
        assert second.loss < first.loss - 1e-9


def planted_regularised():
    task = us.Regularised(X, Y, (3, 2), penalty=0.01)
    point = task.starts([0])[0]
    return task, task.split(point, {1: [0.3, 0.7]}, 1)[0].unflatten(task.split(point, {1: [0.3, 0.7]}, 1)[1]), 1


DOUBLED = np.eye(3)[[0, 1, 1]]
PLANTED = {
    "population": lambda: (us.Population(us.Teacher(DOUBLED, [1.0, 0.4, 0.6], "erf"), 2), None, 0),
    "biases, two outputs": lambda: (
        us.Population(us.Teacher(DOUBLED, OUTGOING, "erf", [0.3, -0.2, -0.2], [0.1, 0.2]), 2, bias="trained"),
        None,
        0,
    ),
    "two-layer data": lambda: (
        us.Empirical(two_layer(True), X, Y, activation="tanh"),
        us.TwoLayer(X[[0, 1, 1]], OUTGOING, [0.1, 0.2, 0.2], [0.3, 0.4]),
        0,
    ),
    "a teacher's data": lambda: (
        us.Empirical(two_layer(False), X, Y, activation="tanh"),
        us.Teacher(X[[0, 1, 1]], OUTGOING, "tanh"),
        0,
    ),
    "deep data": lambda: (
        us.Empirical(DEEP, X, Y, activation="tanh"),
        us.surgery.split(DEEP, {1: [0.3, 0.7]}, layer=1),
        1,
    ),
    "first layer": lambda: (us.Empirical(DEEP, X, Y, activation="relu"), us.surgery.split(DEEP, {1: [0.3, 0.7]}), 0),
    "regularised": planted_regularised,
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_warm_start_leaves_out_a_neuron_that_is_there_twice(name):
    task, teacher, layer = PLANTED[name]()
    start = warm_start(task, "copy", teacher=teacher, layer=layer)
    if teacher is None:
        assert float(task.loss(start)) < 1e-13
        return
    wide = teacher.network if isinstance(teacher, us.Teacher) else teacher
    if name == "regularised":
        wider = task.with_hidden([len(w) for w in wide[:-1]])
        np.testing.assert_allclose(outputs(task, start), outputs(wider, wide), atol=1e-10)
    else:
        assert task.function_distance(start, wide) < 1e-20
    average = warm_start(task, "copy-average", teacher=teacher, layer=layer)
    assert task.flatten(average).shape == (task.size,)


@pytest.mark.parametrize("kind", ["copy", "copy-average"])
def test_a_warm_start_of_data_has_the_best_outgoing_weights_and_offset(kind):
    """On the teacher's own outputs the start is stationary in all that the least-squares problem solves for."""
    wide = us.Deep.glorot([2, 3, 5, 2], seed=4, bias=0.5)
    task = us.Empirical(DEEP, X, np.asarray(wide(jnp.asarray(X), "tanh")), activation="tanh")
    slopes = task.unflatten(task.gradient(warm_start(task, kind, teacher=wide, layer=1)))
    assert float(jnp.abs(slopes.weights[2]).max()) < 1e-9
    assert float(jnp.abs(slopes.biases[2]).max()) < 1e-9


@pytest.mark.parametrize("case", ["trained", "teacher only", "committee"])
def test_a_warm_start_with_biases_is_stationary_in_outgoing_weights(case):
    given = {"trained": {"bias": "trained"}, "teacher only": {}, "committee": {"outgoing": "fixed"}}[case]
    teacher = WITH_BIASES if case != "committee" else us.Teacher(np.eye(3, 4), np.ones(3), "erf", [0.3, -0.2, 0.1])
    task = us.Population(teacher, 2, **given)
    for kind in ("copy", "copy-average"):
        start = warm_start(task, kind)
        assert float(task.loss(start)) < task.target_scale
        if case != "committee":
            slopes = task.unflatten(task.gradient(start))
            assert float(jnp.abs(slopes.outgoing).max()) < 1e-10
        if case == "trained":
            assert float(jnp.abs(slopes.offset).max()) < 1e-10


def test_on_the_sphere_a_warm_start_copies_teachers_and_averages_the_rest():
    task = us.Sphere(us.Teacher.orthonormal(4, 5, "hermite:4"), 2)
    copies, average = warm_start(task, "copy").incoming, warm_start(task, "copy-average").incoming
    assert np.linalg.norm(task.gradient(copies)) < 1e-12
    np.testing.assert_allclose(np.linalg.norm(average, axis=1), 1.0, rtol=1e-15)
    assert np.sort(np.asarray(average)[1])[-3:] == pytest.approx(1 / np.sqrt(3))


def test_weights_on_the_sphere_are_those_of_the_population_loss():
    teacher = us.Teacher.random(3, 4, "hermite:4")
    task = us.Sphere(teacher, 2, outgoing=[0.5, -2.0])
    point = task.starts([0])[0]
    assert 2 * float(task.loss(point)) == pytest.approx(float(task.population.loss(task.unflatten(point))), rel=1e-12)
    local, origin = task.chart(point)
    plain = us.Task.evaluate(local, origin)  # by differentiation
    by_hand = local.evaluate(origin)
    np.testing.assert_allclose(by_hand.gradient, plain.gradient, atol=1e-12)
    np.testing.assert_allclose(by_hand.hessian, plain.hessian, atol=1e-11)


IMPOSSIBLE = {
    "tanh with a penalty": (
        lambda: us.Regularised(X, Y, (3,), penalty=0.1, activation="tanh"),
        ValueError,
        "homogeneous",
    ),
    "no hidden layer": (
        lambda: us.Empirical(us.Deep.glorot([2, 2]), X, Y, activation="tanh"),
        ValueError,
        "no hidden layer",
    ),
    "own loss": (lambda: us.Loss(lambda v: v @ v, 2), TypeError, "Loss has no hidden neurons"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_where_a_split_does_not_exist_the_reason_is_said(name):
    make, kind, message = IMPOSSIBLE[name]
    task = make()
    point = task.starts([0], "gaussian", 0.5)[0]
    with pytest.raises(kind, match=message):
        split_point(task, point, {0: [0.5, 0.5]})
    with pytest.raises(kind, match=message):
        grow(task, 5, start=point)


@pytest.mark.parametrize(
    ("make", "arguments", "kind", "message"),
    [
        (lambda: us.Loss(lambda v: v @ v, 2), {}, TypeError, "no neurons that could imitate"),
        (lambda: us.Empirical(DEEP, X, Y, activation="tanh"), {}, ValueError, "give teacher= a Deep"),
        (
            lambda: us.Empirical(DEEP, X, Y, activation="tanh"),
            {"teacher": us.Deep.glorot([2, 4, 5, 2]), "layer": 1},
            ValueError,
            "only in the width of hidden layer 1",
        ),
        (lambda: us.Regularised(X, Y, (3,), penalty=0.1), {}, ValueError, "give teacher= its weight matrices"),
        (lambda: us.Population(WITH_BIASES, 2, bias=[0.1, 0.2]), {}, ValueError, "Fixed biases that differ"),
        (lambda: us.Population(WITH_BIASES, 2), {"layer": 1}, ValueError, "leave out teacher= and layer="),
    ],
)
def test_where_a_warm_start_does_not_exist_the_reason_is_said(make, arguments, kind, message):
    with pytest.raises(kind, match=message):
        warm_start(make(), **arguments)


def test_a_penalty_allows_no_negative_shares():
    task = us.Regularised(X, Y, (3,), penalty=0.1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        split_point(task, task.starts([0])[0], {0: [1.5, -0.5]})
