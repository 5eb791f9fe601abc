"""Theorem 6 against the population loss and sampling, at 0 and π; Eq. 10's time against its differential equation."""

import numpy as np
import pytest

from understudy.papers.alignment.attraction_field import alignment_time, angle, attraction, per_node_residue

RNG = np.random.default_rng(0)


def integral(function, low, high, pieces=50):
    """Gauss and Legendre's rule of 20 nodes on every piece."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(low, high, pieces + 1)
    half = np.diff(edges)[:, None] / 2
    return float(np.sum(half * weights * function(edges[:-1, None] + half * (nodes + 1))))


@pytest.mark.parametrize("theta", [0.0, 1e-9, 0.3, 2.5, np.pi - 1e-9, np.pi])
def test_against_the_angular_integral(theta):
    """In the plane: (E r² / 2π) ∫ over the common half-planes of cos φ (cos φ, sin φ), E r² = 2."""
    teacher, student = np.array([1.0, 0.0]), 3.0 * np.array([np.cos(theta), np.sin(theta)])
    low, high = -np.pi / 2 + theta, np.pi / 2
    wanted = [integral(lambda p, f=f: np.cos(p) * f(p), low, high) / np.pi for f in (np.cos, np.sin)]
    np.testing.assert_allclose(attraction(teacher, student), wanted, atol=1e-13)
    assert angle(teacher, student) == pytest.approx(theta, abs=1e-15)


def test_against_samples_and_under_scaling():
    teacher, student = RNG.normal(size=(2, 3))
    x = RNG.normal(size=(200_000, 3))
    terms = x * ((x @ student > 0) * np.maximum(x @ teacher, 0))[:, None]
    error = terms.std(axis=0) / np.sqrt(len(x))
    assert np.max(np.abs(terms.mean(axis=0) - attraction(teacher, student)) / error) < 5
    np.testing.assert_allclose(attraction(teacher, 7 * student), attraction(teacher, student), rtol=1e-14)
    np.testing.assert_allclose(attraction(7 * teacher, student), 7 * attraction(teacher, student), rtol=1e-14)
    assert attraction(0 * teacher, student).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="w_k = 0"):
        attraction(teacher, 0 * student)


@pytest.mark.parametrize("gap", [1e-6, 1e-3, 0.5])
def test_time_to_turn(gap):
    wanted = 2 * np.pi * integral(lambda u: 1 / np.sin(np.exp(u)), np.log(gap), np.log(2.0))  # δ = exp u
    assert alignment_time(np.pi - gap, np.pi - 2.0) == pytest.approx(wanted, rel=1e-9)
    with pytest.raises(ValueError, match="start"):
        alignment_time(1.0, 2.0)


def test_residue_by_sums():
    students, teachers = RNG.normal(size=(3, 4)), RNG.normal(size=(2, 4))
    alpha, beta = RNG.uniform(size=(2, 3)), RNG.uniform(size=(3, 3))
    found = per_node_residue(students, teachers, alpha, beta, nu=0.2)
    psi = lambda a, b: (np.pi - angle(a, b)) / (2 * np.pi)  # noqa: E731
    for k, w in enumerate(students):
        wanted = sum(alpha[j, k] * psi(t, w) * t for j, t in enumerate(teachers)) - 0.2 * w
        wanted = wanted - sum(beta[i, k] * psi(v, w) * v for i, v in enumerate(students))
        np.testing.assert_allclose(found[k], wanted, atol=1e-13)
