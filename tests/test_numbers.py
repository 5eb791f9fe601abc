"""Arrays from users: what is not a table of real numbers is named."""

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.numbers import real_array


@pytest.mark.parametrize("given", [1, [1, 2], np.float32([1]), jnp.ones((2, 2)), [True, False], np.zeros((0, 3))])
def test_numbers_are_read(given):
    array = real_array(given, "X")
    assert array.dtype == float
    np.testing.assert_array_equal(array, np.asarray(given, float))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("yes", "X must be real numbers; received text: 'yes'"),
        ([1j], r"X must be real numbers; received complex numbers: \[1j\]"),
        ([[1], [1, 2]], r"X must be an array of numbers, with rows of the same length; received \[\[1\], \[1, 2\]\]"),
        ({"a": 1}, "X must be an array of numbers"),
        ([None], "X must be an array of numbers"),
    ],
)
def test_everything_else_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        real_array(given, "X")


TEACHER = us.Teacher(np.eye(2), [1.0, 1.0], "erf")
NETWORK = us.TwoLayer(np.zeros((2, 2)), np.zeros(2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: us.Teacher([[1, 2], [3]], [1.0, 1.0], "erf"), "The teacher's incoming weights must be an array"),
        (lambda: us.Teacher(np.eye(2), [1.0, 1.0], "erf", bias="yes"), "The teacher's biases must be real numbers"),
        (lambda: us.Population(TEACHER, 1, mean=np.ones(2) * 1j), "The mean of the inputs must be real numbers"),
        (lambda: us.Population(TEACHER, 1, covariance=[["a", "b"]] * 2), "The input covariance must be real numbers"),
        (lambda: us.Empirical(NETWORK, np.eye(2), ["a", "b"], activation="tanh"), "Targets must be real numbers"),
        (lambda: us.Empirical(NETWORK, [["x", "y"]], [1.0], activation="tanh"), "Inputs must be real numbers"),
        (lambda: us.interaction("erf", 1, 1, 0.5, bias1="a"), "bias1 must be real numbers; received text: 'a'"),
    ],
)
def test_the_doors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()


CALLS = """
import numpy as np, understudy as us
teacher = us.Teacher(np.eye(2), [1.0, 1.0], "erf")
task = us.Population(teacher, 1)
for arguments, options in (((teacher, 1), {}), ((task, "3"), {}), ((task, 2.5), {}), ((task, [0.5]), {}),
                           ((task, 1), {"init": {"a": 1}})):
    try:
        us.fit(*arguments, **options)
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
"""


def test_fit_names_what_is_not_a_task_a_seed_or_a_start():
    """In a process of its own: here annotations are checked, and would be faster."""
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "TypeError A task is needed: what to fit is of type Teacher. See us.Task and us.Loss.",
        "TypeError seeds is a number of seeds or a list of them; received '3'.",
        "TypeError seeds is a number of seeds or a list of them; received 2.5.",
        "ValueError Seeds are distinct non-negative whole numbers; received [0.5].",
        "ValueError init is 'gaussian', 'glorot' or a batch of parameters; received a dict that is none.",
    ]
