"""Minibatch training: Adam by hand, independence of seeds, convergence, bad input."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.dynamics.optimizers import adam, sgd
from understudy.dynamics.sgd import Trainer, train


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


def test_sgd_and_weight_decay_against_their_definitions():
    w, g = jnp.asarray([1.0, -2.0]), jnp.asarray([0.5, 0.25])
    rule = sgd(0.1, weight_decay=0.3)
    moved, _ = rule.step(w, rule.init(w), g)
    np.testing.assert_allclose(moved, w - 0.1 * (g + 0.3 * w), rtol=1e-14)
    plain, decayed = adam(0.1), adam(0.1, weight_decay=0.3)
    (a, state), (b, same) = plain.step(w, plain.init(w), g), decayed.step(w, decayed.init(w), g)
    np.testing.assert_allclose(b, a - 0.1 * 0.3 * w, rtol=1e-14)
    np.testing.assert_array_equal(state[1], same[1])


def test_stretches_workers_and_own_data_change_nothing(data):
    x, y = data
    seeds, networks = [0, 1, 2], [start(s) for s in (0, 1, 2)]
    whole = Trainer(cost, sgd(0.05), x, y, seeds, batch=16, steps=9)  # more than the four batches of the data
    training, costs = whole.advance(whole.begin(networks))
    own = Trainer(cost, sgd(0.05), np.stack([x] * 3), np.stack([y] * 3), seeds, batch=16, steps=9, own=True, workers=2)
    piece, first = own.advance(own.begin(networks), 4)
    piece, second = own.advance(piece, 5)
    np.testing.assert_allclose(piece.parameters["w"], training.parameters["w"], rtol=1e-13)
    np.testing.assert_allclose((4 * first + 5 * second) / 9, costs, rtol=1e-12)
    assert piece.step == training.step == 9
    with pytest.raises(ValueError, match="9 steps are left"):
        own.advance(piece, 10)
    # By hand, one seed.
    w = np.asarray(start(1)["w"])
    for index in whole._order(0)[1]:
        w = w - 0.05 * 2 / 16 * x[index].T @ (x[index] @ w - y[index])
    np.testing.assert_allclose(training.parameters["w"][1], w, rtol=1e-12)


def test_an_epoch_goes_through_the_data_evenly(data):
    order = Trainer(cost, sgd(), *data, [0], batch=16, steps=8)._order(0)[0]
    np.testing.assert_array_equal(np.bincount(order.ravel(), minlength=64), 2)


def test_trainers_refuse_what_does_not_fit(data):
    x, y = data
    with pytest.raises(ValueError, match="own data"):
        Trainer(cost, sgd(), x[None], y[None], [0, 1], batch=4, own=True)
    with pytest.raises(ValueError, match="at least one worker"):
        Trainer(cost, sgd(), x, y, [0], batch=4, workers=0)
