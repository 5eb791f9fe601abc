"""Half-active teachers: what the construction promises, and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.networks.half_active import GRID, distinct_rows, half_active

X = 1.5 * np.random.default_rng(0).normal(size=(2000, 12))


def test_nodes_are_distinct_half_active_and_of_falling_strength():
    teacher = half_active([12, 7, 5, 4], X, seed=3, polarity=1.5, standardise=True)
    *hidden, outputs = (np.asarray(f) for f in teacher.layers(jnp.asarray(X), "relu"))
    for f, w in zip(hidden, teacher.weights[:2], strict=True):
        np.testing.assert_allclose((f > 0).mean(axis=0), 0.5, atol=1e-3)  # the median is between two samples
        unit = np.asarray(w) / np.linalg.norm(w, axis=1, keepdims=True)
        assert np.max(np.abs(unit @ unit.T) - np.eye(len(w))) < 1 - 1e-6
    np.testing.assert_allclose(np.linalg.norm(teacher.weights[0], axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(outputs.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(outputs.std(axis=0), 1, rtol=1e-12)


def test_polarity_divides_columns_and_leaves_directions():
    flat, steep = (half_active([12, 7, 4], X, seed=1, polarity=p) for p in (0.0, 2.0))
    np.testing.assert_array_equal(flat.weights[0], steep.weights[0])
    np.testing.assert_allclose(np.asarray(flat.weights[1]) / np.arange(1, 8) ** 2.0, steep.weights[1], rtol=1e-14)
    assert set(np.unique(np.asarray(flat.weights[1]))) <= set(GRID)
    np.testing.assert_array_equal(flat.biases[1], 0)


def test_rows_of_few_entries_run_out():
    rows = distinct_rows(10, 2, np.random.default_rng(0))
    slopes = np.arctan2(rows[:, 1], rows[:, 0]) % np.pi
    assert len(np.unique(np.round(slopes, 9))) == 10
    with pytest.raises(ValueError, match="2 distinct directions"):
        distinct_rows(2, 1, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"widths": [12, 4]}, "hidden layers"),
        ({"widths": [12, 3, 2], "polarity": -1.0}, "polarity"),
        ({"widths": [11, 3, 2]}, r"\(N, 11\)"),
    ],
)
def test_bad_input_is_explained(arguments, said):
    with pytest.raises(ValueError, match=said):
        half_active(inputs=X, **arguments)


def test_an_output_that_does_not_vary_cannot_be_standardised():
    with pytest.raises(ValueError, match="does not vary"):
        half_active([12, 3, 2], np.repeat(X[:1], 4, axis=0), standardise=True)
