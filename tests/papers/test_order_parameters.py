"""Order parameters, the loss from them, what weights can realise, and the way back."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy import Population, Teacher, TwoLayer
from understudy.papers.copy_average.realisation import constraints, loss_from_order_parameters, reconstruct
from understudy.tasks import OrderParameters, order_parameters


def dependent_teacher(d=6):
    """Three directions in a plane."""
    v = np.zeros((3, d))
    v[:, :2] = [[1.0, 0.0], [0.5, 2.0], [-1.0, 0.7]]
    return Teacher(v, [1.0, -0.5, 2.0], "erf")


TEACHERS = {
    "orthogonal": Teacher(2 * np.eye(3, 6), [1.0, -0.5, 2.0], "erf"),
    "independent": Teacher.random(3, 6, seed=1),
    "dependent": dependent_teacher(),
}


def student(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return TwoLayer(rng.normal(size=(n, d)), rng.normal(size=n))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("activation", "options"),
    [
        ("erf", {}),
        ("relu", {}),
        pytest.param("tanh", {}, marks=pytest.mark.thorough),
        ("erf", {"activation": "relu"}),
        ("erf", {"covariance": np.diag([1.0, 2.0, 0.5, 3.0, 1.0, 1.0]) + 0.2}),
    ],
)
def test_weights_and_order_parameters_give_the_same_loss(activation, options):
    teacher = Teacher.random(3, 6, activation, seed=1, outgoing=[1.0, -0.5, 2.0])
    task, parameters = Population(teacher, 2, **options), student(2, 6)
    order = order_parameters(task, parameters)
    assert float(loss_from_order_parameters(task, order)) == pytest.approx(float(task.loss(parameters)), rel=1e-12)


def test_vector_outputs_and_copies_of_a_student():
    rng = np.random.default_rng(3)
    task = Population(Teacher(rng.normal(size=(3, 4)), rng.normal(size=(3, 2)), "relu"), 2)
    w = rng.normal(size=4)
    parameters = TwoLayer(np.stack([w, w]), rng.normal(size=(2, 2)))
    order = order_parameters(task, parameters)
    assert float(loss_from_order_parameters(task, order)) == pytest.approx(float(task.loss(parameters)), rel=1e-12)


def test_order_parameters_by_hand():
    task = Population(Teacher([[2.0, 0.0], [0.0, 3.0]], [1.0, 1.0], "erf"), 3)
    order = order_parameters(task, TwoLayer([[3.0, 4.0], [0.0, -2.0], [0.0, 0.0]], [1.0, 2.0, 3.0]))
    np.testing.assert_allclose(order.norms, [5, 2, 0])
    np.testing.assert_allclose(order.student_teacher, [[0.6, 0.8], [0, -1], [0, 0]], atol=1e-16)
    np.testing.assert_allclose(order.student_student, [[1, -0.8, 0], [-0.8, 1, 0], [0, 0, 0]], atol=1e-15)


def test_a_batch_of_order_parameters():
    rng = np.random.default_rng(4)
    task = Population(Teacher.orthonormal(3, 5), 2)
    batch = TwoLayer(rng.normal(size=(7, 2, 5)), rng.normal(size=(7, 2)))
    order = order_parameters(task, batch)
    one = order_parameters(task, TwoLayer(batch.incoming[3], batch.outgoing[3]))
    np.testing.assert_allclose(order.student_teacher[3], one.student_teacher, rtol=1e-14)
    np.testing.assert_allclose(order.student_student[3], one.student_student, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", TEACHERS)
def test_what_comes_from_weights_satisfies_every_constraint(kind):
    """With the parts outside the span done by hand: ball = ‖w⊥‖²/r², box from Cauchy-Schwarz on them."""
    teacher, parameters = TEACHERS[kind], student(3, 6)
    found = constraints(teacher, order_parameters(Population(teacher, 3), parameters))
    w = np.asarray(parameters.incoming)
    unit = w / np.linalg.norm(w, axis=1, keepdims=True)
    v = np.asarray(teacher.incoming)
    outside = unit - unit @ np.linalg.pinv(v) @ v
    gram = outside @ outside.T
    lengths = np.sqrt(np.diagonal(gram))
    np.testing.assert_allclose(found.ball, np.diagonal(gram), rtol=0, atol=1e-13)
    expected = np.outer(lengths, lengths) - np.abs(gram)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(found.box, expected, rtol=0, atol=1e-13)
    assert found.determinant == pytest.approx(np.linalg.eigvalsh(gram)[0], abs=1e-13)
    assert np.all(found.box >= -1e-14)
    np.testing.assert_allclose(found.span, 0, atol=1e-14)


@pytest.mark.parametrize("kind", TEACHERS)
@pytest.mark.parametrize("n", [1, 3, 5])
def test_weights_can_be_reconstructed(kind, n):
    """Up to a rotation that fixes the teachers: the order parameters come back, and so does the loss."""
    teacher = TEACHERS[kind]
    task, parameters = Population(teacher, n), student(n, 6, seed=n)
    order = order_parameters(task, parameters)
    again = order_parameters(task, reconstruct(teacher, order))
    for a, b in zip(order, again, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_reconstruction_keeps_small_parts_outside_the_span():
    """A part of 1e-7 outside has the square 1e-14 in the Gram matrix: it comes back to √eps, and is not dropped."""
    teacher = Teacher.orthonormal(2, 4)
    w = np.array([[1.0, 0.5, 1e-6, 0.0], [0.3, -0.2, 0.7, 0.0]])
    order = order_parameters(Population(teacher, 2), TwoLayer(w, np.ones(2)))
    back = np.asarray(reconstruct(teacher, order).incoming)
    np.testing.assert_allclose(np.linalg.norm(back[:, 2:], axis=1), [1e-6, 0.7], rtol=0, atol=2e-8)


def test_a_zero_student_and_a_zero_teacher():
    teacher = Teacher([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [1.0, 1.0], "erf")
    parameters = TwoLayer([[0.0, 0.0, 0.0], [1.0, 2.0, 0.0]], [1.0, 1.0])
    order = order_parameters(Population(teacher, 2), parameters)
    back = order_parameters(Population(teacher, 2), reconstruct(teacher, order))
    for a, b in zip(order, back, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)


def test_as_many_dimensions_as_teachers_determine_everything():
    """Eq. 33: for d = k, ρ = u·u', and norms of u are 1."""
    teacher = Teacher.orthonormal(4, 4)
    order = order_parameters(Population(teacher, 3), student(3, 4))
    found = constraints(teacher, order)
    np.testing.assert_allclose(found.ball, 0, atol=1e-14)
    np.testing.assert_allclose(found.box, 0, atol=1e-14)
    u = np.asarray(order.student_teacher)
    np.testing.assert_allclose(order.student_student, u @ u.T, atol=1e-14)
    np.testing.assert_allclose(reconstruct(teacher, order).incoming, student(3, 4).incoming, rtol=0, atol=1e-7)


