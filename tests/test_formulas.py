"""Activations from formulas and from modules: values, what is refused, and that names in files run no code."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy import activations
from understudy.formulas import examine, parse_formula

X = np.linspace(-3, 3, 13)


@pytest.mark.parametrize(
    ("text", "function", "parity", "growth"),
    [
        ("x*sigmoid(x)", jax.nn.silu, None, 1),
        ("tanh(8*x)", lambda x: jnp.tanh(8 * x), "odd", 0),
        ("exp(-x**2/2)", lambda x: jnp.exp(-(x**2) / 2), "even", 0),
        ("x**3/6 - 2*x", lambda x: x**3 / 6 - 2 * x, "odd", 3),
        ("-softplus(-x) + 1e-1*erf(x/pi)", lambda x: -jax.nn.softplus(-x) + 0.1 * jax.lax.erf(x / jnp.pi), None, 1),
    ],
)
def test_a_formula_is_its_function(text, function, parity, growth):
    found = activations.get(text)
    np.testing.assert_allclose(found(X), function(jnp.asarray(X)), rtol=1e-14, atol=1e-15)
    slope = jax.jit(jax.vmap(jax.grad(function)))(jnp.asarray(X))
    np.testing.assert_allclose(jax.jit(found.derivatives)(jnp.asarray(X))[1], slope, rtol=1e-12, atol=1e-13)
    assert (found.parity, found.growth) == (parity, growth)
    assert activations.get(found.name) is found  # spaces do not matter


def test_steepness_follows_the_nearest_singularity():
    """tanh(βx) has its poles at distance π/2β, the branch points of √(1 + β²x²) lie at 1/β."""
    for text in ("tanh({}*x)", "sqrt(1 + ({}*x)**2)"):
        one, four = (examine(parse_formula(text.format(beta))).steepness for beta in (2, 8))
        assert 2.5 * one <= four <= 6 * one
    assert 1 <= examine(parse_formula("tanh(x)")).steepness <= 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os').system('true')", "numbers, x"),
        ("x.real", "numbers, x"),
        ("open(x)", "no function 'open'"),
        ("(lambda: x)()", "numbers, x"),
        ("[x][0]", "numbers, x"),
        ("x if x else 1", "numbers, x"),
        ("'x'*9", "numbers, x"),
        ("True*x", "numbers, x"),
        ("y*2", "received 'y'"),
        ("sin(x, x)", "sin takes one argument"),
        ("abs(x)*x", "Use 'relu' or 'abs' by name"),
        ("2*pi", "does not contain x"),
        ("sin(x", "not a formula"),
        ("x" + "+x" * 300, "at most 400 characters"),
        ("exp(x)", "grows faster"),
        ("log(x)", "not a finite number at x = -12"),
        ("9**9**9*x", "not a finite number"),
        ("sqrt(x**2)", "does not exist at x = 0"),
        ("swish", "Unknown activation 'swish'"),
    ],
)
def test_other_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        activations.get(text)


def test_functions_of_modules_are_loaded_by_name_only_when_asked(tmp_path, monkeypatch):
    (tmp_path / "mine_here.py").write_text(
        "import jax, pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"
        "def swish(x):\n    return x * jax.nn.sigmoid(x)\nswish.growth = 1\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match="has not been loaded"):
        activations.get("mine_here:swish")
    with pytest.raises(ValueError, match="has not been loaded"):
        us.Teacher([[1.0]], [1.0], "mine_here:swish#00000000")
    assert not (tmp_path / "ran").exists()
    found = activations.load("mine_here:swish")
    assert activations.get(found.name) is found
    np.testing.assert_allclose(found(X), jax.nn.silu(jnp.asarray(X)), rtol=1e-15)
    with pytest.raises(ValueError, match="has changed"):
        activations.load("mine_here:swish#00000000")
    sys.modules.pop("mine_here")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere_at_all:f", "cannot be imported"),
        ("jax.numpy:nothing", "no function 'nothing'"),
        ("numpy:sin", "jax.numpy"),
    ],
)
def test_functions_that_cannot_be_loaded_are_named(name, message):
    with pytest.raises(ValueError, match=message):
        activations.load(name)


def test_activations_with_parameters_are_not_modules():
    assert not activations.is_module_function("softplus:2")
    assert not activations.is_module_function("hermite:x")
    assert activations.is_module_function("a.b:c")


@pytest.mark.thorough
def test_a_population_loss_with_a_formula_is_that_of_the_function():
    point = us.TwoLayer([[0.5, 1.0], [-1.0, 0.3]], [1.0, -0.5])
    one, two = (
        us.Population(us.Teacher(np.eye(2), [1.0, 1.0], sigma), 2)
        for sigma in ("x*sigmoid(x)", activations.from_function(jax.nn.silu, "silu"))
    )
    assert float(one.loss(point)) == pytest.approx(float(two.loss(point)), rel=1e-11)
