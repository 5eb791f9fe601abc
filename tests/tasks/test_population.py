"""The population loss, its gradient and its Hessian: against sampling, integration over the inputs, autodiff, symmetry."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from understudy import Population, Teacher, TwoLayer, gaussian
from understudy.activations import PiecewiseLinear, get

evaluate = eqx.filter_jit(lambda task, vector: task.evaluate(vector))
values = eqx.filter_jit(lambda task, vectors: jax.vmap(task.value)(vectors))

FUNCTIONS = {
    "erf": lambda x: special.erf(x / math.sqrt(2)),
    "relu": lambda x: np.maximum(x, 0),
    "abs": np.abs,
    "linear": lambda x: x,
    "quadratic": np.square,
    "hermite:3": lambda x: (x**3 - 3 * x) / math.sqrt(6),
    "hermite:4": lambda x: (x**4 - 6 * x**2 + 3) / math.sqrt(24),
    "softplus": lambda x: np.logaddexp(0, x),
    "softplus:2": lambda x: np.logaddexp(0, 2 * x) / 2,
    "sigmoid": special.expit,
    "tanh": np.tanh,
    "tanh:0.5": lambda x: np.tanh(x / 2),
    "gelu": lambda x: x * special.ndtr(x),
}
MIXED = [("erf", "relu"), ("relu", "softplus"), ("gelu", "abs"), ("tanh", "softplus")]
PAIRS = [(name, name) for name in FUNCTIONS] + MIXED


def problem(student, teacher, seed=0, n=2, k=3, d=2, **options):
    rng = np.random.default_rng(seed)
    task = Population(Teacher(rng.normal(size=(k, d)) * 0.8, rng.normal(size=k), teacher), n, activation=student, **options)
    return task, TwoLayer(rng.normal(size=(n, d)) * 0.8, rng.normal(size=n))


def test_loss_against_ten_million_samples():
    """Within five standard errors, for every activation and the mixed pairs; pre-activations are shared."""
    d, n, k = 3, 2, 2
    rng = np.random.default_rng(7)
    w, v, a, b = rng.normal(size=(n, d)), rng.normal(size=(k, d)), rng.normal(size=n), rng.normal(size=k)
    directions, weights = np.concatenate([w, v]).T, {"student": a, "teacher": -b}
    total, squares = dict.fromkeys(PAIRS, 0.0), dict.fromkeys(PAIRS, 0.0)
    chunk, chunks = 100_000, 100
    for _ in range(chunks):
        x = rng.standard_normal((chunk, d)) @ directions
        hidden = {name: f(x) for name, f in FUNCTIONS.items()}
        for pair in PAIRS:
            gap = hidden[pair[0]][:, :n] @ weights["student"] + hidden[pair[1]][:, n:] @ weights["teacher"]
            square = gap * gap
            total[pair] += square.sum()
            squares[pair] += square @ square
    count = chunk * chunks
    for student, teacher in PAIRS:
        mean = total[student, teacher] / count
        error = math.sqrt((squares[student, teacher] / count - mean**2) / count)
        exact = float(Population(Teacher(v, b, teacher), n, activation=student).loss(TwoLayer(w, a)))
        assert abs(exact - mean) <= 5 * error, (student, teacher, exact, mean, error)


def plane_loss(student, teacher_network, teacher, n):
    """E[(f - f*)²] over the plane by 120 × 120 Gauss-Hermite nodes, straight from the definition, differentiable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    x = jnp.asarray(np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2))
    weight = jnp.asarray(np.outer(weights, weights).ravel() / weights.sum() ** 2)
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


