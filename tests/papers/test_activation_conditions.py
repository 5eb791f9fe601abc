"""Assumption 3.1: who satisfies it, and the thresholds."""

import numpy as np
import pytest

from understudy.papers.copy_average import activation_conditions as assumptions


@pytest.mark.parametrize("activation", ["erf", "sigmoid", "tanh:0.5", "softplus"])
def test_the_lemma_holds_where_it_is_stated(activation):
    found = assumptions.margins(activation, np.array([0.1, 1.0, 2.0]), np.linspace(-0.99, 0.99, 21))
    assert found.first.min() > 0
    assert found.second.min() > 0
    assert assumptions.sufficient(activation, np.linspace(-10, 10, 201)).min() >= -1e-15


def test_margins_agree_with_the_interaction():
    from understudy.gaussian import interaction

    r, u, step = 0.7, 0.4, 1e-3
    g = np.asarray(interaction("erf", r, 1.0, u + step * np.arange(-1, 2)))
    first, second = (g[2] - g[0]) / (2 * step), (g[2] - 2 * g[1] + g[0]) / step**2
    margin = assumptions.margins("erf", np.array([r]), np.array([u]))
    assert margin.first[0, 0] * r == pytest.approx(first, rel=1e-6)
    assert margin.second[0, 0] == pytest.approx(1 - u * second / first, rel=1e-6)


def test_softplus_fails_beyond_its_threshold():
    beta, y = assumptions.softplus_threshold()
    assert beta == pytest.approx(2.40738586, abs=1e-8)
    assert assumptions.sufficient("softplus:2.41", np.array([y / 2.41]))[0] < 0
    assert assumptions.sufficient("softplus:2.4", np.linspace(-20, 20, 4001)).min() > 0
    assert assumptions.softplus_second_threshold()[0] > beta


def test_tanh_of_x_is_steeper_than_the_papers():
    assert assumptions.sufficient("tanh", np.zeros(1))[0] == pytest.approx(-1.0)
    assert assumptions.margins("tanh", np.array([2.0]), np.array([-0.99])).second.min() < 0


def test_relu_holds_up_to_its_threshold():
    u = assumptions.relu_threshold()
    assert u == pytest.approx(0.94168, abs=1e-5)
    found = assumptions.margins("relu", np.ones(1), np.array([u - 1e-4, u + 1e-4])).second[0]
    assert found[0] > 0 > found[1]
