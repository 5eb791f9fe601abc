"""Teachers: what is made, and what is refused."""

import numpy as np
import pytest

from understudy import Teacher
from understudy.activations import get


def test_orthonormal():
    teacher = Teacher.orthonormal(3, dim=5, activation="relu")
    np.testing.assert_array_equal(teacher.incoming, np.eye(3, 5))
    np.testing.assert_array_equal(teacher.outgoing, np.ones(3))
    assert (teacher.width, teacher.dim, teacher.activation) == (3, 5, get("relu"))
    assert teacher.is_unit_orthonormal
    assert Teacher.orthonormal(4).dim == 4
    assert not Teacher.orthonormal(3, outgoing=[1.0, 2.0, 1.0]).is_unit_orthonormal
    assert Teacher.orthonormal(3, outgoing=np.ones((3, 2))).outgoing.shape == (3, 2)


def test_angular():
    teacher = Teacher.angular([0.0, np.pi / 2, np.pi], norms=[1.0, 2.0, 3.0], outgoing=-1.0)
    np.testing.assert_allclose(teacher.incoming, [[1, 0], [0, 2], [-3, 0]], atol=1e-15)
    np.testing.assert_array_equal(teacher.outgoing, -np.ones(3))
    assert not teacher.is_unit_orthonormal
    assert Teacher.angular(0.3).width == 1


def test_random():
    teacher = Teacher.random(4, 50, seed=3)
    np.testing.assert_allclose(np.linalg.norm(teacher.incoming, axis=1), 1, rtol=1e-15)
    np.testing.assert_array_equal(teacher.incoming, Teacher.random(4, 50, seed=3).incoming)
    assert not np.array_equal(teacher.incoming, Teacher.random(4, 50, seed=4).incoming)
    # Variance 1/d: the squared norm is 1 with standard deviation √(2/d); five of them.
    free = Teacher.random(1, 10_000, seed=0, unit=False)
    assert abs(float(np.sum(np.asarray(free.incoming) ** 2)) - 1) < 5 * np.sqrt(2 / 10_000)


def test_any_linear_dependence_and_zero_vectors_of_smooth_activations():
    assert Teacher([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]], [1.0, 1.0, 1.0], "erf").width == 3


def test_the_network_of_a_teacher():
    teacher = Teacher.orthonormal(2)
    assert float(teacher.network(np.array([1.0, -1.0]) @ teacher.incoming, "erf")) == pytest.approx(0, abs=1e-16)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Teacher.orthonormal(5, dim=4), "5 orthonormal vectors need at least 5 dimensions; received dim=4"),
        (lambda: Teacher.orthonormal(0), "width must be a positive integer; received 0"),
        (lambda: Teacher.random(2, 0), "dim must be a positive integer; received 0"),
        (lambda: Teacher.orthonormal(3, outgoing=[1.0, 2.0]), r"needs outgoing weights of shape \(3,\).*\(2,\)"),
        (lambda: Teacher.random(3, 4, outgoing=np.ones(4)), r"outgoing weights of shape \(3,\).*\(4,\)"),
        (lambda: Teacher.angular([0.0, 1.0], norms=np.ones(3)), r"angles of shape \(2,\) and norms of shape \(3,\)"),
        (lambda: Teacher.angular(np.zeros((2, 2))), r"angles of shape \(2, 2\)"),
        (lambda: Teacher(np.zeros((0, 3)), [], "erf"), r"k, d ≥ 1; received shape \(0, 3\)"),
        (lambda: Teacher([1.0, 2.0], [1.0], "erf"), r"form a matrix \(k, d\).*received shape \(2,\)"),
        (lambda: Teacher(np.eye(2), [1.0, np.nan], "erf"), r"outgoing weights must be finite; received nan at \(1,\)"),
        (lambda: Teacher([[1.0, np.inf]], [1.0], "erf"), r"incoming weights must be finite; received inf at \(0, 1\)"),
        (lambda: Teacher([[1.0], [0.0]], [1.0, 1.0], "relu"), "zero incoming vector contributes nothing; neuron 1"),
        (lambda: Teacher(np.eye(2), np.ones(2), "relut"), "Unknown activation 'relut'"),
    ],
)
def test_bad_teachers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