@pytest.mark.parametrize(("student", "teacher"), PAIRS)
def test_loss_gradient_and_hessian(student, teacher):
    """Against autodiff of an independent loss where there is one, by Taylor slope, and symmetric.

    1e-10: Gauss-Hermite is converged to 1e-12 here (a doubling of its nodes changes nothing), second derivatives of
    steep functions amplify that; for the kernel, autodiff of asin loses digits near the diagonal.
    """
    task, parameters = problem(student, teacher)
    vector = task.flatten(parameters)
    found = evaluate(task, vector)
    assert found.gradient.shape == (6,)
    scale = float(jnp.max(jnp.abs(found.hessian)))
    np.testing.assert_allclose(found.hessian, found.hessian.T, rtol=0, atol=1e-14 * scale)

    kinked = {name for name in ("relu", "abs") if name in (student, teacher)}
    reference = None
    if not kinked:
        reference = plane_loss(student, task.teacher.network, teacher, task.width)
    elif student == teacher:
        reference = kinked_loss(get(student).slope, get(student).kink, task)
    if reference is not None:
        loss, gradient, hessian = jax.jit(lambda x: (reference(x), jax.grad(reference)(x), jax.hessian(reference)(x)))(
            vector
        )
        size = 1e-10 * (1 + scale)
        np.testing.assert_allclose(found.loss, loss, rtol=1e-11, atol=size)
        np.testing.assert_allclose(found.gradient, gradient, rtol=0, atol=size)
        np.testing.assert_allclose(found.hessian, hessian, rtol=0, atol=size)

    direction = jnp.asarray(np.random.default_rng(1).normal(size=6))
    direction /= jnp.linalg.norm(direction)
    steps = jnp.asarray([2e-2, 1e-2])
    nearby = values(task, vector[None, :] + steps[:, None] * direction[None, :])
    first = nearby - found.loss - steps * (found.gradient @ direction)
    second = first - steps**2 / 2 * (direction @ found.hessian @ direction)
    assert float(jnp.log2(first[0] / first[1])) == pytest.approx(2, abs=0.15)
    if abs(float(second[0])) > 1e-13 * max(1.0, float(found.loss)):  # linear students: nothing is left but rounding
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


@pytest.mark.parametrize("name", ["erf", "relu", "abs", "quadratic", "tanh", "linear"])
def test_invariances(name):
    """Rotation of everything, permutation of students, sign flips by parity, rescaling by homogeneity: to rounding."""
    task, parameters = problem(name, name, seed=2, n=3, k=2, d=4)
    w, a = np.asarray(parameters.incoming), np.asarray(parameters.outgoing)
    base = evaluate(task, task.flatten(parameters))
    atol = 1e-13 * float(1 + jnp.max(jnp.abs(base.hessian)))

    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    turned = Population(Teacher(task.teacher.incoming @ rotation, task.teacher.outgoing, name), 3)
    found = evaluate(turned, turned.flatten(TwoLayer(w @ rotation, a)))
    whole = np.kron(np.eye(3), np.block([[rotation, np.zeros((4, 1))], [np.zeros((1, 4)), np.ones((1, 1))]]))
    np.testing.assert_allclose(found.loss, base.loss, rtol=0, atol=atol)
    np.testing.assert_allclose(found.gradient, base.gradient @ whole, rtol=0, atol=atol)
    np.testing.assert_allclose(found.hessian, whole.T @ base.hessian @ whole, rtol=0, atol=10 * atol)

    order = np.array([2, 0, 1])
    found = evaluate(task, task.flatten(TwoLayer(w[order], a[order])))
    np.testing.assert_allclose(found.loss, base.loss, rtol=0, atol=atol)
    permuted = np.asarray(base.hessian).reshape(3, 5, 3, 5)[order][:, :, order].reshape(15, 15)
    np.testing.assert_allclose(found.hessian, permuted, rtol=0, atol=10 * atol)

    sigma = get(name)
    alike = []
    if sigma.parity is not None:
        flip = np.array([1.0, -1.0, 1.0])
        alike.append((w * flip[:, None], a * (flip if sigma.parity == "odd" else 1.0)))
    if sigma.homogeneity is not None:
        scale = np.array([0.5, 1.0, 3.0])
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
    ones = TwoLayer(parameters.incoming, np.ones(3))
    assert float(committee.loss(ones)) == pytest.approx(float(task.loss(ones)), rel=1e-13)
    batch = committee.unflatten(jnp.zeros((5, 6)))
    assert batch.outgoing.shape == (5, 3)


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
    same, _, basis = task.reduce(TwoLayer(w, a))
    assert same is task
    assert basis.shape == (3, 3)


