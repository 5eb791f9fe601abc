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


def test_unknown_oracles_are_refused():
    task = us.Regularised([[1.0], [-1.0]], [[1.0], [1.0]], (2,), penalty=0.1)
    with pytest.raises((ValueError, TypeError), match="oracle"):  # the type checker of the tests comes first
        minimise_globally(task, oracle="delphi")
    x = np.random.default_rng(0).normal(size=(40, 6))
    spread = us.Regularised(x, x[:, :1], (2,), penalty=0.1)
    with pytest.raises(ValueError, match="other oracles"):
        minimise_globally(spread, oracle="exact")
