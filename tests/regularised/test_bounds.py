"""Bounds of the oracle for any number of inputs: never below the exact maximum, and tight where they should be."""

import numpy as np
import pytest

import understudy as us
from understudy import activations
from understudy.regularised import minimise_globally
from understudy.regularised.caps import branch_and_bound
from understudy.regularised.cone_oracle import ConeOracle
from understudy.regularised.local_search import search
from understudy.regularised.relaxation import Responses, relaxed_bound


@pytest.mark.parametrize("activation", ["relu", "abs", "linear"])
@pytest.mark.parametrize(("dim", "outputs"), [(2, 1), (3, 2)])
def test_bounds_hold_against_enumeration(activation, dim, outputs):
    draw = np.random.default_rng(10 * dim + outputs)
    basis, duals = draw.normal(size=(dim, 6)), draw.normal(size=(outputs, 6))
    kind = activations.get(activation)
    exact = ConeOracle(basis, kind).maximise(np.zeros((6, 6)), duals.T @ duals)
    responses = Responses.of(basis, kind)
    found, direction = search(responses, duals)
    assert 0.99 * exact.value <= found <= exact.upper * (1 + 1e-12)  # a search at kinks: it promises a lower bound only
    assert float(responses.values(duals, (direction @ responses.frame)[None])[0]) == pytest.approx(found)
    assert relaxed_bound(responses, duals) >= exact.value
    upper, _ = branch_and_bound(responses, duals, found, tolerance=1e-3)
    assert exact.value * (1 - 1e-12) <= upper <= exact.value * (1 + 2e-3)
    few, count = branch_and_bound(responses, duals, 0.0, most=8)  # stopped early: still a bound
    assert few >= exact.value * (1 - 1e-12)
    assert count <= 10


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
    with pytest.raises(ValueError, match="other oracles"):
        minimise_globally(us.Regularised(np.ones((12, 1)), np.ones((12, 1)), (2,), penalty=0.1), oracle="exact")
