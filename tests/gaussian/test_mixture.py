"""Pairs of logistic neurons as sums of closed forms: the logistic function, references, quadrature, and losses."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, ndtr

import understudy as us
from understudy import activations, gaussian
from understudy.gaussian import Covariance, mixture

FILE = Path(__file__).parents[1] / "references" / "interactions.json"
CASES = {(case["activation"], case["activation2"]): case["points"] for case in json.loads(FILE.read_text())["cases"]}
partials = jax.jit(mixture.mixture_partials, static_argnums=(0, 1))


def test_the_logistic_function_is_a_mixture_of_normal_distributions():
    s, weights = mixture.scales()
    x = np.linspace(-60, 60, 2401)
    np.testing.assert_allclose(ndtr(x[:, None] / s) @ weights, expit(x), atol=1e-15)
    assert np.all(weights > 0)


@pytest.mark.parametrize("pair", [("tanh", "tanh"), ("sigmoid", "sigmoid"), ("tanh:5", "tanh:5")])
def test_references(pair):
    """30 digits at norms up to 30: within 1e-12 of the summands' size up to norm 10, and 1e-11 beyond."""
    points = CASES[pair]
    r1, r2, u = (jnp.asarray([float(point[key]) for point in points]) for key in ("r1", "r2", "u"))
    found = partials(*map(activations.get, pair), Covariance.from_correlation(r1, r2, u))
    size = gaussian.partials(pair[0], r1, r2, u, pair[1]).size
    allowed = np.where(np.maximum(r1, r2) <= 10, 1e-12, 1e-11)
    for name, ours, scale in zip(found._fields, found, size, strict=True):
        exact = np.array([float(point[name]) for point in points])
        assert np.all(np.abs(np.asarray(ours) - exact) <= allowed * np.asarray(scale)), name


def test_silu_against_quadrature():
    """Two routes, from nearly linear neurons to nearly ReLU neurons, parallel ones among them."""
    r1, r2 = np.array([0.01, 0.5, 1.0, 3.0, 10.0, 20.0, 20.0]), np.array([0.3, 0.5, 2.0, 3.0, 1.0, 20.0, 15.0])
    u = np.array([0.5, 1.0, -0.4, -1.0, 0.9, 0.3, 1.0])
    silu, exact = activations.get("silu"), gaussian.partials("silu", r1, r2, u)
    found = partials(silu, silu, Covariance.from_correlation(*map(jnp.asarray, (r1, r2, u))))
    for name, ours, value, error, size in zip(found._fields, found, *exact, strict=True):
        assert np.all(np.abs(np.asarray(ours - value)) <= np.asarray(error) + 1e-13 * np.asarray(size)), name


@pytest.mark.parametrize("name", ["silu", "x*sigmoid(x)", "tanh"])
def test_losses_at_all_large_norms_have_one_resolution(name):
    """So that nothing is compiled again while norms grow; the loss is the sum of interactions."""
    task = us.Population(us.Teacher([[1.0, 0.0]], [1.0], name), 1)
    students = [us.TwoLayer([[0.6 * r, 0.8 * r]], [1 / r]) for r in (4.0, 20.0, 500.0)]
    assert {task.prepared(task.flatten(student)).resolution for student in students} == {mixture.LARGEST_SCALE}
    own, cross, teacher = (
        gaussian.interaction(name, *x) for x in ((20.0, 20.0, 1.0), (20.0, 1.0, 0.6), (1.0, 1.0, 1.0))
    )
    assert float(task.loss(students[1])) == pytest.approx(float(own / 400 - cross / 10 + teacher), rel=1e-12)


def test_other_pairs_are_not_served():
    silu, tanh, softplus = map(activations.get, ("silu", "tanh", "softplus"))
    assert mixture.serves(silu, silu, 1.0)
    assert not any(mixture.serves(*pair) for pair in ((silu, tanh, 1.0), (softplus, softplus, 1.0), (tanh, tanh, 1e4)))
    assert us.Population(us.Teacher([[9.0]], [1.0], "silu"), 1, bias="trained").resolution < 16
