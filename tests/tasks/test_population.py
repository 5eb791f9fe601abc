"""The population loss, its gradient and its Hessian, against sampling, integration over the inputs and autodiff."""

import math
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import atan2, matrix, mp, mpf, pi
from scipy import special

from cases import thorough_but
from understudy import Population, Teacher, TwoLayer, gaussian
from understudy.activations import PiecewiseLinear, get
from understudy.tasks.pairs import LARGE, pair_up

_evaluate = eqx.filter_jit(lambda task, vector: task.evaluate(vector))


slope = eqx.filter_jit(lambda task, vector: task.value_and_gradient(vector))


def evaluate(task, vector):
    return _evaluate(task.prepared(vector), vector)


NAMES = ["erf", "relu", "abs", "linear", "quadratic", "hermite:3", "hermite:4"]
NAMES += ["softplus", "softplus:2", "sigmoid", "tanh", "tanh:0.5", "gelu"]
MIXED = [("erf", "relu"), ("relu", "softplus"), ("gelu", "abs"), ("tanh", "softplus")]
PAIRS = [(name, name) for name in NAMES] + MIXED


def problem(student, teacher, n=2, k=3, d=2):
    """The same weights for every pair of activations."""
    rng = np.random.default_rng(0)
    target = Teacher(rng.normal(size=(k, d)) * 0.8, rng.normal(size=k), teacher)
    return Population(target, n, activation=student), TwoLayer(rng.normal(size=(n, d)) * 0.8, rng.normal(size=n))


def apply_all(x):
    """Every activation, once more from its definition."""
    erf, square = special.erf(x / math.sqrt(2)), x * x
    half = np.tanh(x / 2)
    return {
        "erf": erf,
        "relu": np.maximum(x, 0),
        "abs": np.abs(x),
        "linear": x,
        "quadratic": square,
        "hermite:3": (square - 3) * x / math.sqrt(6),
        "hermite:4": ((square - 6) * square + 3) / math.sqrt(24),
        "softplus": np.log1p(np.exp(x)),
        "softplus:2": np.log1p(np.exp(2 * x)) / 2,
        "sigmoid": (1 + half) / 2,
        "tanh": np.tanh(x),
        "tanh:0.5": half,
        "gelu": x * (1 + erf) / 2,
    }


@lru_cache
def sampled_losses():
    """Mean and standard error of (f - f*)² over 10⁷ inputs, for every pair at once."""
    task, parameters = problem("erf", "erf")
    directions = np.concatenate([parameters.incoming, task.teacher.incoming]).T
    a, b, n = np.asarray(parameters.outgoing), np.asarray(task.teacher.outgoing), 2
    sums = {pair: np.zeros(2) for pair in PAIRS}
    rng, chunk, chunks = np.random.default_rng(7), 50_000, 200
    for _ in range(chunks):
        hidden = apply_all(rng.standard_normal((chunk, 2)) @ directions)
        for pair in PAIRS:
            square = (hidden[pair[0]][:, :n] @ a - hidden[pair[1]][:, n:] @ b) ** 2
            sums[pair] += square.sum(), square @ square
    moments = {pair: both / (chunk * chunks) for pair, both in sums.items()}
    return {pair: (m, math.sqrt((m2 - m * m) / (chunk * chunks))) for pair, (m, m2) in moments.items()}


def plane_loss(student, teacher_network, teacher, n):
    """E[(f - f*)²] over the plane, straight from the definition, differentiable.

    The trapezoid rule with step h is off by e^(-2πa/h) for functions analytic in a strip of half-width a, here
    a ≥ π/(2 × 2.3): 1e-13 at h = 1/7.
    """
    nodes = np.arange(-70, 71) / 7
    x = jnp.asarray(np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2))
    weight = jnp.exp(-jnp.sum(x**2, axis=1) / 2) / (2 * math.pi * 49)
    target = teacher_network(x, teacher)

    def loss(vector):
        rows = vector.reshape(n, 3)
        return weight @ (TwoLayer(rows[:, :2], rows[:, 2])(x, student) - target) ** 2

    return loss


