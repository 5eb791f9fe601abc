"""Bounds of the oracle for any number of inputs: never below the exact maximum, and tight where they should be."""

import numpy as np
import pytest

from understudy import activations
from understudy.oracles import largest_response
from understudy.oracles.caps import _linear, _quadratic, branch_and_bound
from understudy.oracles.cone_oracle import ConeOracle
from understudy.oracles.local_search import search
from understudy.oracles.relaxation import Responses, relaxed_bound


@pytest.mark.parametrize("activation", ["relu", "abs", "linear"])
@pytest.mark.parametrize(("dim", "outputs"), [(2, 1), (3, 1), (3, 2)])
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


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("angle", [0.03, 0.3, 1.2])
def test_the_bound_of_a_cap_is_above_all_values_in_it(angle, outputs):
    """40 inputs in four dimensions and a zero one: 2,000 directions in the cap, up to its rim."""
    draw = np.random.default_rng(5)
    basis, duals = draw.normal(size=(4, 41)), draw.normal(size=(outputs, 41))
    basis[:, 7] = 0.0
    responses = Responses.of(basis, activations.get("relu"))
    for q in np.linalg.qr(draw.normal(size=(4, 4)))[0]:
        across = draw.normal(size=(2000, 4))
        across -= np.outer(across @ q, q)
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        turns = angle * np.minimum(1.5 * draw.uniform(size=(2000, 1)), 1.0)
        seen = responses.values(duals, np.cos(turns) * q + np.sin(turns) * across).max()
        bound = _quadratic(responses, duals, q, angle)
        assert bound >= seen * (1 - 1e-12)
        if outputs == 1:
            assert bound * (1 + 1e-12) >= _linear(responses, duals, q, angle) >= seen * (1 - 1e-12)


@pytest.mark.parametrize("outputs", [1, 2])
def test_branch_and_bound_closes_in_four_dimensions(outputs):
    """Fifty inputs in space with a bias. If norms of kinks are added up, tens of per cent stay open."""
    draw = np.random.default_rng(0)
    basis = np.vstack([draw.normal(size=(3, 50)), np.ones(50)])
    responses, duals = Responses.of(basis, activations.get("relu")), draw.normal(size=(outputs, 50))
    found, _ = search(responses, duals)
    upper, caps = branch_and_bound(responses, duals, found, tolerance=1e-2, most=10_000)
    assert found <= upper <= 1.01 * found
    assert caps < 10_000


@pytest.mark.parametrize("count", [6, 14])
def test_the_largest_response_is_bounded_and_reached(count):
    draw = np.random.default_rng(count)
    basis, duals = draw.normal(size=(3, count)), draw.normal(size=(2, count))
    relu = activations.get("relu")
    found = largest_response(basis, relu, duals, enough=np.inf, tolerance=1e-3)
    z = np.maximum(found.direction @ basis, 0.0)
    assert np.linalg.norm(found.direction) == pytest.approx(1)
    assert float(np.sum((duals @ z) ** 2)) == pytest.approx(found.value)
    assert found.value <= found.upper <= found.value * 1.01


def test_sign_vectors_from_rays_are_as_good_as_all():
    """Eight inputs in three dimensions, two of them parallel and one zero: all 3^8 patterns, and those at rays."""
    draw = np.random.default_rng(3)
    basis, duals = draw.normal(size=(3, 8)), draw.normal(size=(2, 8))
    basis[:, 1], basis[:, 2] = -2 * basis[:, 0], 0.0
    oracle, none = ConeOracle(basis, activations.get("relu")), np.zeros((8, 8))
    exact = oracle.maximise(none, duals.T @ duals)
    oracle._faces = list(oracle._faces_at_rays())
    found = oracle.maximise(none, duals.T @ duals)
    assert found.value == pytest.approx(exact.value, rel=1e-12)
    assert found.upper == pytest.approx(exact.upper, rel=1e-12)


def test_many_parallel_inputs_are_one_line():
    found = largest_response(np.ones((2, 30)), activations.get("relu"), np.ones((1, 30)), enough=1e9, tolerance=1e-6)
    assert found.value == pytest.approx(30**2 * 2)  # w = (1, 1)/√2 sees √2 thirty times
    assert found.upper == pytest.approx(found.value)
