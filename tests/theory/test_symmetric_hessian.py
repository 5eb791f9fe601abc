"""The Hessian's spectrum by symmetry against the dense one."""

import time

import numpy as np
import pytest

import understudy as us
from understudy.theory import copy_average, symmetric_spectrum
from understudy.theory.symmetric_hessian import graded_eigenvalues


def dense(activation, n, k, d):
    task = us.Population(us.Teacher.orthonormal(k, dim=d, activation=activation), width=n)
    point = copy_average(activation, (1,) * (n - 1) + (k - n + 1,), dim=d)
    return np.linalg.eigvalsh(np.asarray(task.hessian(point)))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("activation", "n", "k", "d"),
    [
        ("erf", 1, 1, 1),
        ("erf", 1, 4, 5),
        ("erf", 2, 2, 2),
        ("erf", 2, 4, 6),
        ("erf", 3, 3, 4),
        ("erf", 3, 5, 7),
        ("erf", 4, 6, 6),
        ("erf", 30, 33, 34),
        pytest.param("hermite:3", 4, 6, 8, marks=pytest.mark.thorough),
        pytest.param("softplus", 2, 4, 5, marks=pytest.mark.thorough),
    ],
)
def test_every_eigenvalue_with_its_multiplicity(activation, n, k, d):
    expected = dense(activation, n, k, d)
    found = symmetric_spectrum(activation, n, k, dim=d)
    assert found.size == n * (d + 1)
    assert np.allclose(
        found.eigenvalues(), expected, rtol=0, atol=2e-14 * np.abs(expected).max() * len(expected) ** 0.5
    )


@pytest.mark.parametrize(("h", "first"), [(1, 6), (2, 12), (3, 20)])
def test_the_minimum_turns_into_a_saddle(h, first):
    assert symmetric_spectrum("erf", first - 1, first - 1 + h).least > 0
    assert symmetric_spectrum("erf", first, first + h).least < 0


def test_ten_thousand_students_take_seconds():
    begin = time.perf_counter()
    twice = symmetric_spectrum("erf", 10_000, 20_000)
    assert 0 < twice.least < 1e-12
    assert time.perf_counter() - begin < 10


def test_small_eigenvalues_beside_large_ones_are_accurate():
    # diag(1e14, 1, 1e-6) in a basis scaled by a well-conditioned correlation matrix.
    scale = np.array([1e7, 1.0, 1e-3])
    correlation = np.array([[1.0, 0.3, 0.2], [0.3, 1.0, 0.1], [0.2, 0.1, 1.0]])
    matrix = scale[:, None] * correlation * scale[None, :]
    product = np.linalg.det(correlation) * np.prod(scale**2)
    assert np.prod(graded_eigenvalues(matrix)) == pytest.approx(product, rel=1e-12)


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match="students ≤ teachers"):
        symmetric_spectrum("erf", 4, 3)
