"""Lemma 1 against automatic differentiation at every depth, and against the definitions on one sample."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.alignment import backpropagated, importance, mixtures, view
from understudy.networks import Deep

RNG = np.random.default_rng(0)


def autodiff(network, x, y):
    def cost(shifts):
        h = x
        for l, (w, b) in enumerate(zip(network.weights, network.biases, strict=True), start=1):
            z = h @ w.T
            z = z + jnp.broadcast_to(b, z.shape) + shifts[l - 1]
            h = z if l == network.depth else jax.nn.relu(z)
        return 0.5 * jnp.sum((y - h) ** 2)

    return [-g for g in jax.jit(jax.grad(cost))([jnp.zeros((len(x), len(w))) for w in network.weights])]


@pytest.mark.few(3)
@pytest.mark.parametrize("bias", [0.0, 0.4])
@pytest.mark.parametrize("depth", [2, 3, 6])
def test_gradients_are_mixtures(depth, bias):
    teacher = Deep.glorot([3, *[4] * (depth - 1), 2], seed=1, bias=bias)
    student = Deep.glorot([3, *[7] * (depth - 1), 2], seed=2, bias=bias)
    x = jnp.asarray(RNG.normal(size=(20, 3)))
    above, below = view(student, x), view(teacher, x)
    np.testing.assert_allclose(above[-1].activations, student(x, "relu"), atol=1e-13)
    truth = autodiff(student, x, teacher(x, "relu"))
    for layer, (found, g) in enumerate(zip(backpropagated(above, below), truth, strict=True)):
        scale = np.abs(g).max()
        np.testing.assert_allclose(found, g, atol=1e-12 * scale)
        a, b = mixtures(above[layer], below[layer])
        s, t = above[layer], below[layer]
        one = np.ones(1)
        for i in (0, 11):  # one sample at a time, as in the lemma
            teachers, students = np.append(t.activations[i], one), np.append(s.activations[i], one)
            mixed = np.asarray(a[i]) @ teachers - np.asarray(b[i]) @ students
            np.testing.assert_allclose(np.asarray(s.gates[i]) * mixed[:-1], g[i], atol=1e-12 * scale)
            np.testing.assert_allclose(
                s.fan_out[i] @ s.activations[i] + s.offset[i], above[-1].activations[i], atol=1e-12
            )
        if bias == 0:
            assert np.abs(a[:, -1]).max() == np.abs(b[:, -1]).max() == 0


def test_mixtures_are_constant_until_a_gate_switches():
    student, teacher = Deep.glorot([2, 6, 5, 1], seed=3, bias=0.3), Deep.glorot([2, 3, 3, 1], seed=4, bias=0.3)
    line = jnp.asarray(np.linspace(-2, 2, 400)[:, None] * np.array([[1.0, 0.3]]))
    above, below = view(student, line), view(teacher, line)
    a, b = mixtures(above[0], below[0])
    same = np.all(np.diff(np.concatenate([above[1].gates, below[1].gates], axis=1), axis=0) == 0, axis=1)
    jumps = np.abs(np.diff(b, axis=0)).max(axis=(1, 2)) + np.abs(np.diff(a, axis=0)).max(axis=(1, 2))
    assert jumps[same].max() == 0
    assert 0 < np.sum(~same) < 20
    assert jumps[~same].min() > 0


def test_importance_is_the_fan_out_norm_of_two_layers():
    student = Deep.glorot([3, 5, 4], seed=5)
    found = importance(view(student, jnp.asarray(RNG.normal(size=(7, 3))))[0])
    np.testing.assert_allclose(found, np.linalg.norm(student.weights[1], axis=0), rtol=1e-14)


def test_other_activations_and_bad_input():
    net = Deep.glorot([2, 3, 3, 1], seed=6, bias=0.2)
    x = jnp.asarray(RNG.normal(size=(5, 2)))
    for name in ("abs", "linear"):
        np.testing.assert_allclose(view(net, x, name)[-1].activations, net(x, name), atol=1e-14)
    with pytest.raises(ValueError, match="received 'erf'"):
        view(net, x, "erf")
    with pytest.raises(ValueError, match="depths 3 and 2"):
        backpropagated(view(net, x), view(Deep.glorot([2, 3, 1]), x))
