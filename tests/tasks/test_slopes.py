"""The rules for derivatives of integrated partials: they are those of the partials as functions, by differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy import activations
from understudy.tasks.pairs import own_slopes, slopes

RESOLUTION = 2.0
STEP = 1e-4
"""Differences of order four have errors of about STEP⁴ and 1e-15/STEP: below 1e-10."""


def difference(function, step):
    """The derivative at 0 of a function that returns a tuple of arrays, to order four."""
    far, near = ([np.asarray(x) for x in function(s)] for s in (2 * step, step))
    back_far, back_near = ([np.asarray(x) for x in function(s)] for s in (-2 * step, -step))
    return [(8 * (b - c) - (a - d)) / (12 * step) for a, b, c, d in zip(far, near, back_near, back_far, strict=True)]


@pytest.mark.parametrize("names", [("tanh", "tanh"), ("softplus", "tanh")])
def test_slopes_of_pairs_change_as_their_rule_says(names):
    first, second = (activations.get(name) for name in names)
    random = np.random.default_rng(0)
    p, q = random.normal(size=(2, 3)) / 2, random.normal(size=(3, 3)) / 2
    at = (np.sum(p**2, axis=1), p @ q.T, np.sum(q**2, axis=1))
    along = tuple(random.normal(size=x.shape) for x in at)
    program = jax.jit(lambda a, b, c: slopes(first, second, RESOLUTION, a, b, c))

    def moved(step):
        return program(*(x + step * d for x, d in zip(at, along, strict=True)))

    value, change = jax.jit(lambda at, along: jax.jvp(program, at, along))(
        tuple(map(jnp.asarray, at)), tuple(map(jnp.asarray, along))
    )
    for ours, plain in zip(value, program(*at), strict=True):
        np.testing.assert_array_equal(ours, plain)
    for ours, measured in zip(change, difference(moved, STEP), strict=True):
        np.testing.assert_allclose(ours, measured, atol=1e-9)


@pytest.mark.parametrize("name", ["tanh", "softplus"])
def test_slopes_of_a_neuron_with_itself_change_as_their_rule_says(name):
    activation = activations.get(name)
    random = np.random.default_rng(1)
    at, along = random.normal(size=(3, 4)) / 2, random.normal(size=(3, 4))
    program = jax.jit(lambda x: own_slopes(activation, RESOLUTION, x))
    change = jax.jit(lambda x, d: jax.jvp(program, (x,), (d,))[1])(at, along)
    for ours, measured in zip(change, difference(lambda s: program(at + s * along), STEP), strict=True):
        np.testing.assert_allclose(ours, measured, atol=1e-9)
