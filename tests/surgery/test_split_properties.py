"""What holds of a split wherever it is made."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import understudy as us
from examples import arrays, few_or_many, for_all
from understudy.surgery import join_parts, split

N, D = 2, 3
TEACHER = us.Teacher.orthonormal(D)
INPUTS = jnp.asarray(np.random.default_rng(0).normal(size=(7, D)))
NARROW, WIDE = us.Population(TEACHER, N), us.Population(TEACHER, N + 1)


@eqx.filter_jit
def slope(task, vector):
    return task.value_and_gradient(vector)


@few_or_many
def test_a_split_keeps_the_function_shares_the_gradient_and_joins_back(examples):
    """∂L/∂w of the parts is μ and 1 - μ times the neuron's, ∂L/∂a the same: a critical point stays one, at any μ."""

    @for_all(arrays(N, D), arrays(N), st.integers(0, N - 1), st.floats(-3, 3), examples=examples)
    def check(w, a, neuron, mu):
        network = us.TwoLayer(w, a)
        wide = split(network, {neuron: [mu, 1 - mu]})
        noise = 1e-12 * (1 + abs(mu)) ** 2
        np.testing.assert_allclose(wide(INPUTS, "erf"), network(INPUTS, "erf"), atol=noise)
        loss, gradient = slope(NARROW, NARROW.flatten(network))
        other, moved = slope(WIDE, WIDE.flatten(wide))
        assert abs(float(loss) - float(other)) < noise
        before = np.asarray(gradient).reshape(N, D + 1)
        shares = np.insert(np.ones(N), neuron, mu)
        shares[neuron + 1] = 1 - mu
        origin = np.insert(np.arange(N), neuron, neuron)
        expected = before[origin] * np.column_stack([np.repeat(shares[:, None], D, axis=1), np.ones(N + 1)])
        np.testing.assert_allclose(np.asarray(moved).reshape(N + 1, D + 1), expected, atol=noise)
        joined = join_parts(wide, [[neuron, neuron + 1]])
        np.testing.assert_array_equal(joined.incoming, network.incoming)
        np.testing.assert_allclose(joined.outgoing, network.outgoing, atol=noise)
