"""Rodas5P against known solutions: its orders by slope, its damping of stiff modes, what happens without a factor."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.dynamics import rosenbrock

TURN = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]


def loss(theta):
    """Σ_i c_i log cosh of turned coordinates: coordinate y follows y' = -c tanh(y), sinh y(t) = sinh(y(0)) e^(-ct)."""
    y = jnp.asarray(TURN) @ theta
    return jnp.sum(jnp.asarray([0.5, 1.0, 2.0]) * jnp.log(jnp.cosh(y)))


def solution(start, t):
    return TURN.T @ np.arcsinh(np.sinh(TURN @ start) * np.exp(-np.array([0.5, 1.0, 2.0]) * t))


@jax.jit
def one(start, h):
    gradient = jax.grad(loss)
    return rosenbrock.step(gradient, start, gradient(start), jax.hessian(loss)(start), h)


START = np.array([1.3, -0.7, 0.9])
HALVINGS = 0.4 / 2.0 ** np.arange(5)


def slope(errors):
    return np.polyfit(np.log(HALVINGS), np.log(errors), 1)[0]


def test_a_fixed_time_is_reached_to_order_five():
    errors = []
    for h in HALVINGS:
        theta = jnp.asarray(START)
        for _ in range(round(1.6 / h)):
            theta = one(theta, h).end
        errors.append(np.linalg.norm(theta - solution(START, 1.6)))
    assert 4.7 < slope(errors) < 5.6
    assert errors[-1] < 1e-9


def test_the_embedded_error_has_order_five_in_a_step():
    """An embedded method of order 4 makes a local error of order h⁵ (at these h still a little steeper)."""
    assert slope([np.linalg.norm(one(jnp.asarray(START), h).error) for h in HALVINGS]) > 4.6


def test_the_error_estimate_is_not_below_the_error():
    for h in HALVINGS:
        taken = one(jnp.asarray(START), h)
        assert np.linalg.norm(taken.end - solution(START, h)) < np.linalg.norm(taken.error)


@pytest.mark.parametrize("fraction", [0.25, 0.5, 0.8])
def test_dense_output_has_order_four(fraction):
    """Order 4 between the ends means a local error of h⁵."""
    errors = []
    for h in HALVINGS:
        inside = one(jnp.asarray(START), h).between(jnp.asarray([fraction]))[0]
        errors.append(np.linalg.norm(inside - solution(START, fraction * h)))
    assert slope(errors) > 4.6


def test_dense_output_meets_both_ends():
    taken = one(jnp.asarray(START), 0.3)
    ends = taken.between(jnp.asarray([0.0, 1.0]))
    np.testing.assert_array_equal(ends, np.stack([taken.start, taken.end]))


@pytest.mark.parametrize("stiffness", [1e2, 1e6, 1e12])
def test_stiff_decay_is_damped_in_one_step(stiffness):
    """The stability function vanishes at infinity: |R(-z)| = O(1/z), here with hλ = stiffness."""
    start = jnp.asarray([1.0])
    taken = rosenbrock.step(
        lambda x: stiffness * x, start, stiffness * start, jnp.full((1, 1), stiffness), jnp.asarray(1.0)
    )
    assert abs(taken.end[0]) < 100 / stiffness


def test_an_indefinite_matrix_gives_nan_and_not_a_wrong_step():
    start = jnp.asarray([1.0, 1.0])
    hessian = jnp.diag(jnp.asarray([1.0, -2.0]))
    long = rosenbrock.step(lambda x: hessian @ x, start, hessian @ start, hessian, jnp.asarray(4.0))
    assert np.all(np.isnan(long.end))
    assert np.all(np.isnan(long.error))
    short = rosenbrock.step(lambda x: hessian @ x, start, hessian @ start, hessian, jnp.asarray(0.1))
    np.testing.assert_allclose(short.end, np.exp([-0.1, 0.2]), rtol=1e-6)
