"""Correlations against NumPy's, degenerate nodes, and what a student made of its teacher's nodes must give."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.alignment import Alignment, align, correlate
from understudy.networks import Deep

RNG = np.random.default_rng(0)


def test_correlations_are_those_of_numpy():
    t, s = RNG.normal(size=(40, 3)) + 2, RNG.normal(size=(40, 5)) * 7
    np.testing.assert_allclose(correlate(jnp.asarray(t), jnp.asarray(s)), np.corrcoef(t.T, s.T)[:3, 3:], atol=1e-13)


def test_constant_and_silent_nodes_correlate_with_nothing():
    t = np.stack([np.zeros(20), np.full(20, 0.1), RNG.normal(size=20)], axis=1)
    found = np.asarray(correlate(jnp.asarray(t), jnp.asarray(t)))
    np.testing.assert_array_equal(found[:2], 0)
    assert found[2, 2] == pytest.approx(1, abs=1e-14)


def test_a_student_with_the_teachers_nodes_recovers_them():
    teacher = Deep.glorot([4, 3, 2, 2], seed=1, bias=0.1)
    order, scale = [2, 0, 1], np.array([0.5, 2.0, 3.0])
    extra = RNG.normal(size=(2, 4))
    first = np.concatenate([scale[:, None] * np.asarray(teacher.weights[0])[order], extra])
    bias = np.concatenate([scale * np.asarray(teacher.biases[0])[order], np.zeros(2)])
    second = np.concatenate([np.asarray(teacher.weights[1])[:, order] / scale, np.zeros((2, 2))], axis=1)
    student = Deep(
        (jnp.asarray(first), jnp.asarray(second), teacher.weights[2]), (jnp.asarray(bias), *teacher.biases[1:])
    )
    layers = align(student, teacher, jnp.asarray(RNG.normal(size=(200, 4))))
    assert len(layers) == 2
    found = layers[0]
    np.testing.assert_allclose(found.best_of_teacher, 1, atol=1e-12)
    assert found.student_of_teacher.tolist() == [1, 2, 0]
    assert found.best_of_student[3:].max() < 0.99
    assert found.recovered().all()
    assert found.mean == pytest.approx(1)
    half = Alignment(np.array([[0.2, 0.96], [0.5, 0.1]]))
    assert half.recovered().tolist() == [True, False]
    assert half.recovered(0.4).tolist() == [True, True]
    assert half.mean == pytest.approx(0.73)
    with pytest.raises(ValueError, match="depths 2 and 3"):
        align(Deep.glorot([4, 3, 2]), teacher, jnp.ones((2, 4)))
