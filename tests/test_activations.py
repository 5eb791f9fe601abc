"""Values, derivatives and stated properties of every activation."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy import activations
from understudy.activations import PiecewiseLinear, from_function, get, names

SMOOTH = ["erf", "softplus", "softplus:2", "sigmoid", "sigmoid:3", "tanh", "tanh:0.5", "tanh:5", "gelu", "silu"]
POLYNOMIAL = ["linear", "quadratic", "hermite:1", "hermite:2", "hermite:3", "hermite:4", "hermite:8"]
KINKED = ["relu", "abs"]
ALL = [*SMOOTH, *POLYNOMIAL, *KINKED]
X = np.array([-7.3, -2.1, -1.0, -0.4, -1e-3, -1e-9, 1e-9, 2e-3, 0.3, 0.9, 1.7, 3.2, 9.1])

# Written down again from the definitions, for values and for automatic differentiation.
DEFINITIONS = {
    "erf": lambda x: jax.scipy.special.erf(x / np.sqrt(2)),
    "softplus": lambda x: jnp.log1p(jnp.exp(x)),
    "softplus:2": lambda x: jnp.log1p(jnp.exp(2 * x)) / 2,
    "sigmoid": lambda x: 1 / (1 + jnp.exp(-x)),
    "sigmoid:3": lambda x: 1 / (1 + jnp.exp(-3 * x)),
    "tanh": jnp.tanh,
    "tanh:0.5": lambda x: jnp.tanh(x / 2),
    "tanh:5": lambda x: jnp.tanh(5 * x),
    "silu": jax.nn.silu,
    "gelu": lambda x: x * (1 + jax.scipy.special.erf(x / np.sqrt(2))) / 2,
    "linear": lambda x: x,
    "quadratic": lambda x: x**2,
    "hermite:1": lambda x: x,
    "hermite:2": lambda x: (x**2 - 1) / np.sqrt(2),
    "hermite:3": lambda x: (x**3 - 3 * x) / np.sqrt(6),
    "hermite:4": lambda x: (x**4 - 6 * x**2 + 3) / np.sqrt(24),
    "hermite:8": lambda x: (x**8 - 28 * x**6 + 210 * x**4 - 420 * x**2 + 105) / np.sqrt(40320),
    "relu": lambda x: jnp.maximum(x, 0),
    "abs": jnp.abs,
}


@pytest.mark.few(9)
@pytest.mark.parametrize("name", ALL)
def test_values_and_derivatives_are_those_of_the_definition(name):
    """Against automatic differentiation; a relative 1e-12 of the largest value leaves room for its cancellations."""
    function = DEFINITIONS[name]
    for ours in get(name).derivatives(jnp.asarray(X)):
        expected = jax.vmap(function)(jnp.asarray(X))
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(expected).max()))
        function = jax.grad(function)


@pytest.mark.parametrize("name", [*SMOOTH, *POLYNOMIAL])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_each_derivative_is_the_slope_of_the_one_before(name, order):
    """Taylor slope: |f(x+h) - f(x) - h f'(x)| falls like h², twice by a factor 4 ± 10 % when h is halved."""
    sigma = get(name)
    x, h = jnp.asarray([-1.23, -0.37, 0.21, 0.83]), 1e-3 / max(1.0, sigma.steepness)
    base = sigma.derivatives(x)
    remainders = [
        np.abs(sigma.derivatives(x + step)[order] - base[order] - step * base[order + 1]).max() for step in (h, h / 2)
    ]
    if remainders[0] < 1e-12 * max(1.0, float(np.abs(base[order]).max())):
        return  # a polynomial of degree ≤ order + 1: the remainder is rounding
    assert remainders[0] / remainders[1] == pytest.approx(4, rel=0.1)


def test_derivatives_keep_their_digits_at_zero_and_in_the_tails():
    """softplus''' = -p tanh(x/2) ≈ -x/8 at 0; sigmoid'(40) = e^-40 to first order."""
    assert float(get("softplus").derivatives(jnp.asarray(1e-9))[3]) == pytest.approx(-1.25e-10, rel=1e-14)
    assert float(get("sigmoid").derivatives(jnp.asarray(40.0))[1]) == pytest.approx(np.exp(-40), rel=1e-14)
    assert float(get("gelu")(-9.0)) == pytest.approx(-9 * 1.1285884059538406e-19, rel=1e-12)
    assert float(get("tanh")(1e-300)) == pytest.approx(1e-300, rel=1e-14)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", ALL)
