"""Reduction to the span of teachers and students: exact, whatever the dimension."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from understudy import Population, Teacher, TwoLayer

evaluate = eqx.filter_jit(lambda task, vector: task.evaluate(vector))
slope = eqx.filter_jit(lambda task, vector: task.value_and_gradient(vector))


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ["erf", "relu"])
@pytest.mark.parametrize("start", ["generic", "batch", "at the teacher", "near the teacher", "identical"])
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
    if start == "near the teacher":
        w = np.asarray(teacher.incoming)[:n] + 1e-3 * w
    if start == "identical":
        w = np.stack([w[0], w[0]])
    parameters = TwoLayer(w, rng.normal(size=w.shape[:-1]))
    small, reduced, span = task.in_span(parameters)
    basis = span.rows
    assert small.dim == n + k
    gram = basis @ jnp.swapaxes(basis, -1, -2)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(5), gram.shape), rtol=0, atol=1e-14)
    np.testing.assert_allclose(reduced.incoming @ basis, w, rtol=0, atol=1e-15)
    for i, rows in enumerate(reduced.incoming.reshape(-1, n, 5)):
        lifted = span.lift(rows, i if start == "batch" else None)
        np.testing.assert_allclose(lifted, w.reshape(-1, n, d)[i], rtol=0, atol=1e-15)
    np.testing.assert_allclose(small.teacher.incoming @ basis.reshape(-1, 5, d)[0], teacher.incoming, atol=1e-15)
    vectors, few = task.flatten(parameters).reshape(-1, task.size), small.flatten(reduced).reshape(-1, small.size)
    for x, y, rows in zip(vectors, few, basis.reshape(-1, 5, d), strict=True):
        (loss, gradient), (small_loss, small_gradient) = slope(task, x), slope(small, y)
        np.testing.assert_allclose(small_loss, loss, rtol=0, atol=1e-14)
        gradient, small_gradient = gradient.reshape(n, d + 1), small_gradient.reshape(n, 6)
        np.testing.assert_allclose(small_gradient[:, :5] @ rows, gradient[:, :d], rtol=0, atol=1e-14)
        np.testing.assert_allclose(small_gradient[:, 5], gradient[:, d], rtol=0, atol=1e-14)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["erf", "relu"])
def test_outside_hessian_completes_the_spectrum(name):
    d, n, k = 12, 2, 3
    rng = np.random.default_rng(10)
    task = Population(Teacher.random(k, d, name, seed=11), n)
    parameters = TwoLayer(rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=n))
    small, reduced, span = task.in_span(parameters)
    basis = span.rows
    dense = np.asarray(evaluate(task, task.flatten(parameters)).hessian)
    reduced_hessian = np.asarray(evaluate(small, small.flatten(reduced)).hessian)
    inside = np.linalg.eigvalsh(reduced_hessian)
    orthogonal = eqx.filter_jit(lambda task, vector: task.outside_hessian(vector))
    across = np.linalg.eigvalsh(orthogonal(small, small.flatten(reduced)))
    expected = np.sort(np.concatenate([inside, np.tile(across, d - n - k)]))
    np.testing.assert_allclose(np.linalg.eigvalsh(dense), expected, rtol=0, atol=1e-13)
    # Hessian-vector products inside the span are those of the reduced task.
    lift = np.kron(np.eye(n), np.block([[basis, np.zeros((n + k, 1))], [np.zeros((1, d)), np.ones((1, 1))]]))
    np.testing.assert_allclose(lift @ dense @ lift.T, reduced_hessian, rtol=0, atol=1e-13)


def test_under_a_covariance_the_parts_in_its_eigenspaces_are_enough():
    """What docs/how-to/own-teacher.md says: loss, gradient and inertia of the large task from those of the small one."""
    d, n, rng = 24, 2, np.random.default_rng(3)
    variances = np.repeat([1.0, 4.0], d // 2)
    teacher = Teacher(rng.normal(size=(2, d)) / 4, [1.0, -0.6], "erf", bias=[0.3, -0.2])
    mean, w, bias = rng.normal(size=d) / 5, rng.normal(size=(n, d)) / 5, jnp.asarray([0.1, -0.3])
    rows = np.vstack([teacher.incoming, w, mean, rng.normal(size=d)])
    parts = np.concatenate([np.where(variances == s, rows, 0.0) for s in (1.0, 4.0)])
    basis = np.linalg.svd(parts, full_matrices=False)[2]
    assert basis.shape == (12, d)
    task = Population(teacher, n, bias="trained", mean=mean, covariance=variances)
    few = Teacher(teacher.incoming @ basis.T, teacher.outgoing, "erf", bias=teacher.bias)
    small = Population(few, n, bias="trained", mean=basis @ mean, covariance=basis * variances @ basis.T)
    full = evaluate(task, task.flatten(TwoLayer(w, [0.7, 0.4], bias, 0.1)))
    part = evaluate(small, small.flatten(TwoLayer(w @ basis.T, [0.7, 0.4], bias, 0.1)))
    assert float(part.loss) == pytest.approx(float(full.loss), rel=1e-13)
    lift = np.zeros((small.size, task.size))
    for i in range(n):
        lift[14 * i : 14 * i + 12, 26 * i : 26 * i + d] = basis
        lift[14 * i + 12 : 14 * i + 14, 26 * i + d : 26 * i + 26] = np.eye(2)
    lift[-1, -1] = 1.0
    np.testing.assert_allclose(part.gradient @ lift, full.gradient, rtol=0, atol=1e-14)
    np.testing.assert_allclose(lift @ full.hessian @ lift.T, part.hessian, rtol=0, atol=1e-13)
    inside, whole = (np.linalg.eigvalsh(x.hessian) for x in (part, full))
    gaps = np.abs(whole[:, None] - inside[None]).min(axis=1)
    assert gaps.max() < 1e-12, "directions that are left out have curvatures of those that are not"


def test_a_million_dimensions():
    """The loss in 10⁶ dimensions is that of the reduced problem."""
    d = 1_000_000
    task = Population(Teacher.orthonormal(2, d), 2)
    rng = np.random.default_rng(12)
    parameters = TwoLayer(rng.normal(size=(2, d)) / 1000, [1.0, 0.5])
    small, reduced, _ = task.in_span(parameters)
    assert small.dim == 4
    assert float(task.loss(parameters)) == pytest.approx(float(small.loss(reduced)), rel=1e-12)


def test_a_dense_hessian_that_would_not_fit_is_refused():
    task = Population(Teacher.orthonormal(2, 100_000), 2)
    with pytest.raises(ValueError, match="Population tasks reduce to"):
        task.hessian(np.zeros(task.size))
