"""Interactions against 30-digit references, the derivative rule, symmetries, degenerate points and bad input."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp, mpf

from cases import thorough_but
from understudy import activations, gaussian
from understudy.activations import PiecewiseLinear, from_function
from understudy.gaussian import Covariance, Partials, has_closed_form, mehler, pair_partials, self_partials
from understudy.gaussian.quadrature import nodes_needed

FILE = Path(__file__).parents[1] / "references" / "interactions.json"
CASES = {(case["activation"], case["activation2"]): case["points"] for case in json.loads(FILE.read_text())["cases"]}
SUMS = ("quadratic", "hermite", "gelu")
NAMES = ["erf", "relu", "abs", "linear", "quadratic", "hermite:3", "hermite:4", "softplus", "sigmoid", "tanh", "gelu"]


def compare(points, ours, name):
    """Distance from the reference, size of the reference, and where the reference says that nothing exists."""
    missing = np.array([point[name] is None for point in points])
    with mp.workdps(40):
        exact = [mpf("nan") if point[name] is None else mpf(point[name]) for point in points]
        distance = np.array([float(abs(mpf(float(x)) - e)) for x, e in zip(ours, exact, strict=True)])
    return distance, np.abs(np.array([float(e) for e in exact])), missing


CLOSED = [pair for pair in CASES if has_closed_form(*map(activations.get, pair))]


@pytest.mark.parametrize(("first", "second"), thorough_but(CASES, [*CLOSED, ("tanh", "tanh"), ("erf", "relu")]))
def test_references(first, second):
    """Every entry at every point.

    Closed forms: 1e-13 relative. Polynomials and gelu are sums with cancelling terms, whose rounding is relative to the
    sum of absolute values, `size`. Quadrature: never further off than it says, and relative to `size` within 1e-12 up
    to norm 10, 1e-8 up to 30 (where a value is a small difference of large summands, no rule in float64 can do better).
    """
    pair = (first, second)
    points = CASES[pair]
    assert len(points) >= 40
    r1, r2, u = (np.array([float(point[key]) for point in points]) for key in ("r1", "r2", "u"))
    result = gaussian.partials(pair[0], r1, r2, u, pair[1])
    closed = has_closed_form(*map(activations.get, pair))
    cancelling = closed and pair[0].startswith(SUMS)
    for name in Partials._fields:
        ours, error, size = (np.asarray(getattr(part, name)) for part in result)
        distance, exact, missing = compare(points, ours, name)
        np.testing.assert_array_equal(np.isnan(ours), missing, err_msg=name)
        there = ~missing
        assert np.all(distance[there] <= error[there]), name
        assert np.all(np.isfinite(error[there])), name
        if closed:
            scale = size if cancelling else exact
            assert np.all(distance[there] <= 1e-13 * scale[there]), name
        if name == "value":
            norm = np.maximum(r1, r2)
            assert np.all(distance <= np.where(norm <= 10, 1e-12, 1e-8) * size)
            assert np.all(error <= np.where(norm <= 10, 1e-12, 1e-8) * size)
            assert np.all(size[there] >= exact[there] * (1 - 1e-12))
    if not closed:
        check_rule_of_tasks(*map(activations.get, pair), points, result.size)
        check_series_of_tasks(*map(activations.get, pair), points, result.size)


def check_rule_of_tasks(first, second, points, size):
    """Losses use the rule with half the nodes and no estimate: within 1e-12 of the size."""
    near = np.array([max(float(p["r1"]), float(p["r2"])) <= 3 for p in points])
    points = [p for p, there in zip(points, near, strict=True) if there]
    r1, r2, u = (jnp.asarray([float(p[key]) for p in points]) for key in ("r1", "r2", "u"))
    scale = 3 * max(first.steepness, second.steepness)
    covariance = Covariance.from_correlation(r1, r2, u)
    found = jax.jit(pair_partials, static_argnums=(0, 1, 3))(first, second, covariance, nodes_needed(scale))
    check_within(1e-12, points, found, [np.asarray(x)[near] for x in size])


def check_series_of_tasks(first, second, points, size):
    """Mehler's series is made for the largest scale it will see, here 1 (with points at u = ±1) and 3."""
    for norm in (1, 3):
        scale = norm * max(first.steepness, second.steepness)
        if scale > mehler.LARGEST_SCALE or any(isinstance(s, PiecewiseLinear) for s in (first, second)):
            continue
        near = np.array([max(float(p["r1"]), float(p["r2"])) <= norm for p in points])
        chosen = [p for p, there in zip(points, near, strict=True) if there]
        r1, r2, u = (jnp.asarray([float(p[key]) for p in chosen]) for key in ("r1", "r2", "u"))
        series = [mehler.coefficients(s, r, scale) for s, r in ((first, r1), (second, r2))]
        every_pair = mehler.partials(*series, jnp.broadcast_to(u[:, None], (len(chosen), len(chosen))))
        check_within(1e-12, chosen, jax.tree.map(jnp.diagonal, every_pair), [np.asarray(x)[near] for x in size])


