"""Which cases of a parametrised test run in `make test`, and which only in `make thorough`; examples of properties."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as numpy_arrays


def thorough_but(every, quick):
    """`every` case for `pytest.mark.parametrize`; those not in `quick` are marked thorough."""
    every = list(every)
    unknown = [case for case in quick if case not in every]
    if unknown:
        raise ValueError(f"Quick cases that do not exist: {unknown}")
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=() if case in quick else pytest.mark.thorough
        )
        for case in every
    ]


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
