"""A jump is taken near a minimum and refused where the flow might end elsewhere."""

import jax.numpy as jnp
import numpy as np
import pytest

from toys import Toy
from understudy.dynamics.jump import attempt_from


def bowl(x):
    """A convex function with minimum at 0 whose curvature changes by half within a distance of about 1."""
    return jnp.sum(jnp.asarray([1.0, 10.0]) * x**2) + jnp.log(jnp.cosh(x[0] + x[1]))


def double_well(x):
    """(x² - 1)² + y²: minima at ±1, a saddle at 0, inflections at 1/√3."""
    return (x[0] ** 2 - 1) ** 2 + x[1] ** 2


def soft_well(x):
    """A soft quadratic with a barrier at a distance of 0.1, beyond which it falls: 1e-3 x² - x⁴/20 (and a stiff y)."""
    return 1e-3 * x[0] ** 2 - 0.05 * x[0] ** 4 + 3 * x[1] ** 2


def test_near_a_minimum_newton_ends_at_rounding():
    jump = attempt_from(Toy(bowl, 2), jnp.asarray([1e-3, -2e-3]))
    assert bool(jump.justified)
    np.testing.assert_allclose(jump.end, 0, atol=1e-15)
    assert jump.gradient_norm < 1e-14
    assert 0 < jump.ratio <= 1
    gradient, hessian = np.array([2e-3 - 1e-3, -40e-3 - 1e-3]), np.array([[3.0, 1.0], [1.0, 21.0]])
    assert jump.decrement == pytest.approx(np.sqrt(gradient @ np.linalg.solve(hessian, gradient)), rel=1e-3)
    assert jump.distance == pytest.approx(np.hypot(1e-3, 2e-3), rel=1e-6)


@pytest.mark.parametrize("start", [(0.0, 0.3), (1e-6, 1e-6), (0.5, 0.0), (0.6, 0.0), (0.7, 0.1)])
def test_refused_at_a_saddle_and_where_the_barrier_is_within_reach(start):
    """Negative curvature at the point (|x| < 0.577) or inside the ellipsoid around it: no jump, and nothing moves."""
    jump = attempt_from(Toy(double_well, 2), jnp.asarray(start))
    assert not bool(jump.justified)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_accepted_into_the_own_well_only(side):
    jump = attempt_from(Toy(double_well, 2), jnp.asarray([0.98 * side, 0.01]))
    assert bool(jump.justified)
    np.testing.assert_allclose(jump.end, [side, 0.0], atol=1e-15)


def test_refused_where_a_soft_direction_leads_over_a_barrier():
    """A large gradient in y makes the ellipsoid long in x: along x it leaves the convex region, so no jump."""
    task = Toy(soft_well, 2)
    assert not bool(attempt_from(task, jnp.asarray([0.0, 0.1])).justified)
    assert bool(attempt_from(task, jnp.asarray([0.0, 1e-4])).justified)


def test_refused_on_a_slope_without_a_minimum():
    assert not bool(attempt_from(Toy(lambda x: jnp.sum(jnp.exp(-x)), 1), jnp.asarray([3.0])).justified)


def test_refused_in_a_flat_valley_and_at_a_degenerate_minimum():
    assert not bool(attempt_from(Toy(lambda x: x[0] ** 2 + 0 * x[1], 2), jnp.asarray([1e-5, 1.0])).justified)
    assert not bool(attempt_from(Toy(lambda x: jnp.sum(x**4), 1), jnp.asarray([1e-2])).justified)


def test_every_accepted_jump_of_random_double_wells_ends_where_the_flow_does():
    """Random quartics with two wells: the flow in one dimension goes downhill to the next critical point."""
    rng = np.random.default_rng(0)
    task = Toy(lambda x: (x[0] ** 2 - 1) ** 2 / 4 + 0.2 * x[0], 1)
    roots = np.sort(np.roots([1, 0, -1, 0.2]).real)
    accepted = 0
    near = roots[[0, 2]].repeat(20) + 0.05 * rng.normal(size=40)
    for x in np.concatenate([rng.uniform(-1.6, 1.6, 40), near]):
        jump = attempt_from(task, jnp.asarray([x]))
        if bool(jump.justified):
            accepted += 1
            assert jump.end[0] == pytest.approx(roots[0] if x < roots[1] else roots[2], abs=1e-12)
    assert accepted >= 5