def check_within(tolerance, points, found, size):
    for name, ours, scale in zip(Partials._fields, found, size, strict=True):
        distance, _, missing = compare(points, np.asarray(ours), name)
        assert np.all(distance[~missing] <= tolerance * scale[~missing]), name


PAIRS = [(a, b) for i, a in enumerate(NAMES) for b in NAMES[i:]]


MIXED = [("erf", "relu"), ("abs", "sigmoid"), ("hermite:3", "tanh")]


@pytest.mark.few(4)
@pytest.mark.parametrize(("first", "second"), thorough_but(PAIRS, [*zip(NAMES, NAMES, strict=True), *MIXED]))
def test_the_derivative_rule_holds_for_every_pair(first, second):
    """Lemma F.1: ∂g/∂u = r1 r2 E[σ1'σ2'], and likewise for every partial, by differences in (q11, q12, q22).

    Those of fourth order have a truncation error of h⁴ times fifth derivatives and a rounding error of eps/h: 1e-8
    covers both for h = 1e-3 at moderate norms.
    """
    s1, s2 = activations.get(first), activations.get(second)
    rng = np.random.default_rng(abs(hash_of(first + second)))
    r1, r2, u = rng.uniform(0.7, 1.6, 3), rng.uniform(0.7, 1.6, 3), rng.uniform(-0.8, 0.8, 3)
    base = np.stack([r1**2, r1 * r2 * u, r2**2])
    h = 1e-3
    offsets = np.array([-2, -1, 1, 2]) * h
    stencil = np.array([1, -8, 8, -1]) / (12 * h)
    shifted = base[:, None, None, :] + np.eye(3)[:, :, None, None] * offsets[None, None, :, None]
    q11, q12, q22 = (jnp.asarray(np.concatenate([s.ravel(), b])) for s, b in zip(shifted, base, strict=True))
    p = pair_partials(s1, s2, Covariance(q11, q12, q22, q11 * q22 - q12**2), nodes_needed(4.0))
    at = {name: np.asarray(x)[-3:] for name, x in zip(Partials._fields, p, strict=True)}
    slopes = {
        name: np.einsum("s,dsp->dp", stencil, np.asarray(x)[:-3].reshape(3, 4, 3))
        for name, x in zip(Partials._fields, p, strict=True)
    }
    expected = {
        "value": ("q11", "q12", "q22"),
        "q11": ("q11q11", "q11q12", None),
        "q12": ("q11q12", "q12q12", "q12q22"),
        "q22": (None, "q12q22", "q22q22"),
    }
    scale = 1 + max(np.abs(x).max() for x in at.values())
    for name, entries in expected.items():
        for direction, entry in enumerate(entries):
            exact = at["q12q12"] / 4 if entry is None else at[entry]
            np.testing.assert_allclose(slopes[name][direction], exact, rtol=0, atol=1e-8 * scale, err_msg=name)


def hash_of(text):
    """A seed that does not change from one process to the next."""
    return int.from_bytes(text.encode(), "little") % 2**32