def kinked_loss(slope, kink, task):
    """Cho and Saul's arc-cosine kernel, straight from the angle; autodiff works off the diagonal."""
    v, b = task.teacher.incoming, task.teacher.outgoing

    def kernel(p, q):
        pp, qq, pq = p @ p, q @ q, p @ q
        u = pq / jnp.sqrt(pp * qq)
        # E|x||y| = (2/π)(√(1-u²) + u asin u) r1 r2; odd and even parts do not mix.
        return slope**2 * pq + kink**2 * 2 / jnp.pi * jnp.sqrt(pp * qq) * (jnp.sqrt(1 - u**2) + u * jnp.arcsin(u))

    def loss(vector):
        rows = vector.reshape(task.width, -1)
        w, a = rows[:, :-1], rows[:, -1]
        total = task.constant
        for i in range(task.width):
            total += a[i] ** 2 * (slope**2 + kink**2) * w[i] @ w[i]
            total += sum(2 * a[i] * a[j] * kernel(w[i], w[j]) for j in range(i))
            total -= sum(2 * a[i] * b[j] * kernel(w[i], v[j]) for j in range(len(v)))
        return total

    return loss


QUICK = [("erf", "erf"), ("relu", "relu"), ("hermite:4", "hermite:4"), ("softplus", "softplus"), ("erf", "relu")]


@pytest.mark.few(2)
@pytest.mark.parametrize(("student", "teacher"), thorough_but(PAIRS, QUICK))
def test_loss_gradient_and_hessian(student, teacher):
    """Loss within five standard errors of 10⁷ samples; all against autodiff of an independent loss where there is one;
    by Taylor slope; symmetric.
    """
    task, parameters = problem(student, teacher)
    vector = task.flatten(parameters)
    found = evaluate(task, vector)
    mean, error = sampled_losses()[student, teacher]
    assert abs(float(found.loss) - mean) <= 5 * error
    scale = float(jnp.max(jnp.abs(found.hessian)))
    np.testing.assert_allclose(found.hessian, found.hessian.T, rtol=0, atol=1e-14 * scale)

    reference = None
    if not {student, teacher} & {"relu", "abs"}:
        reference = plane_loss(student, task.teacher.network, teacher, task.width)
    elif student == teacher:
        reference = kinked_loss(get(student).slope, get(student).kink, task)
    if reference is not None:
        loss, gradient = jax.jit(jax.value_and_grad(reference))(vector)
        hessian = jax.jit(jax.hessian(reference))(vector)
        size = 1e-11 * (1 + scale)  # the plane's rule is converged to 1e-13; two derivatives cost two digits
        np.testing.assert_allclose(found.loss, loss, rtol=0, atol=size)
        np.testing.assert_allclose(found.gradient, gradient, rtol=0, atol=size)
        np.testing.assert_allclose(found.hessian, hessian, rtol=0, atol=size)

    direction = jnp.asarray(np.random.default_rng(1).normal(size=6))
    direction /= jnp.linalg.norm(direction)
    steps = jnp.asarray([2e-2, 1e-2])
    nearby = jnp.stack([evaluate(task, vector + step * direction).loss for step in steps])
    first = nearby - found.loss - steps * (found.gradient @ direction)
    second = first - steps**2 / 2 * (direction @ found.hessian @ direction)
    assert float(jnp.log2(first[0] / first[1])) == pytest.approx(2, abs=0.2)
    assert float(jnp.log2(second[0] / second[1])) == pytest.approx(3, abs=0.25)


