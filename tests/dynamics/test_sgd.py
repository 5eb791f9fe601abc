"""Minibatch training: Adam by hand, independence of seeds, convergence, bad input."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.dynamics.sgd import adam, train


def cost(network, x, y):
    return jnp.mean((x @ network["w"] - y) ** 2)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3))
    return x, x @ np.array([1.0, -2.0, 0.5])


def start(seed):
    return {"w": jnp.asarray(np.random.default_rng(seed).normal(size=3))}


def last(runs):
    return list(runs)[-1]


def test_adam_against_its_definition():
    optimizer = adam(0.1, 0.9, 0.99, 1e-8)
    w, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    parameters, state = jnp.asarray(w), optimizer.init(jnp.asarray(w))
    for t in range(1, 6):
        g = 2 * w
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        w = w - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
        parameters, state = optimizer.step(parameters, state, 2 * parameters)
        np.testing.assert_allclose(parameters, w, rtol=1e-13)


def test_a_seed_trains_the_same_alone_and_in_company(data):
    def run(seeds):
        return last(train(cost, [start(s) for s in seeds], *data, optimizer=adam(), batch=10, epochs=2, seeds=seeds))

    _, together, costs = run([0, 1, 2])
    _, alone, cost_alone = run([1])
    np.testing.assert_allclose(alone["w"][0], together["w"][1], rtol=1e-13)
    assert cost_alone[0] == pytest.approx(costs[1], rel=1e-12)


def test_it_learns(data):
    _, trained, costs = last(train(cost, [start(0)], *data, optimizer=adam(0.05), batch=16, epochs=80, seeds=[0]))
    np.testing.assert_allclose(trained["w"][0], [1.0, -2.0, 0.5], atol=1e-3)
    assert costs[0] < 1e-4


def test_bad_input_is_explained(data):
    with pytest.raises(ValueError, match="one network for each seed"):
        next(train(cost, [start(0)], *data, optimizer=adam(), batch=4, epochs=1, seeds=[0, 1]))
    with pytest.raises(ValueError, match="between 1 and 64"):
        next(train(cost, [start(0)], *data, optimizer=adam(), batch=65, epochs=1, seeds=[0]))