# -- reduction ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["erf", "relu"])
@pytest.mark.parametrize("start", ["generic", "batch", "at the teacher", "identical"])
def test_reduction_is_exact(name, start):
    """Dimension 60 against n + k = 5, for students in general position and inside the teachers' span."""
    d, n, k = 60, 2, 3
    rng = np.random.default_rng(8)
    orthonormal = start in ("batch", "at the teacher")
    teacher = Teacher.orthonormal(k, d, name) if orthonormal else Teacher.random(k, d, name, seed=9)
    task = Population(teacher, n)
    w = rng.normal(size=(4, n, d)) / np.sqrt(d) if start == "batch" else rng.normal(size=(n, d)) / np.sqrt(d)
    if start == "at the teacher":
        w = np.asarray(teacher.incoming)[:n]
    if start == "identical":
        w = np.stack([w[0], w[0]])
    parameters = TwoLayer(w, rng.normal(size=w.shape[:-1]))
    small, reduced, basis = task.reduce(parameters)
    assert small.dim == n + k
    np.testing.assert_allclose(basis @ jnp.swapaxes(basis, -1, -2), np.broadcast_to(np.eye(5), basis[..., 0:5].shape), atol=1e-14)
    np.testing.assert_allclose(reduced.incoming @ basis, w, rtol=0, atol=1e-15)
    np.testing.assert_allclose(small.teacher.incoming @ basis.reshape(-1, 5, d)[0], teacher.incoming, atol=1e-15)
    np.testing.assert_allclose(small.loss(reduced), task.loss(parameters), rtol=0, atol=1e-14)
    full = task.gradient(parameters).reshape(*w.shape[:-1], d + 1)
    few = small.gradient(reduced).reshape(*w.shape[:-1], 6)
    np.testing.assert_allclose(few[..., :5] @ basis, full[..., :d], rtol=0, atol=1e-14)
    np.testing.assert_allclose(few[..., 5], full[..., d], rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["erf", "relu"])
def test_orthogonal_hessian_completes_the_spectrum(name):
    d, n, k = 12, 2, 3
    rng = np.random.default_rng(10)
    task = Population(Teacher.random(k, d, name, seed=11), n)
    parameters = TwoLayer(rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=n))
    small, reduced, basis = task.reduce(parameters)
    dense = np.asarray(task.hessian(parameters))
    inside = np.linalg.eigvalsh(small.hessian(reduced))
    across = np.linalg.eigvalsh(small.orthogonal_hessian(small.flatten(reduced)))
    expected = np.sort(np.concatenate([inside, np.tile(across, d - n - k)]))
    np.testing.assert_allclose(np.linalg.eigvalsh(dense), expected, rtol=0, atol=1e-13)
    # Hessian-vector products inside the span are those of the reduced task.
    lift = np.kron(np.eye(n), np.block([[basis, np.zeros((n + k, 1))], [np.zeros((1, d)), np.ones((1, 1))]]))
    np.testing.assert_allclose(lift @ dense @ lift.T, small.hessian(reduced), rtol=0, atol=1e-13)


def test_a_million_dimensions():
    """The loss in 10⁶ dimensions is that of the reduced problem."""
    d = 1_000_000
    task = Population(Teacher.orthonormal(2, d), 2)
    rng = np.random.default_rng(12)
    parameters = TwoLayer(rng.normal(size=(2, d)) / 1000, [1.0, 0.5])
    small, reduced, _ = task.reduce(parameters)
    assert small.dim == 4
    assert float(task.loss(parameters)) == pytest.approx(float(small.loss(reduced)), rel=1e-12)


def test_a_dense_hessian_that_would_not_fit_is_refused():
    task = Population(Teacher.orthonormal(2, 100_000), 2)
    with pytest.raises(ValueError, match="GB. Population tasks reduce to"):
        task.hessian(np.zeros(task.size))


# -- quadrature nodes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("student", "teacher"), [("tanh", "tanh"), ("relu", "tanh:0.5")])
@pytest.mark.parametrize("norm", [0.4, 8.0])
def test_nodes_follow_the_norms(student, teacher, norm):
    """One student, one teacher: L = a² g(r, r, 1) - 2ab g(r, 1, u) + b² g(1, 1, 1), whatever the norm."""
    task = Population(Teacher([[1.0, 0.0]], [1.3], teacher), 1, activation=student)
    u = 0.6
    parameters = TwoLayer([[norm * u, norm * math.sqrt(1 - u**2)]], [-0.7])
    own = gaussian.interaction(student, norm, norm, 1.0)
    cross = gaussian.interaction(student, norm, 1.0, u, teacher)
    expected = 0.49 * own + 2 * 0.7 * 1.3 * cross + 1.69 * gaussian.interaction(teacher, 1.0, 1.0, 1.0)
    assert float(task.loss(parameters)) == pytest.approx(float(expected), rel=1e-12)
    vector = task.flatten(parameters)
    assert task.prepared(vector).resolves(vector)
    assert task.resolves(vector) == (norm < 1)


