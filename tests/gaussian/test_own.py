"""Activations that users bring: quadrature resolves them, says how well, or refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy import gaussian
from understudy.activations import from_function


def bump(x):
    return jnp.exp(-(((x - 3) / 0.01) ** 2) / 2)


@pytest.mark.parametrize("function", [jax.nn.relu, jnp.sign, lambda x: jnp.abs(x) ** 3], ids=["relu", "sign", "cubed"])
def test_functions_that_are_not_smooth_are_refused(function):
    with pytest.raises(ValueError, match="not smooth enough"):
        gaussian.interaction(from_function(function, "mine"), 1.0, 1.0, 0.5)


def test_an_oscillation_that_is_not_resolved_is_refused():
    """E[sin(100x) sin(100y)] at correlation 0.6 is e^-2000 to rounding."""
    fast = from_function(lambda x: jnp.sin(100 * x), "fast", parity="odd", growth=0)
    with pytest.raises(ValueError, match="does not resolve this activation"):
        gaussian.interaction(fast, 1.0, 1.0, 0.6)


def test_the_error_of_a_narrow_bump_is_stated():
    """E[f(x)f(y)] for y = x: E[e^(-((x-3)/0.01)²)] in closed form."""
    found = gaussian.partials(from_function(bump, "bump", growth=0), 1.0, 1.0, 1.0)
    s = 0.01 / np.sqrt(2)
    exact = s / np.sqrt(1 + s**2) * np.exp(-4.5 / (1 + s**2))
    assert abs(float(found.partials.value) - exact) <= float(found.error.value)


@pytest.mark.parametrize(
    ("function", "steepness", "norm"),
    [
        (jnp.sin, 1.0, 12.0),
        (lambda x: jnp.tanh(8 * x), 1.0, 1.0),
        (lambda x: 1 / (1 + 25 * x**2), 1.0, 1.0),
        (jax.nn.relu, 1.0, 1.0),
    ],
    ids=["sin", "steep tanh", "pole", "relu"],
)
def test_population_losses_meet_the_accuracy_or_refuse(function, steepness, norm):
    sigma = from_function(function, "mine", steepness=steepness, growth=1)
    task = us.Population(us.Teacher([[1.0, 0.0]], [1.0], "erf"), 1, activation=sigma)
    with pytest.raises(ValueError, match=r"does not resolve|not smooth enough"):
        task.loss(us.TwoLayer([[norm * 0.6, norm * 0.8]], [1.0]))


def test_with_the_right_steepness_a_steep_function_is_exact():
    sigma = from_function(lambda x: jnp.tanh(3 * x), "mine", parity="odd", steepness=3.0, growth=0)
    f = us.Teacher([[1.0, 0.0]], [1.0], "tanh:3")
    student = us.TwoLayer([[0.6, 0.8]], [0.7])
    mine = us.Population(us.Teacher([[1.0, 0.0]], [1.0], sigma), 1).loss(student)
    assert float(mine) == pytest.approx(float(us.Population(f, 1).loss(student)), rel=1e-11)