def test_public_methods_agree_with_evaluate():
    task, parameters = problem("erf", "erf")
    found = evaluate(task, task.flatten(parameters))
    assert float(task.loss(parameters)) == pytest.approx(float(found.loss), rel=1e-14)
    np.testing.assert_allclose(task.gradient(parameters), found.gradient, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(task.hessian(parameters), found.hessian, rtol=1e-13, atol=1e-15)
    back = task.unflatten(task.flatten(parameters))
    np.testing.assert_array_equal(back.incoming, parameters.incoming)
    np.testing.assert_array_equal(back.outgoing, parameters.outgoing)


@pytest.mark.thorough
def test_batches():
    rng = np.random.default_rng(5)
    task, _ = problem("erf", "erf")
    batch = TwoLayer(rng.normal(size=(4, 2, 2)), rng.normal(size=(4, 2)))
    losses, gradients, hessians = task.loss(batch), task.gradient(batch), task.hessian(batch)
    assert losses.shape == (4,)
    for i in range(4):
        one = evaluate(task, task.flatten(TwoLayer(batch.incoming[i], batch.outgoing[i])))
        np.testing.assert_allclose(losses[i], one.loss, rtol=1e-13)
        np.testing.assert_allclose(gradients[i], one.gradient, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(hessians[i], one.hessian, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(task.unflatten(task.flatten(batch)).outgoing, batch.outgoing)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["erf", "relu", "abs", "quadratic", "tanh", "linear"])
def test_invariances(name):
    """Rotation of everything, permutation of students, sign flips by parity, rescaling by homogeneity: to rounding."""
    task, parameters = problem(name, name)
    w, a = np.asarray(parameters.incoming), np.asarray(parameters.outgoing)
    base = evaluate(task, task.flatten(parameters))
    atol = 1e-13 * float(1 + jnp.max(jnp.abs(base.hessian)))

    rotation = np.array([[0.6, 0.8], [-0.8, 0.6]])
    turned = Population(Teacher(task.teacher.incoming @ rotation, task.teacher.outgoing, name), 2)
    found = evaluate(turned, turned.flatten(TwoLayer(w @ rotation, a)))
    whole = np.kron(np.eye(2), np.block([[rotation, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]]))
    np.testing.assert_allclose(found.loss, base.loss, rtol=0, atol=atol)
    np.testing.assert_allclose(found.gradient, base.gradient @ whole, rtol=0, atol=atol)
    np.testing.assert_allclose(found.hessian, whole.T @ base.hessian @ whole, rtol=0, atol=10 * atol)

    order = np.array([1, 0])
    found = evaluate(task, task.flatten(TwoLayer(w[order], a[order])))
    np.testing.assert_allclose(found.loss, base.loss, rtol=0, atol=atol)
    permuted = np.asarray(base.hessian).reshape(2, 3, 2, 3)[order][:, :, order].reshape(6, 6)
    np.testing.assert_allclose(found.hessian, permuted, rtol=0, atol=10 * atol)

    sigma = get(name)
    alike = []
    if sigma.parity is not None:
        flip = np.array([1.0, -1.0])
        alike.append((w * flip[:, None], a * (flip if sigma.parity == "odd" else 1.0)))
    if sigma.homogeneity is not None:
        scale = np.array([0.5, 3.0])
        alike.append((w * scale[:, None], a / scale**sigma.homogeneity))
    for w2, a2 in alike:
        found = evaluate(task, task.flatten(TwoLayer(w2, a2)))
        np.testing.assert_allclose(found.loss, base.loss, rtol=0, atol=10 * atol)


def test_vector_outputs_add_up():
    """The loss of m outputs is the sum over outputs; only incoming weights are shared."""
    rng = np.random.default_rng(4)
    v, b, w, a = rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    task = Population(Teacher(v, b, "erf"), 2)
    found = evaluate(task, task.flatten(TwoLayer(w, a)))
    assert task.outputs == (2,)
    assert found.gradient.shape == (8,)
    parts = []
    for m in range(2):
        scalar = Population(Teacher(v, b[:, m], "erf"), 2)
        parts.append(evaluate(scalar, scalar.flatten(TwoLayer(w, a[:, m]))))
    np.testing.assert_allclose(found.loss, sum(p.loss for p in parts), rtol=1e-13)
    gradients = [p.gradient.reshape(2, 3) for p in parts]
    expected = np.concatenate([sum(g[:, :2] for g in gradients), *(g[:, 2:] for g in gradients)], axis=1)
    np.testing.assert_allclose(found.gradient.reshape(2, 4), expected, rtol=0, atol=1e-14)
    autodiff = jax.jit(jax.hessian(task.value))(task.flatten(TwoLayer(w, a)))
    np.testing.assert_allclose(found.hessian, autodiff, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(task.unflatten(task.flatten(TwoLayer(w, a))).outgoing, a)


def test_fixed_outgoing_weights_leave_the_incoming_blocks():
    task, parameters = problem("erf", "erf", n=3)
    fixed = Population(task.teacher, 3, outgoing=parameters.outgoing)
    whole, part = evaluate(task, task.flatten(parameters)), evaluate(fixed, fixed.flatten(parameters))
    incoming = np.arange(9).reshape(3, 3)[:, :2].ravel()
    assert fixed.size == 6
    np.testing.assert_allclose(part.loss, whole.loss, rtol=1e-14)
    np.testing.assert_allclose(part.gradient, whole.gradient[incoming], rtol=0, atol=1e-15)
    np.testing.assert_allclose(part.hessian, whole.hessian[np.ix_(incoming, incoming)], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(fixed.unflatten(fixed.flatten(parameters)).outgoing, parameters.outgoing)
    committee = Population(task.teacher, 3, outgoing=1.0)
    np.testing.assert_array_equal(
        Population(task.teacher, 3, outgoing="fixed").fixed_outgoing, np.ones((3, *task.outputs))
    )
    ones = TwoLayer(parameters.incoming, np.ones(3))
    assert float(committee.loss(ones)) == pytest.approx(float(task.loss(ones)), rel=1e-13)
    batch = committee.unflatten(jnp.zeros((5, 6)))
    assert batch.outgoing.shape == (5, 3)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["erf", "relu"])
def test_a_covariance_is_the_same_as_whitening(name):
    """x = Σ^½ z: students w and teachers v see z through Σ^½ w and Σ^½ v; derivatives by the chain rule."""
    rng = np.random.default_rng(6)
    factor = rng.normal(size=(3, 3))
    sigma = factor @ factor.T
    eigenvalues, vectors = np.linalg.eigh(sigma)
    root = (vectors * np.sqrt(eigenvalues)) @ vectors.T
    v, b, w, a = rng.normal(size=(2, 3)), rng.normal(size=2), rng.normal(size=(2, 3)), rng.normal(size=2)
    task, white = Population(Teacher(v, b, name), 2, covariance=sigma), Population(Teacher(v @ root, b, name), 2)
    found = evaluate(task, task.flatten(TwoLayer(w, a)))
    expected = evaluate(white, white.flatten(TwoLayer(w @ root, a)))
    chain = np.kron(np.eye(2), np.block([[root, np.zeros((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]]))
    atol = 1e-12 * float(jnp.max(jnp.abs(found.hessian)))
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-12)
    np.testing.assert_allclose(found.gradient, chain @ expected.gradient, rtol=0, atol=atol)
    np.testing.assert_allclose(found.hessian, chain @ expected.hessian @ chain, rtol=0, atol=atol)
    same, _, span = task.in_span(TwoLayer(w, a))
    assert same is task
    assert span.rows.shape == (3, 3)


# -- quadrature nodes --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("norm", thorough_but([0.4, 2.4, 8.0], [2.4]))
def test_nodes_follow_the_norms(norm):
    """A student by series and by quadrature, against the trapezoid rule over the plane: e^(-2π (π/16) 26) = 1e-14."""
    task = Population(Teacher([[1.0, 0.0]], [1.3], "tanh"), 1)
    w = norm * np.array([0.6, 0.8])
    nodes = np.arange(-250, 251) / 26
    x, y = np.meshgrid(nodes, nodes)
    weight = np.exp(-(x**2 + y**2) / 2) / (2 * math.pi * 26**2)
    expected = np.sum(weight * (-0.7 * np.tanh(w[0] * x + w[1] * y) - 1.3 * np.tanh(x)) ** 2)
    parameters = TwoLayer(w[None], [-0.7])
    assert float(task.loss(parameters)) == pytest.approx(expected, rel=1e-12)
    prepared = task.prepared(task.flatten(parameters))
    assert prepared.resolution >= norm
    assert prepared.prepared(task.flatten(parameters)) is prepared


@pytest.mark.thorough
def test_a_rectifier_learning_from_a_steep_teacher():
    """One student, one teacher: L = a² r²/2 - 2ab g(r, s, u) + b² g(s, s, 1)."""
    task = Population(Teacher([[5.0, 0.0]], [1.3], "tanh"), 1, activation="relu")
    loss = task.loss(TwoLayer([[0.6 * 8, 0.8 * 8]], [-0.7]))
    cross = gaussian.interaction("tanh", 5.0, 8.0, 0.6, "relu")
    z = np.arange(-500, 501) / 50
    own = np.sum(np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) / 50 * np.tanh(5 * z) ** 2)
    expected = 0.49 * 32 + 2 * 0.7 * 1.3 * cross + 1.69 * own
    assert float(loss) == pytest.approx(float(expected), rel=1e-12)


def test_closed_forms_need_no_nodes():
    task, parameters = problem("erf", "erf")
    assert task.closed_form
    assert task.prepared(task.flatten(parameters)) is task
    assert task.prepared(100 * task.flatten(parameters)).resolution > LARGE
    relu, rectifiers = problem("relu", "relu")
    assert relu.prepared(100 * relu.flatten(rectifiers)) is relu
    assert not Population(task.teacher, 2, activation="tanh").closed_form


@pytest.mark.parametrize("norm", [1e3, 1e6])
def test_erf_pairs_keep_their_digits_at_large_norms(norm):
    """∂²G/∂q12² = (2/π) q12/gap^(3/2), gap = 1 + q11 + q22 + (area)², at an angle of a thousandth."""
    erf, angle = get("erf"), 1e-3
    p, q = norm * jnp.array([[1.0, 0.0]]), norm * jnp.array([[math.cos(angle), math.sin(angle)]])
    found = pair_up(erf, erf, p, q, 2 * LARGE).partials.q12q12
    gap = 1 + 2 * norm**2 + (norm**2 * math.sin(angle)) ** 2
    assert float(found[0, 0]) == pytest.approx(2 / math.pi * norm**2 * math.cos(angle) / gap**1.5, rel=1e-12)


# -- degenerate points -------------------------------------------------------------------------------------------------


def test_identical_and_zero_students_are_ordinary_points_for_erf():
    task, parameters = problem("erf", "erf")
    w = parameters.incoming
    points = [jnp.stack([w[0], w[0]]), w.at[0].set(0.0), jnp.zeros((2, 2))]
    reference = plane_loss("erf", task.teacher.network, "erf", 2)
    gradient, hessian = jax.jit(jax.grad(reference)), jax.jit(jax.hessian(reference))
    for point in points:
        vector = task.flatten(TwoLayer(point, parameters.outgoing))
        found = evaluate(task, vector)
        np.testing.assert_allclose(found.gradient, gradient(vector), rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.hessian, hessian(vector), rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["relu", "abs"])
@pytest.mark.parametrize("orthonormal", [True, False])
def test_students_exactly_at_kinked_teachers(name, orthonormal):
    """Loss and gradient vanish to rounding, and the Hessian exists: it is the limit from any side, and not negative."""
    teacher = Teacher.orthonormal(3, 4, name) if orthonormal else Teacher.random(3, 4, name, seed=13)
    task = Population(teacher, 3)
    vector = task.flatten(teacher.network)
    found = evaluate(task, vector)
    assert abs(float(found.loss)) < 1e-14
    assert float(jnp.max(jnp.abs(found.gradient))) < 1e-14
    direction = np.random.default_rng(14).normal(size=vector.shape)
    nearby = evaluate(task, vector + 1e-8 * direction)
    np.testing.assert_allclose(found.hessian, nearby.hessian, rtol=0, atol=1e-6)
    assert np.linalg.eigvalsh(found.hessian)[0] > -1e-13
    assert task.kinks(teacher.network) == []


def test_the_hessian_near_parallel_rectifiers_keeps_its_digits():
    """At an angle of 1e-7 in the plane, against ∂_pq = G_12 I + (p q⊥ᵀ + q p⊥ᵀ)/(2π s) done in 40 digits."""
    theta = 1e-7
    p, q = (
        np.array([1.0, 0.5]),
        1.3 * np.array([math.cos(theta), math.sin(theta)]) @ np.array([[1.0, 0.5], [-0.5, 1.0]]),
    )
    task = Population(Teacher([[0.0, 1.0]], [1.0], "relu"), 2, outgoing=1.0)
    found = np.asarray(evaluate(task, task.flatten(TwoLayer(np.stack([p, q]), np.ones(2)))).hessian)[:2, 2:]
    with mp.workdps(40):
        a, b = (matrix([mpf(float(x)) for x in vector]) for vector in (p, q))
        aa, ab, bb = ((x.T * y)[0] for x, y in ((a, a), (a, b), (b, b)))
        s = abs(a[0] * b[1] - a[1] * b[0])
        slope = atan2(s, -ab) / (2 * pi)
        exact = (a * (b - ab / aa * a).T + b * (a - ab / bb * b).T) / (2 * pi * s)
        expected = 2 * np.array([[float(exact[i, j] + (slope if i == j else 0)) for j in range(2)] for i in range(2)])
    # The area s of two rounded vectors is known to eps / angle = 2e-9 relative.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_parallel_rectifiers_have_a_gradient_and_a_hessian():
    """The Hessian there is the limit from any side, and turns with the coordinates."""
    rng = np.random.default_rng(15)
    w, teacher = rng.normal(size=4), Teacher.random(2, 4, "relu", seed=16)
    task = Population(teacher, 2)
    parameters = TwoLayer(np.stack([w, 2 * w]), [0.3, 0.8])
    found = evaluate(task, task.flatten(parameters))
    assert task.kinks(parameters) == []
    for step in 1e-8 * rng.normal(size=(3, 10)):
        nearby = evaluate(task, task.flatten(parameters) + step)
        np.testing.assert_allclose(found.hessian, nearby.hessian, rtol=0, atol=1e-6)
    # Two parallel rectifiers are one: L(w, 2w; a, b) = L(w; a + 2b).
    single = Population(teacher, 1)
    one = evaluate(single, single.flatten(TwoLayer(w[None], [1.9])))
    np.testing.assert_allclose(found.loss, one.loss, rtol=1e-13)
    np.testing.assert_allclose(found.gradient[4], one.gradient[4], rtol=1e-12)
    np.testing.assert_allclose(found.gradient[:4], 0.3 / 1.9 * one.gradient[:4], rtol=0, atol=1e-14)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = Population(Teacher(teacher.incoming @ rotation, teacher.outgoing, "relu"), 2)
    again = evaluate(turned, turned.flatten(TwoLayer(parameters.incoming @ rotation, parameters.outgoing)))
    whole = np.kron(np.eye(2), np.block([[rotation, np.zeros((4, 1))], [np.zeros((1, 4)), np.ones((1, 1))]]))
    np.testing.assert_allclose(again.hessian, whole.T @ found.hessian @ whole, rtol=0, atol=1e-12)


def test_a_dead_rectifier_has_a_loss_and_no_gradient():
    task, parameters = problem("relu", "relu")
    dead = TwoLayer(parameters.incoming.at[1].set(0.0), parameters.outgoing)
    found = evaluate(task, task.flatten(dead))
    assert np.isfinite(float(found.loss))
    assert np.all(np.isnan(found.gradient[3:5]))
    assert task.kinks(dead) == ["student 1 has a zero incoming vector, where the loss has a kink"]
    assert Population(task.teacher, 2, activation="erf").kinks(dead) == []


@pytest.mark.thorough
def test_a_leaky_rectifier_is_a_task_like_any_other():
    leaky = PiecewiseLinear("leaky", slope=0.55, kink=0.45)
    task, parameters = problem(leaky, leaky)
    vector = task.flatten(parameters)
    reference = kinked_loss(0.55, 0.45, task)
    np.testing.assert_allclose(
        evaluate(task, vector).hessian, jax.jit(jax.hessian(reference))(vector), rtol=0, atol=1e-11
    )


# -- bad input ---------------------------------------------------------------------------------------------------------

TEACHER = Teacher.orthonormal(2, 3)
TASK = Population(TEACHER, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Population(TEACHER, 0), "positive whole number of neurons; received width=0"),
        (lambda: Population(TEACHER, True), "positive whole number of neurons; received width=True"),
        (lambda: Population(TEACHER, 2, activation="swish"), "Unknown activation 'swish'"),
        (lambda: Population(TEACHER, 2, outgoing="frozen"), "'trained', 'fixed' or the fixed weights themselves.*'frozen'"),
        (lambda: Population(TEACHER, 2, outgoing=np.ones(3)), r"must have shape \(2,\) or be one number.*\(3,\)"),
        (lambda: Population(TEACHER, 2, outgoing=[1.0, np.nan]), "Fixed outgoing weights must be finite"),
        (lambda: Population(TEACHER, 2, covariance=np.eye(2)), r"3 × 3 matrix or 3 variances; received shape \(2, 2\)"),
        (lambda: Population(TEACHER, 2, covariance=np.diag([1.0, 1.0, -0.1])), "least eigenvalue is -0.1"),
        (lambda: Population(TEACHER, 2, covariance=np.zeros((3, 3))), "positive semidefinite"),
        (lambda: Population(TEACHER, 2, covariance=np.triu(np.ones((3, 3)))), "finite and symmetric"),
        (lambda: Population(TEACHER, 2, covariance=np.full((3, 3), np.nan)), "finite and symmetric"),
        (
            lambda: Population(Teacher.orthonormal(2, 3, "relu"), 2, covariance=np.diag([1.0, 0.0, 1.0])),
            "every teacher neuron needs inputs of positive variance",
        ),
        (lambda: TASK.loss(TwoLayer(np.ones((2, 4)), np.ones(2))), r"2 students in dimension 3.*\(2, 4\) and \(2,\)"),
        (lambda: TASK.loss(TwoLayer(np.ones((3, 3)), np.ones(3))), r"received \(3, 3\) and \(3,\)"),
        (lambda: TASK.loss(TwoLayer(np.ones((2, 3)), np.ones((2, 2)))), r"received \(2, 3\) and \(2, 2\)"),
        (lambda: TASK.loss(TwoLayer(np.ones((2, 3)), [1.0, np.nan])), "must be finite; received 1 NaN"),
        (lambda: TASK.gradient(np.full(8, np.inf)), "must be finite; received 8 NaN or infinite"),
        (lambda: TASK.loss(np.ones(7)), r"has length 8; received shape \(7,\)"),
        (lambda: TASK.kinks(np.ones((3, 8))) or Population(Teacher.orthonormal(2, 3, "relu"), 2).kinks(np.ones((3, 8))),
         "kinks looks at one point; received a batch of 3"),
    ],
)  # fmt: skip
def test_bad_input_says_what_was_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()
