"""Lower bounds of regularised losses for any number of inputs."""

import numpy as np
import pytest

import understudy as us
from understudy.regularised import minimise_globally


@pytest.mark.parametrize("oracle", ["caps", "relaxation"])
def test_lower_bounds_never_exceed_the_global_minimum(oracle):
    draw = np.random.default_rng(1)
    task = us.Regularised(draw.normal(size=(5, 1)), draw.normal(size=(5, 1)), (4,), penalty=0.02)
    exact = minimise_globally(task, tolerance=1e-8)
    found = minimise_globally(task, oracle=oracle, tolerance=1e-4)
    assert found.value >= exact.value - exact.gap
    assert found.value - found.gap <= exact.value + 1e-12
    assert found.gap >= 0
    if oracle == "caps":
        assert found.within <= 1e-4
    assert "of the best network of any width" in str(found)


def test_fifty_inputs_on_a_line_close_and_the_local_search_certifies_nothing():
    x = np.linspace(-1, 1, 50)[:, None]
    task = us.Regularised(x, np.sin(3 * x), (4,), penalty=1e-2)
    found = minimise_globally(task, tolerance=1e-3)
    assert found.converged
    assert found.within <= 1e-3
    wide = us.Regularised(x, np.sin(3 * x), (len(found.weights),), penalty=1e-2)
    assert float(wide.loss(found.network)) == pytest.approx(found.value, rel=1e-6)
    local = minimise_globally(task, oracle="local", tolerance=1e-3)
    assert local.gap == np.inf
    assert "certifies nothing" in str(local)
    assert local.value >= found.value - found.gap


def test_fifty_inputs_in_the_plane_close():
    """Rank 3 with the bias: 22,050 sign vectors are enumerated once no neuron helps any more."""
    x = np.random.default_rng(0).normal(size=(50, 2))
    task = us.Regularised(x, np.sin(3 * x[:, :1]), (4,), penalty=0.03)
    found = minimise_globally(task, tolerance=1e-4)
    assert found.converged
    assert found.within <= 1e-4
    caps = minimise_globally(task, oracle="caps", tolerance=1e-3)
    assert caps.value - caps.gap <= found.value
    assert found.value - found.gap <= caps.value


@pytest.mark.parametrize("oracle", ["caps", "relaxation"])
def test_a_search_that_is_cut_short_still_has_a_gap(oracle):
    x = np.linspace(-1, 1, 50)[:, None]
    task = us.Regularised(x, np.sin(3 * x), (4,), penalty=1e-2)
    best = minimise_globally(task, tolerance=1e-4)
    cut = minimise_globally(task, oracle=oracle, iterations=1)
    assert not cut.converged
    assert np.isfinite(cut.gap)
    assert cut.value - cut.gap <= best.value + 1e-12
    two = minimise_globally(task, oracle=oracle, iterations=2)
    wide = us.Regularised(x, np.sin(3 * x), (len(two.weights),), penalty=1e-2)
    assert float(wide.loss(two.network)) == pytest.approx(two.value, rel=1e-6)


def test_unknown_oracles_are_refused():
    task = us.Regularised([[1.0], [-1.0]], [[1.0], [1.0]], (2,), penalty=0.1)
    with pytest.raises((ValueError, TypeError), match="oracle"):  # the type checker of the tests comes first
        minimise_globally(task, oracle="delphi")
    x = np.random.default_rng(0).normal(size=(40, 6))
    spread = us.Regularised(x, x[:, :1], (2,), penalty=0.1)
    with pytest.raises(ValueError, match="other oracles"):
        minimise_globally(spread, oracle="exact")