def test_parity_and_homogeneity_are_as_stated(name):
    sigma = get(name)
    plus, minus = sigma(X), sigma(-X)
    odd, even = np.allclose(minus, -plus, rtol=1e-13, atol=0), np.allclose(minus, plus, rtol=1e-13, atol=0)
    assert (sigma.parity == "odd") == odd
    assert (sigma.parity == "even") == even
    homogeneous = [p for p in range(1, 4) if np.allclose(sigma(2.5 * X), 2.5**p * plus, rtol=1e-13, atol=0)]
    assert homogeneous == ([] if sigma.homogeneity is None else [sigma.homogeneity])
    assert (sigma.smoothness == 0) == (name in KINKED)


def test_the_kink_gets_the_mean_of_both_sides():
    assert [float(d) for d in get("relu").derivatives(jnp.asarray(0.0))] == [0.0, 0.5, 0.0, 0.0, 0.0]


def test_a_piecewise_linear_activation_knows_what_follows_from_its_numbers():
    leaky = PiecewiseLinear("leaky", slope=0.55, kink=0.45)
    np.testing.assert_allclose(leaky(np.array([-2.0, 3.0])), [-0.2, 3.0], rtol=1e-15)
    assert (leaky.smoothness, leaky.parity, leaky.homogeneity) == (0, None, 1)


def test_names_read_back():
    assert get("tanh:1") == get("tanh")
    assert get("softplus:2.0") == get("softplus:2")
    assert hash(get("softplus:2.0")) == hash(get("softplus:2"))
    assert get("softplus:2") != get("softplus:3")
    for name in [*ALL, "tanh:0.123456789012"]:
        assert get(name).name == name
        assert get(get(name)) is get(name)


@pytest.mark.parametrize("name", ALL)
def test_named_activations_survive_pickling(name):
    """Sweeps send tasks to other processes, and compiled code is found again by equality."""
    assert pickle.loads(pickle.dumps(get(name))) == get(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "rleu",
            r"Unknown activation 'rleu'. Available: erf, relu, abs, linear, quadratic, gelu, silu, softplus\[:β\]",
        ),
        ("", "Unknown activation ''"),
        ("erf:2", "'erf' takes no parameter; received 'erf:2'"),
        ("softplus:-1", "'softplus' is a positive number; received '-1'"),
        ("tanh:steep", "'tanh' is a positive number; received 'steep'"),
        ("sigmoid:inf", "'sigmoid' is a positive number; received 'inf'"),
        ("tanh:0", "'tanh' is a positive number; received '0'"),
        ("hermite", "'hermite' needs a degree, as in 'hermite:4'"),
        ("hermite:2.5", "integer from 1 to 60; received 2.5"),
        ("hermite:61", "integer from 1 to 60; received 61"),
    ],
)
def test_bad_names_are_told_what_exists(name, message):
    with pytest.raises(ValueError, match=message):
        get(name)


def test_every_name_listed_exists():
    for name in names():
        assert get(name.replace("[:β]", "").replace(":ρ", ":4"))


def test_a_bare_function_is_told_how_to_be_wrapped():
    unchecked = getattr(activations.get, "__wrapped__", activations.get)
    with pytest.raises(TypeError, match=r"is a name or an Activation.*from_function"):
        unchecked(np.tanh)


def test_from_function_differentiates():
    sine = from_function(jnp.sin, "sin", parity="odd", growth=0)
    x = np.array([[-0.4, 0.0], [1.0, 2.5]])
    expected = [np.sin(x), np.cos(x), -np.sin(x), -np.cos(x), np.sin(x)]
    for ours, exact in zip(sine.derivatives(jnp.asarray(x)), expected, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-14, atol=1e-15)
    assert len(sine.derivatives(jnp.asarray(x), 2)) == 3


@pytest.mark.parametrize("name", ["relu", "abs", "linear", "erf"])
def test_numpy_arrays_are_activated_alike(name):
    found = activations.activate(name, X)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, np.asarray(get(name)(X)))