@pytest.mark.thorough
@pytest.mark.parametrize(("first", "second"), [("relu", "abs"), ("tanh", "softplus")])
def test_neurons_can_be_exchanged(first, second):
    r1, r2, u = np.array([0.3, 1.0, 2.0, 1.5]), np.array([1.2, 1.0, 0.5, 0.7]), np.array([-0.4, 1.0, 0.8, -1.0])
    one, other = gaussian.partials(first, r1, r2, u, second), gaussian.partials(second, r2, r1, u, first).swapped()
    for name in Partials._fields:
        a, b, error = getattr(one.partials, name), getattr(other.partials, name), getattr(one.error, name)
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        assert np.all(np.isnan(a) | (np.abs(a - b) <= error + getattr(other.error, name))), name


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["erf", "relu", "abs", "quadratic", "hermite:4", "softplus", "tanh:5", "gelu"])
def test_a_neuron_with_itself(name):
    """D(q) = G(q, q, q), D' = G11 + G12 + G22, D'' = second derivative along (1, 1, 1)."""
    sigma = activations.get(name)
    r = np.array([0.2, 0.7, 1.0, 2.5])
    own = self_partials(sigma, jnp.asarray(r**2), nodes_needed(2.5 * sigma.steepness))
    c = Covariance.from_correlation(*map(jnp.asarray, (r, r, np.ones(4))))
    g = jax.jit(pair_partials, static_argnums=(0, 1, 3))(sigma, sigma, c, nodes_needed(2.5 * sigma.steepness))
    np.testing.assert_allclose(own.value, g.value, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(own.q, g.q11 + g.q12 + g.q22, rtol=1e-11, atol=1e-12)
    if sigma.smoothness > 0:
        second = g.q11q11 + g.q22q22 + 2 * (g.q11q12 + g.q12q22) + 1.5 * g.q12q12
        np.testing.assert_allclose(own.qq, second, rtol=1e-10, atol=1e-11)


def test_degenerate_values_by_hand():
    assert float(gaussian.interaction("relu", 2.0, 3.0, 1.0)) == 3.0
    assert float(gaussian.interaction("relu", 2.0, 3.0, -1.0)) == 0.0
    assert float(gaussian.interaction("relu", 0.0, 3.0, 0.3)) == 0.0
    assert float(gaussian.interaction("abs", 1.0, 1.0, -1.0)) == 1.0
    assert float(gaussian.interaction("erf", 0.0, 3.0, 0.3)) == 0.0
    assert float(gaussian.interaction("erf", 1.0, 1.0, 1.0)) == pytest.approx(1 / 3, rel=1e-15)
    assert float(gaussian.interaction("softplus", 0.0, 0.0, 0.0)) == pytest.approx(np.log(2) ** 2, rel=1e-14)
    assert float(gaussian.interaction("relu", 1.0, 1.0, 0.0, "linear")) == 0.0
    # Near u = -1 the kernel vanishes like φ³/(3·2π), φ the supplementary angle; 1 - u² is known to full precision.
    u = -1 + 1e-10
    phi = np.arctan2(np.sqrt((1 - u) * (1 + u)), -u)
    assert float(gaussian.interaction("relu", 1.0, 1.0, u)) == pytest.approx(phi**3 / (6 * np.pi), rel=1e-9)


def test_a_slope_of_abs_at_a_tiny_correlation_keeps_its_digits():
    """E[sign x sign y] = (2/π) asin u."""
    slope = gaussian.partials("abs", 1.0, 2.0, 1e-12).partials.q12
    assert float(slope) == pytest.approx(2 / np.pi * 1e-12, rel=1e-14)


def test_a_leaky_rectifier_is_a_mixture():
    """G is bilinear in the activations, and leaky(x) = 0.45 |x| + 0.55 x with odd-even cross terms zero."""
    leaky = PiecewiseLinear("leaky", slope=0.55, kink=0.45)
    r1, r2, u = np.array([1.0, 0.3]), np.array([2.0, 0.3]), np.array([0.4, -0.9])
    expected = 0.45**2 * gaussian.interaction("abs", r1, r2, u) + 0.55**2 * r1 * r2 * u
    np.testing.assert_allclose(gaussian.interaction(leaky, r1, r2, u), expected, rtol=1e-14)


def sine_expectation(r1, r2, u):
    """exp(-(q11+q22)/2) sinh(q12), without overflow."""
    with mp.workdps(40):
        return np.array(
            [
                float(mp.exp(-(mpf(a) ** 2 + mpf(b) ** 2) / 2) * mp.sinh(mpf(a) * mpf(b) * mpf(c)))
                for a, b, c in zip(r1, r2, u, strict=True)
            ]
        )


def test_a_function_of_the_user_and_its_error():
    """sin has the closed form e^(-(q11+q22)/2) sinh q12, and q12-derivative with cosh."""
    sine = from_function(jnp.sin, "sin", parity="odd", growth=0)
    r1, r2 = np.array([0.001, 0.5, 1.0, 3.0, 3.0, 10.0]), np.array([0.001, 2.0, 1.0, 3.0, 2.0, 3.0])
    u = np.array([-1.0, 0.3, 1.0, -0.3, 0.9, -0.99])
    result = gaussian.partials(sine, r1, r2, u)
    distance = np.abs(np.asarray(result.partials.value) - sine_expectation(r1, r2, u))
    assert np.all(distance <= np.asarray(result.error.value))
    assert np.all(np.asarray(result.error.value) <= 1e-12 * np.asarray(result.size.value))
    slope = np.exp(-(r1**2 + r2**2) / 2) * np.cosh(r1 * r2 * u)
    assert np.all(np.abs(np.asarray(result.partials.q12) - slope) <= np.asarray(result.error.q12) + 1e-15)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("function", "expectation"),
    [
        (lambda x: jnp.sin(8 * x), lambda r1, r2, u: sine_expectation(8 * r1, 8 * r2, u)),
        (jnp.exp, lambda r1, r2, u: np.exp((r1**2 + r2**2) / 2 + r1 * r2 * u)),
    ],
    ids=["oscillating", "growing"],
)
def test_the_error_tells_when_the_hints_were_wrong(function, expectation):
    """A steepness too small: the value may be poor, the error must say so. Wrong growth: refused, or the error says
    so."""
    r1, r2 = np.array([1.0, 3.0, 10.0, 10.0, 12.0, 20.0]), np.array([1.0, 2.0, 10.0, 3.0, 12.0, 15.0])
    u = np.array([0.5, 0.9, 1.0, -0.99, 0.5, 0.9])
    wrong = from_function(function, "wrong", growth=0)
    if function is jnp.exp:
        with pytest.raises(ValueError, match="grows faster"):
            gaussian.partials(wrong, r1, r2, u)
        r1, r2, u = r1[:2], r2[:2], u[:2]
    result = gaussian.partials(wrong, r1, r2, u)
    with np.errstate(over="ignore"):
        distance = np.abs(np.asarray(result.partials.value) - expectation(r1, r2, u))
    assert np.all(distance <= np.asarray(result.error.value))


