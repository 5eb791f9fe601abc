"""Population losses with biases, means and covariances: samples, differences, invariances, reduction, structure."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from cases import thorough_but

CASES = [
    ("erf", "erf", "trained", 0, True),
    ("relu", "relu", "trained", 0, True),
    ("tanh", "tanh", "trained", 0, False),
    ("hermite:3", "hermite:3", "trained", 2, True),
    ("abs", "relu", "trained", 0, False),
    ("erf", "relu", "trained", 0, False),
    ("erf", "erf", "none", 2, True),
    ("relu", "relu", 0.3, 0, True),
    ("softplus", "softplus", "none", 0, True),
]
QUICK = CASES[:4]
NAMES = ("student", "teacher", "bias", "outputs", "shaped")


def make(student, teacher, bias, outputs, shaped, n=3, k=2, d=3, seed=0, **more):
    """A task with a biased teacher, a student, and its flat vector."""
    rng = np.random.default_rng(seed)
    shape = (outputs,) if outputs else ()
    offset = rng.normal(size=shape) if outputs else 0.3
    f = us.Teacher(rng.normal(size=(k, d)), rng.normal(size=(k, *shape)), teacher, rng.normal(size=k), offset)
    mean, covariance = None, None
    if shaped:
        root = np.eye(d) + 0.3 * rng.normal(size=(d, d))
        mean, covariance = rng.normal(size=d) / 2, root @ root.T
    task = us.Population(f, n, activation=student, bias=bias, mean=mean, covariance=covariance, **more)
    return task, jnp.asarray(rng.normal(size=task.size) * 0.8)


@pytest.mark.parametrize(NAMES, thorough_but(CASES, QUICK))
def test_gradient_and_hessian_by_differences(student, teacher, bias, outputs, shaped):
    """Fourth-order differences with h = 1e-3: rounding eps/h and truncation h⁴ are both below 1e-9 here."""
    task, vector = make(student, teacher, bias, outputs, shaped)
    direction = np.random.default_rng(1).normal(size=task.size)
    direction /= np.linalg.norm(direction)
    h = 1e-3
    points = jnp.asarray(np.asarray(vector) + h * np.array([-2, -1, 1, 2])[:, None] * direction)
    stencil = np.array([1, -8, 8, -1]) / (12 * h)
    gradient, hessian = np.asarray(task.gradient(vector)), np.asarray(task.hessian(vector))
    scale = 1 + np.abs(hessian).max()
    assert gradient @ direction == pytest.approx(stencil @ np.asarray(task.loss(points)), abs=1e-9 * scale)
    np.testing.assert_allclose(hessian @ direction, stencil @ np.asarray(task.gradient(points)), atol=1e-8 * scale)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-13 * scale)


@pytest.mark.parametrize(NAMES, thorough_but(CASES, CASES[:2]))
def test_loss_against_samples(student, teacher, bias, outputs, shaped):
    """Within five standard errors; 10⁷ samples in the thorough suite."""
    task, vector = make(student, teacher, bias, outputs, shaped)
    rng, f, g = np.random.default_rng(5), task.unflatten(vector), task.teacher
    mean = np.zeros(task.dim) if task.mean is None else np.asarray(task.mean)
    root = np.eye(task.dim) if task.root is None else np.asarray(task.root)
    total = square = count = 0.0
    for _ in range(5):
        x = jnp.asarray(mean + rng.normal(size=(200_000, task.dim)) @ root)
        gaps = f(x, task.activation) - g.network(x, g.activation)
        costs = np.asarray(gaps**2 if gaps.ndim == 1 else jnp.sum(gaps**2, axis=1))
        total, square, count = total + costs.sum(), square + (costs**2).sum(), count + len(costs)
    average = total / count
    error = np.sqrt((square / count - average**2) / count)
    assert abs(float(task.loss(vector)) - average) <= 5 * error


@pytest.mark.thorough
def test_loss_against_ten_million_samples():
    task, vector = make(*CASES[0])
    rng, f, g = np.random.default_rng(6), task.unflatten(vector), task.teacher
    costs = []
    for _ in range(20):
        x = jnp.asarray(np.asarray(task.mean) + rng.normal(size=(500_000, task.dim)) @ np.asarray(task.root))
        costs.append(np.asarray((f(x, task.activation) - g.network(x, g.activation)) ** 2))
    every = np.concatenate(costs)
    assert abs(float(task.loss(vector)) - every.mean()) <= 5 * every.std() / np.sqrt(every.size)


def test_a_mean_is_a_bias():
    """N(m, I) with biases c is N(0, I) with biases c + w·m, for student and teacher."""
    rng = np.random.default_rng(2)
    mean = rng.normal(size=3)
    f = us.Teacher(rng.normal(size=(2, 3)), [1.0, -0.5], "relu", [0.4, -0.2])
    student = us.TwoLayer(rng.normal(size=(2, 3)), [0.7, 1.1], [0.1, 0.3], 0.2)
    moved = us.Teacher(f.incoming, f.outgoing, "relu", f.bias + f.incoming @ mean)
    other = us.TwoLayer(student.incoming, student.outgoing, student.bias + student.incoming @ mean, 0.2)
    here = us.Population(f, 2, bias="trained", mean=mean).loss(student)
    assert float(here) == pytest.approx(float(us.Population(moved, 2, bias="trained").loss(other)), rel=1e-13)


@pytest.mark.parametrize("name", ["erf", "relu", "quadratic", "tanh"])
def test_invariances(name):
    """Rotations of all vectors, the sign of a neuron (odd and even activations), and its scale (homogeneous ones)."""
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    f = us.Teacher(rng.normal(size=(2, 3)), [1.0, -0.5], name, [0.4, -0.2], 0.1)
    p = us.TwoLayer(rng.normal(size=(2, 3)), [0.7, 1.1], [0.5, -0.3], 0.2)
    loss = float(us.Population(f, 2, bias="trained").loss(p))
    turned = us.Teacher(f.incoming @ turn, f.outgoing, name, f.bias, f.offset)
    rotated = us.TwoLayer(p.incoming @ turn, p.outgoing, p.bias, p.offset)
    assert float(us.Population(turned, 2, bias="trained").loss(rotated)) == pytest.approx(loss, rel=1e-12)
    sigma, task = us.activations.get(name), us.Population(f, 2, bias="trained")
    if sigma.parity is not None:
        sign, flip = np.array([-1.0, 1.0]), -1.0 if sigma.parity == "odd" else 1.0
        other = us.TwoLayer(sign[:, None] * p.incoming, np.array([flip, 1.0]) * p.outgoing, sign * p.bias, p.offset)
        assert float(task.loss(other)) == pytest.approx(loss, rel=1e-12)
    if sigma.homogeneity is not None:
        s = np.array([2.0, 0.3])
        scaled = us.TwoLayer(s[:, None] * p.incoming, p.outgoing / s**sigma.homogeneity, s * p.bias, p.offset)
        assert float(task.loss(scaled)) == pytest.approx(loss, rel=1e-12)


def test_without_biases_the_numbers_are_the_same():
    """A task that trains biases, at biases of zero, is the task without them."""
    rng = np.random.default_rng(4)
    for name in ("erf", "relu"):
        f = us.Teacher.orthonormal(3, activation=name)
        p = us.TwoLayer(rng.normal(size=(2, 3)), [0.7, 1.1])
        plain, trained = us.Population(f, 2), us.Population(f, 2, bias="trained")
        assert float(plain.loss(p)) == pytest.approx(float(trained.loss(p)), rel=1e-14)
        kept = np.array([0, 1, 2, 4, 5, 6, 7, 9])
        np.testing.assert_allclose(trained.gradient(p)[kept], plain.gradient(p), atol=1e-14)
        np.testing.assert_allclose(trained.hessian(p)[np.ix_(kept, kept)], plain.hessian(p), atol=1e-13)


def test_copies_of_relu_neurons_with_biases_have_a_hessian():
    """Students 0 and 1 are the same neuron: the blocks are bounded although the density of both kinks meeting is not."""
    f = us.Teacher([[1.0, 0.5]], [1.0], "relu", [0.3])
    task = us.Population(f, 2, bias="trained")
    exact = us.TwoLayer([[1.0, 0.5], [1.0, 0.5]], [0.4, 0.6], [0.3, 0.3])
    near = us.TwoLayer([[1.0, 0.5 + 1e-7], [1.0, 0.5]], [0.4, 0.6], [0.3, 0.3 + 1e-7])
    assert float(task.loss(exact)) == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(task.hessian(exact), task.hessian(near), atol=3e-6)
    assert us.certify(task, exact).kind == "minimum"


def test_a_student_without_biases_at_a_teacher_with_them_and_the_reverse():
    f = us.Teacher([[1.0, 0.0]], [1.0], "erf", [0.5])
    p = us.TwoLayer([[1.0, 0.0]], [1.0])
    assert float(us.Population(f, 1).loss(p)) > 0.01
    assert float(us.Population(f, 1, bias=0.5).loss(p)) == pytest.approx(0.0, abs=1e-15)
    plain = us.Teacher([[1.0, 0.0]], [1.0], "erf")
    assert float(us.Population(plain, 1, bias="trained").loss(p)) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("mean", [False, True])
def test_reduction_to_the_span_is_exact(mean):
    """In dimension 50 and in the span: same loss, gradient norm and way back."""
    rng = np.random.default_rng(7)
    d = 50
    f = us.Teacher(rng.normal(size=(2, d)) / 7, [1.0, 0.5], "erf", [0.4, -0.3], 0.1)
    task = us.Population(f, 2, bias="trained", mean=rng.normal(size=d) / 7 if mean else None)
    vector = task.starts([3], init_std=0.3)[0]
    found = task.reduce(vector)
    assert found.task.dim == (5 if mean else 4)
    assert found.outside == d - found.task.dim
    assert float(found.task.loss(found.vectors)) == pytest.approx(float(task.loss(vector)), rel=1e-13)
    np.testing.assert_allclose(found.lift(found.vectors, None), vector, atol=1e-13)
    inside, outside = np.asarray(found.task.gradient(found.vectors)), np.asarray(task.gradient(vector))
    assert np.linalg.norm(inside) == pytest.approx(np.linalg.norm(outside), rel=1e-12)


def test_structure_needs_the_bias_of_a_copy():
    f = us.Teacher([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], "erf", [0.5, -0.5])
    task = us.Population(f, 2, bias="trained")
    copy = task.structure(us.TwoLayer(f.incoming, f.outgoing, f.bias))
    assert copy.label == "2-copy"
    assert [neuron.bias for neuron in copy.neurons] == [0.5, -0.5]
    assert task.structure(us.TwoLayer(-f.incoming, -f.outgoing, -f.bias)).label == "2-copy"
    assert task.structure(us.TwoLayer(f.incoming, f.outgoing, [0.4, -0.5])).label != "2-copy"


def test_a_zero_vector_is_a_kink_only_without_a_bias():
    f = us.Teacher([[1.0, 0.0]], [1.0], "relu", [0.5])
    task = us.Population(f, 1, bias="trained")
    assert task.kinks(us.TwoLayer([[0.0, 0.0]], [1.0], [0.0])) == [
        "student 0 has a zero incoming vector and bias, where the loss has a kink"
    ]
    smooth = us.TwoLayer([[0.0, 0.0]], [1.0], [0.2])
    assert task.kinks(smooth) == []
    assert np.all(np.isfinite(np.asarray(task.hessian(smooth))))


def test_bad_arguments_say_what_was_wrong():
    f = us.Teacher([[1.0, 0.0]], [1.0], "erf")
    with pytest.raises(ValueError, match="bias is 'none', 'trained' or the fixed biases"):
        us.Population(f, 1, bias="yes")
    with pytest.raises(ValueError, match="Fixed biases are 2 finite numbers"):
        us.Population(f, 2, bias=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="mean of the inputs must be 2 finite numbers"):
        us.Population(f, 1, mean=[1.0])
    with pytest.raises(ValueError, match="has biases that the task does not train"):
        us.Population(f, 1).loss(us.TwoLayer([[1.0, 0.0]], [1.0], [0.5]))
    with pytest.raises(ValueError, match=r"needs biases of shape \(1,\)"):
        us.Teacher([[1.0, 0.0]], [1.0], "erf", bias=[1.0, 2.0])


def test_a_two_layer_network_with_biases_on_data():
    """The same loss as the deep network it is; a rescaled ReLU neuron keeps it."""
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    network = us.TwoLayer(rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=3), 0.4)
    task = us.Empirical(network, x, y, activation="relu")
    outputs = np.maximum(x @ np.asarray(network.incoming).T + np.asarray(network.bias), 0) @ np.asarray(
        network.outgoing
    )
    assert float(task.loss(network)) == pytest.approx(np.mean((outputs + 0.4 - y) ** 2), rel=1e-13)
    vector = task.flatten(network)
    tangents = np.asarray(task.symmetry_tangents(vector))
    assert tangents.shape == (3, task.size)
    assert np.abs(tangents @ np.asarray(task.gradient(vector))).max() <= 1e-13


def test_variances_are_a_diagonal_covariance():
    f = us.Teacher([[1.0, 0.5, 0.0]], [1.0], "erf", [0.3])
    p = us.TwoLayer([[0.2, -1.0, 0.4]], [0.7], [0.1])
    variances = [1.0, 2.0, 0.5]
    one, two = (us.Population(f, 1, bias="trained", covariance=c) for c in (variances, np.diag(variances)))
    assert float(one.loss(p)) == float(two.loss(p))
    with pytest.raises(ValueError, match="least eigenvalue is -1"):
        us.Population(f, 1, covariance=[1.0, 1.0, -1.0])
    with pytest.raises(ValueError, match="3 × 3 matrix or 3 variances"):
        us.Population(f, 1, covariance=[1.0, 1.0])
    wide = us.Teacher(np.ones((1, 10**6)), [1.0], "erf")
    with pytest.raises(ValueError, match=r"at most 4,096 inputs.*received 1,000,000"):
        us.Population(wide, 1, covariance=np.ones(10**6))