def test_one_dimension_more_leaves_a_sign():
    """Eq. 35: for d = k + 1, |ρ - u·u'| = √(1-‖u‖²) √(1-‖u'‖²), the box is exactly used up."""
    teacher = Teacher.orthonormal(3, 4)
    task = Population(teacher, 4)
    order = order_parameters(task, student(4, 4))
    found = constraints(teacher, order)
    np.testing.assert_allclose(found.box, 0, atol=1e-14)
    assert np.all(found.ball > 1e-4)
    back = order_parameters(task, reconstruct(teacher, order))
    np.testing.assert_allclose(back.student_student, order.student_student, rtol=0, atol=1e-12)
    # Two students outside on the same line, with a correlation strictly inside the box, need a second dimension.
    u = np.array([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
    inside = OrderParameters(jnp.ones(2), jnp.asarray(u), jnp.asarray([[1.0, 0.1], [0.1, 1.0]]), jnp.ones(2))
    assert np.all(constraints(teacher, inside).box >= 0)
    with pytest.raises(
        ValueError, match=r"in dimension 4: outside .* span 2 dimensions are needed, and there are only 1"
    ):
        reconstruct(teacher, inside)
    assert reconstruct(Teacher.orthonormal(3, 5), inside).dim == 5


def made_up(u, rho):
    u = np.asarray(u, float)
    return OrderParameters(jnp.ones(len(u)), jnp.asarray(u), jnp.asarray(rho, float), jnp.ones(len(u)))


def test_three_students_inside_every_box_and_yet_nowhere():
    """Appendix D.3: pairwise -0.9 is allowed for each pair, but three vectors cannot all point away from each other."""
    rho = np.full((3, 3), -0.9) + 1.9 * np.eye(3)
    order = made_up(np.zeros((3, 2)), rho)
    teacher = Teacher.orthonormal(2, 10)
    found = constraints(teacher, order)
    assert np.all(found.ball >= 0)
    assert np.all(found.box >= 0)
    assert found.determinant == pytest.approx(1 - 2 * 0.9)
    with pytest.raises(ValueError, match=r"outside the teachers' span has the eigenvalue -0.8 < 0"):
        reconstruct(teacher, order)
    for i in range(3):  # each pair alone is realised
        pair = [j for j in range(3) if j != i]
        assert reconstruct(teacher, made_up(np.zeros((2, 2)), rho[np.ix_(pair, pair)])).width == 2


@pytest.mark.parametrize(
    ("teacher", "order", "message"),
    [
        (Teacher.orthonormal(2, 5), made_up([[0.9, 0.9]], [[1.0]]), r"student 0 has u·M⁺u = 1.62 > 1 \(Eq. 10, 31\)"),
        (
            Teacher.orthonormal(2, 5),
            made_up([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [0.5, 1.0]]),
            "eigenvalue -0.5 < 0",
        ),
        (dependent_teacher(), made_up([[0.1, 0.2, 0.9]], [[1.0]]), "teachers are linearly dependent and student 0 is"),
        # Independent teachers at 60 degrees: correlations 0.9 and -0.9 with both at once are impossible.
        (Teacher.angular([0.0, np.pi / 3], "erf"), made_up([[0.9, -0.9]], [[1.0]]), r"u·M⁺u = 3.24 > 1"),
    ],
)
def test_impossible_correlations_are_refused_with_the_reason(teacher, order, message):
    with pytest.raises(ValueError, match=message):
        reconstruct(teacher, order)
