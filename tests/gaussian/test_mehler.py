"""Mehler's series: mirror images of activations, 30-digit references with biases, and each neuron with itself."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from understudy import activations, gaussian
from understudy.activations import Polynomial
from understudy.gaussian import BiasedPartials, biased_self_partials, mehler, single_expectations
from understudy.gaussian.partials import BIASED_TERMS

FILE = Path(__file__).parents[1] / "references" / "biased_interactions.json"
CASES = {(case["activation"], case["activation2"]): case["points"] for case in json.loads(FILE.read_text())["cases"]}
SERIES = [pair for pair in CASES if mehler.serves(*map(activations.get, pair), 1.0, biased=True)]
NAMES = ["erf", "softplus:2", "sigmoid", "tanh:0.5", "gelu", "abs", "quadratic", "hermite:3", "x*sigmoid(x)"]


@pytest.mark.parametrize("name", NAMES)
def test_mirror_images(name):
    """Derivatives at -x follow from those at x, to rounding."""
    sigma, x = activations.get(name), jnp.linspace(0.1, 6.0, 40)
    found = mehler.mirrored(sigma.mirror, x, sigma.derivatives(x))
    for ours, exact in zip(found, sigma.derivatives(-x), strict=True):
        assert np.max(np.abs(np.asarray(ours - exact))) <= 4e-15 * (1 + float(np.max(np.abs(exact))))


def test_some_pairs_have_series():
    assert {("tanh", "tanh"), ("softplus", "softplus"), ("gelu", "gelu"), ("sigmoid", "sigmoid")} <= set(SERIES)


@pytest.mark.parametrize("pair", SERIES, ids="-".join)
def test_references_with_biases(pair):
    """Within 1e-12 of the largest derivative; the series is made for norms up to 1.6 and does not depend on biases."""
    first, second = map(activations.get, pair)
    points = [p for p in CASES[pair] if max(float(p["r1"]), float(p["r2"])) <= 1.6]
    points = [p for p in points if max(abs(float(p["b1"])), abs(float(p["b2"]))) <= 3]
    assert len(points) >= 8
    r1, r2, u, b1, b2 = (jnp.asarray([float(p[key]) for p in points]) for key in ("r1", "r2", "u", "b1", "b2"))
    scale = 1.6 * max(first.steepness, second.steepness)
    series = [mehler.coefficients(s, r, scale, b) for s, r, b in ((first, r1, b1), (second, r2, b2))]
    found = mehler.biased_partials(*series, jnp.broadcast_to(u[:, None], (len(u), len(u))))
    grows = any(isinstance(s, Polynomial) for s in (first, second))
    for name, (factor, i, j) in zip(BiasedPartials._fields, BIASED_TERMS, strict=True):
        exact = np.array([factor * float(p[f"{i}{j}"]) for p in points])
        gap = np.abs(np.diagonal(np.asarray(getattr(found, name))) - exact)
        assert np.all(gap <= (1e-11 if grows else 1e-12) * np.maximum(1.0, np.abs(exact))), name


@pytest.mark.parametrize("name", ["softplus", "sigmoid", "tanh", "gelu", "x*sigmoid(x)"])
def test_a_neuron_with_itself(name):
    """The sums on the nodes of the series against the line made for single neurons, within the error that this states."""
    sigma, norms, biases = activations.get(name), jnp.array([0.0, 0.3, 1.4]), jnp.array([0.4, -0.7, 1.1])
    for means in (None, biases):
        series = mehler.coefficients(sigma, norms, 1.5 * sigma.steepness, means)
        means = jnp.zeros(3) if means is None else means
        own, single = (f(sigma, norms**2, means, 257) for f in (biased_self_partials, single_expectations))
        for ours, exact in zip([*series.own, *series.single], [*own, *single], strict=True):
            assert np.allclose(ours, exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["tanh", "softplus"])
def test_the_largest_scale(name):
    """Nearly as steep as the series goes, also for parallel and opposite neurons: within 1e-12 of the summands."""
    sigma, u = activations.get(name), np.array([1.0, -1.0, 0.999, 0.5, -0.3])
    norm = 0.9 * mehler.LARGEST_SCALE / sigma.steepness
    exact = gaussian.partials(name, norm, norm, u, name)
    squares = jnp.array([norm**2]), jnp.asarray(norm**2 * u)[None], jnp.full(5, norm**2)
    found = mehler.pair_partials(sigma, sigma, mehler.LARGEST_SCALE, *squares)
    for ours, best, size in zip(found, exact.partials, exact.size, strict=True):
        assert np.all(np.abs(np.asarray(ours)[0] - np.asarray(best)) <= 1e-12 * np.asarray(size))