def test_shapes_broadcast():
    r1, u = np.array([0.5, 1.0])[:, None], np.array([-0.5, 0.0, 1.0])
    for name in ("erf", "linear"):
        values = gaussian.interaction(name, r1, 2.0, u)
        assert values.shape == (2, 3)
        assert float(values[1, 2]) == pytest.approx(float(gaussian.interaction(name, 1.0, 2.0, 1.0)), rel=1e-13)
    for name in ("erf", "tanh"):
        assert gaussian.interaction(name, [], 1.0, 0.5).shape == (0,)


@pytest.mark.thorough
def test_batching_of_points_does_not_change_them():
    """More points than go through at once, and one at a time."""
    rng = np.random.default_rng(3)
    r, u = rng.uniform(0.1, 1.0, 37), rng.uniform(-1, 1, 37)
    together = np.asarray(gaussian.interaction("tanh", r, 1.0, u))
    alone = [float(gaussian.interaction("tanh", r[i], 1.0, u[i])) for i in (0, 18, 36)]
    np.testing.assert_allclose(together[[0, 18, 36]], alone, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 1.0, 1.1), r"u is a correlation and must lie in \[-1, 1\]; received 1.1"),
        ((1.0, 1.0, [0.0, -3.0]), r"must lie in \[-1, 1\]; received -3.0"),
        ((1.0, 1.0, 1 + 1e-15), "If it comes from dot products, clip it"),
        ((float("nan"), 1.0, 0.0), "r1 must be finite; received nan"),
        ((1.0, float("inf"), 0.0), "r2 must be finite; received inf"),
        ((1.0, 1.0, [0.1, float("nan")]), "u must be finite; received nan"),
        ((-0.5, 1.0, 0.0), "r1 is a norm and must not be negative; received -0.5"),
        ((1.0, [2.0, -1.0], 0.0), "r2 is a norm and must not be negative; received -1.0"),
        (
            (np.ones(2), np.ones(3), 0.0),
            r"must broadcast against each other; received shapes r1 \(2,\), r2 \(3,\), u \(\)",
        ),
    ],
)
@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_bad_input_says_what_was_wrong(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        gaussian.interaction(name, *arguments)


def test_an_unknown_second_activation_is_named():
    with pytest.raises(ValueError, match="Unknown activation 'swish'"):
        gaussian.interaction("erf", 1.0, 1.0, 0.0, "swish")
