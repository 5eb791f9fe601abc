"""Examples for property tests: the same ones every time, more of them in `make thorough`."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as numpy_arrays


def for_all(*strategies, examples):
    """Run the decorated check on that many examples of the strategies, the same ones every time."""

    def run(check):
        chosen = settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        chosen(given(*strategies)(check))()

    return run


def arrays(*shape, largest=2.0):
    """Arrays of that shape with entries between -largest and largest, zeros and equal entries among them."""
    return numpy_arrays(float, shape, elements=st.floats(-largest, largest, allow_subnormal=False))


def rotations(dim):
    """Orthogonal matrices: products of Householder reflections."""

    def turned(rows):
        matrix = np.eye(dim)
        for row in rows:
            length = float(row @ row)
            matrix = matrix if length < 1e-6 else matrix - 2 * np.outer(matrix @ row, row) / length
        return matrix

    return arrays(dim, dim).map(turned)


few_or_many = pytest.mark.parametrize("examples", [10, pytest.param(200, marks=pytest.mark.thorough)])