def test_closed_forms_need_no_nodes():
    task, parameters = problem("erf", "erf")
    assert task.closed_form
    assert task.prepared(100 * task.flatten(parameters)) is task
    assert not Population(task.teacher, 2, activation="tanh").closed_form


# -- degenerate points -------------------------------------------------------------------------------------------------


def test_identical_smooth_students_are_an_ordinary_point():
    task, parameters = problem("erf", "erf")
    w = jnp.stack([parameters.incoming[0]] * 2)
    vector = task.flatten(TwoLayer(w, parameters.outgoing))
    found = evaluate(task, vector)
    reference = plane_loss("erf", task.teacher.network, "erf", 2)
    np.testing.assert_allclose(found.hessian, jax.jit(jax.hessian(reference))(vector), rtol=0, atol=1e-10)


def test_a_zero_student_is_an_ordinary_point_for_erf():
    task, parameters = problem("erf", "erf")
    vector = task.flatten(TwoLayer(parameters.incoming.at[0].set(0.0), parameters.outgoing))
    found = evaluate(task, vector)
    reference = plane_loss("erf", task.teacher.network, "erf", 2)
    np.testing.assert_allclose(found.gradient, jax.jit(jax.grad(reference))(vector), rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.hessian, jax.jit(jax.hessian(reference))(vector), rtol=0, atol=1e-10)


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
    """At an angle of 1e-7 in the plane, against the formula ∂_pq = G_12 I + (p q⊥ᵀ + q p⊥ᵀ)/(2π s) done in 40 digits."""
    from mpmath import atan2, matrix, mp, mpf, pi, sin

    theta = 1e-7
    p, q = np.array([1.0, 0.5]), 1.3 * np.array([math.cos(theta), math.sin(theta)]) @ np.array([[1.0, 0.5], [-0.5, 1.0]])
    task = Population(Teacher([[0.0, 1.0]], [1.0], "relu"), 2, outgoing=1.0)
    found = np.asarray(evaluate(task, task.flatten(TwoLayer(np.stack([p, q]), np.ones(2)))).hessian)[:2, 2:]
    with mp.workdps(40):
        a, b = (matrix([mpf(float(x)) for x in vector]) for vector in (p, q))
        aa, ab, bb = ((x.T * y)[0] for x, y in ((a, a), (a, b), (b, b)))
        s = abs(a[0] * b[1] - a[1] * b[0])
        slope = atan2(s, -ab) / (2 * pi)
        exact = (a * (b - ab / aa * a).T + b * (a - ab / bb * b).T) / (2 * pi * s)
        expected = 2 * np.array([[float(exact[i, j] + (slope if i == j else 0)) for j in range(2)] for i in range(2)])
        assert sin(theta) != 0
    # The area s of two rounded vectors is known to eps / angle = 2e-9 relative.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_identical_rectifiers_have_a_gradient_but_no_hessian():
    """The part of the cross block that depends on the side of approach is left out, in every coordinate system."""
    rng = np.random.default_rng(15)
    w, teacher = rng.normal(size=4), Teacher.random(2, 4, "relu", seed=16)
    task = Population(teacher, 2)
    parameters = TwoLayer(np.stack([w, 2 * w]), [0.3, 0.8])
    found = evaluate(task, task.flatten(parameters))
    assert task.kinks(parameters) == ["students 0 and 1 are parallel: the Hessian does not exist"]
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
    assert task.kinks(dead) == ["student 1 has a zero incoming vector: the gradient does not exist"]
    assert Population(task.teacher, 2, activation="erf").kinks(dead) == []


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
        (lambda: Population(TEACHER, 2, outgoing="frozen"), "'trained' or the fixed weights themselves.*'frozen'"),
        (lambda: Population(TEACHER, 2, outgoing=np.ones(3)), r"must have shape \(2,\) or be one number.*\(3,\)"),
        (lambda: Population(TEACHER, 2, outgoing=[1.0, np.nan]), "Fixed outgoing weights must be finite"),
        (lambda: Population(TEACHER, 2, covariance=np.eye(2)), r"a 3 × 3 matrix; received shape \(2, 2\)"),
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
