"""What a neuron computes: value, derivatives, parity, homogeneity, smoothness.

An activation is a small immutable object, so that it can be a static argument of a compiled function. Three families
have Gaussian expectations in closed form (`Erf`, `PiecewiseLinear`, `Polynomial`); every other one is `Smooth`.

>>> get("softplus:2").steepness
1.0
>>> get("relu").homogeneity
1
"""

import hashlib
import importlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy.formulas import FUNCTIONS, Formula, examine, parse_formula

Parity = Literal["odd", "even"] | None
Derivatives = tuple[Float[Array, "*shape"], ...]

INFINITELY_SMOOTH = math.inf


class Mirror(NamedTuple):
    """σ(-x) = sign·σ(x) + slope·x + constant, sign ±1: derivatives from the second on are odd or even."""

    sign: float
    slope: float = 0.0
    constant: float = 0.0


class Mixture(NamedTuple):
    """σ(x) = constant + height·f(slope·x), f(x) = tanh(x/2), or x/(1 + e^-x) for a `gate`; see `gaussian.mixture`."""

    gate: bool
    slope: float = 1.0
    height: float = 1.0
    constant: float = 0.0


HIGHEST_ORDER = 4
"""Derivatives are given up to this order: the Hessian of a population loss needs four."""


@dataclass(frozen=True)
class Activation:
    """A scalar function σ applied by every neuron of a layer.

    **Attributes**

    - `name`: the name that a user types, such as `"tanh:0.5"`.
    - `parity`: `"odd"` (σ(-x) = -σ(x)), `"even"` (σ(-x) = σ(x)) or `None`.
    - `homogeneity`: the p for which σ(c x) = c^p σ(x) for every c > 0, or `None`.
    - `smoothness`: how many continuous derivatives σ has (0 for ReLU, infinite for erf).
    - `steepness`: 1 / (distance from the real line at which σ stops being analytic, in units where tanh(x) has
      π/2): the scale on which quadrature has to resolve σ.
    - `growth`: the degree of the polynomial that bounds σ at infinity.
    """

    name: str
    parity: Parity = None
    homogeneity: int | None = None
    smoothness: float = INFINITELY_SMOOTH
    steepness: float = 1.0
    growth: int = 0

    @property
    def mirror(self) -> Mirror | None:
        """What σ(-x) is in terms of σ(x), or None; with a parity and for activations such as softplus."""
        return {"odd": Mirror(-1.0), "even": Mirror(1.0)}.get(self.parity or "")

    def derivatives(self, x: Float[Array, "*shape"], order: int = HIGHEST_ORDER) -> Derivatives:
        """(σ(x), σ'(x), …) up to `order` ≤ 4."""
        raise NotImplementedError

    def __call__(self, x: ArrayLike) -> Float[Array, "..."]:
        return self.derivatives(jnp.asarray(x, float), 0)[0]


@dataclass(frozen=True)
class Erf(Activation):
    """σ(x) = erf(x/√2), the distribution function of N(0, 1) stretched to (-1, 1)."""

    name: str = "erf"
    parity: Parity = "odd"

    def derivatives(self, x: Float[Array, "*shape"], order: int = HIGHEST_ORDER) -> Derivatives:
        """σ' = √(2/π) exp(-x²/2); each further one multiplies by a Hermite polynomial."""
        first = math.sqrt(2 / math.pi) * jnp.exp(-(x**2) / 2)
        values = (
            jax.lax.erf(x / math.sqrt(2)),
            first,
            -x * first,
            (x**2 - 1) * first,
            (3 * x - x**3) * first,
        )
        return values[: order + 1]


@dataclass(frozen=True)
class PiecewiseLinear(Activation):
    """σ(x) = slope·x + kink·|x|: ReLU is (½, ½), the absolute value (0, 1), the identity (1, 0).

    Parity and smoothness follow from the two numbers.
    """

    slope: float = 0.0
    kink: float = 0.0
    homogeneity: int | None = 1
    growth: int = 1

    def __post_init__(self) -> None:
        parity = "odd" if self.kink == 0 else "even" if self.slope == 0 else None
        object.__setattr__(self, "parity", parity)
        object.__setattr__(self, "smoothness", 0.0 if self.kink else INFINITELY_SMOOTH)

    def derivatives(self, x: Float[Array, "*shape"], order: int = HIGHEST_ORDER) -> Derivatives:
        """Derivatives where they exist; at x = 0 a kinked σ gets the mean of both sides, and 0 from order 2 on."""
        zero = jnp.zeros_like(x)
        first = self.slope + self.kink * jnp.sign(x)
        return (self.slope * x + self.kink * jnp.abs(x), first, zero, zero, zero)[: order + 1]


@dataclass(frozen=True)
class Polynomial(Activation):
    """σ = Σ_m coefficients[m] He_m, He_m the Hermite polynomials orthogonal under N(0, variance).

    A variance of 1 gives the probabilists' Hermite polynomials, 0 the powers of x. Each activation is written in the
    family in which it is a single term, so that nothing cancels.
    """

    coefficients: tuple[float, ...] = ()
    variance: float = 1.0

    def derivatives(self, x: Float[Array, "*shape"], order: int = HIGHEST_ORDER) -> Derivatives:
        """He_m' = m He_{m-1}; values by the three-term recurrence He_{m+1} = x He_m - m variance He_{m-1}."""
        basis = [jnp.ones_like(x), x]
        for m in range(1, len(self.coefficients) - 1):
            basis.append(x * basis[m] - m * self.variance * basis[m - 1])
        values = []
        coefficients = list(self.coefficients)
        for _ in range(order + 1):
            terms = [c * basis[m] for m, c in enumerate(coefficients) if c != 0]
            values.append(sum(terms, start=jnp.zeros_like(x)))
            coefficients = [m * c for m, c in enumerate(coefficients)][1:]
        return tuple(values)


@dataclass(frozen=True)
class Smooth(Activation):
    """Any smooth function, with `formula(x)` giving the value and four derivatives.

    `own` marks a user's function: quadrature checks whether it resolves this function. `reflection` is a `mirror` of a
    function without parity, `mixture` what it has in common with the logistic function.
    """

    formula: Callable[[Array], Derivatives] = field(kw_only=True)
    own: bool = field(default=False, kw_only=True)
    reflection: Mirror | None = field(default=None, kw_only=True)
    mixture: Mixture | None = field(default=None, kw_only=True)

    @property
    def mirror(self) -> Mirror | None:
        return super().mirror if self.reflection is None else self.reflection

    def derivatives(self, x: Float[Array, "*shape"], order: int = HIGHEST_ORDER) -> Derivatives:
        """The result of `formula` up to `order`."""
        return self.formula(x)[: order + 1]


@dataclass(frozen=True)
class Gelu(Smooth):
    """xΦ(x), whose Gaussian expectations without biases have a closed form (see `gaussian.gelu`)."""


def from_function(
    function: Callable[[Array], Array],
    name: str = "custom",
    *,
    parity: Parity = None,
    steepness: float = 1.0,
    growth: int = 1,
) -> Smooth:
    """An activation from any smooth elementwise JAX function; its derivatives come from automatic differentiation.

    `steepness` and `growth` tell the quadrature what to resolve (see `Activation`). Interactions and population losses
    compare their quadrature with a finer one, and raise if it does not resolve the function or if the function is not
    smooth. `parity` is used as a symmetry of the network, so state it only where it holds exactly.

    >>> import jax.numpy as jnp
    >>> from_function(jnp.sin, "sin", parity="odd")(0.5)
    Array(0.47942554, dtype=float64)
    """

    def formula(x: Array) -> Derivatives:
        functions = [function]
        for _ in range(HIGHEST_ORDER):
            functions.append(_derivative(functions[-1]))
        return tuple(f(x) for f in functions)

    _check_traceable(function, name)
    return Smooth(name, parity=parity, steepness=steepness, growth=growth, formula=formula, own=True)


def _check_traceable(function: Callable[[Array], Array], name: str) -> None:
    """Raise here if a function cannot be traced, rather than later inside a loss."""
    try:
        found = jax.eval_shape(function, jax.ShapeDtypeStruct((3,), float))
    except Exception as error:
        raise ValueError(
            f"The activation {name!r} cannot be traced by JAX: write it with jax.numpy instead of numpy or math, for "
            "example jnp.sin instead of np.sin."
        ) from error
    if np.shape(found) != (3,):
        raise ValueError(f"An activation acts on each entry; {name!r} maps shape (3,) to shape {np.shape(found)}.")


def _derivative(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


def _logistic_derivatives(x: Array) -> Derivatives:
    """s = 1/(1+e^-x) and its derivatives.

    p = s(1-s) is computed from e^-|x|, so that no digits are lost in the tails, and 1 - 2s as -tanh(x/2), so that none
    are lost at 0.
    """
    tail = jnp.exp(-jnp.abs(x))
    s = jnp.where(x >= 0, 1.0, tail) / (1 + tail)
    p = tail / (1 + tail) ** 2
    bend = -p * jnp.tanh(x / 2)
    return s, p, bend, p * (1 - 6 * p), bend * (1 - 12 * p)


@dataclass(frozen=True)
class _Rescaled:
    """Derivatives of outer·σ(inner·x) from those of σ; an object, so that activations can be compared and pickled."""

    formula: Callable[[Array], Derivatives]
    inner: float
    outer: float

    def __call__(self, x: Array) -> Derivatives:
        derivatives = self.formula(self.inner * x)
        return tuple(self.outer * self.inner**order * d for order, d in enumerate(derivatives))


def _softplus_derivatives(x: Array) -> Derivatives:
    return (jnp.logaddexp(x, 0.0), *_logistic_derivatives(x)[:4])


def _tanh_derivatives(x: Array) -> Derivatives:
    """tanh(x) = 2 s(2x) - 1."""
    rescaled = _Rescaled(_logistic_derivatives, 2.0, 2.0)(x)
    return (jnp.tanh(x), *rescaled[1:])


def _silu_derivatives(x: Array) -> Derivatives:
    """x s(x) with the logistic s: by Leibniz' rule m s^(m-1) + x s^(m)."""
    s = _logistic_derivatives(x)
    return (x * s[0], *(m * s[m - 1] + x * s[m] for m in range(1, HIGHEST_ORDER + 1)))


def _gelu_derivatives(x: Array) -> Derivatives:
    """xΦ(x) with the exact Φ."""
    density = jnp.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    below = jax.lax.erfc(-x / math.sqrt(2)) / 2
    return (
        x * below,
        below + x * density,
        (2 - x**2) * density,
        (x**3 - 4 * x) * density,
        (7 * x**2 - x**4 - 4) * density,
    )


def _softplus(beta: float) -> Activation:
    formula = _Rescaled(_softplus_derivatives, beta, 1 / beta)
    mirror = Mirror(1.0, slope=-1.0)
    return Smooth(_named("softplus", beta), steepness=beta / 2, growth=1, formula=formula, reflection=mirror)


def _sigmoid(beta: float) -> Activation:
    formula = _Rescaled(_logistic_derivatives, beta, 1.0)
    mirror, mixture = Mirror(-1.0, constant=1.0), Mixture(False, beta, 0.5, 0.5)
    return Smooth(_named("sigmoid", beta), steepness=beta / 2, formula=formula, reflection=mirror, mixture=mixture)


def _tanh(beta: float) -> Activation:
    formula = _Rescaled(_tanh_derivatives, beta, 1.0)
    mixture = Mixture(False, 2 * beta)
    return Smooth(_named("tanh", beta), parity="odd", steepness=beta, formula=formula, mixture=mixture)


def _hermite(degree: float) -> Activation:
    if degree != int(degree) or not 1 <= degree <= 60:
        raise ValueError(
            f"The degree of a Hermite activation is an integer from 1 to 60; received {degree:g}. Try 'hermite:4'."
        )
    rho = int(degree)
    coefficients = (0.0,) * rho + (1 / math.sqrt(math.factorial(rho)),)
    parity: Parity = "even" if rho % 2 == 0 else "odd"
    return Polynomial(f"hermite:{rho}", parity, 1 if rho == 1 else None, growth=rho, coefficients=coefficients)


def _named(kind: str, beta: float) -> str:
    """The shortest name that is read back as the same number."""
    short = f"{beta:g}"
    return kind if beta == 1 else f"{kind}:{short if float(short) == beta else repr(beta)}"


_FIXED: dict[str, Activation] = {
    "erf": Erf(),
    "relu": PiecewiseLinear("relu", slope=0.5, kink=0.5),
    "abs": PiecewiseLinear("abs", kink=1.0),
    "linear": PiecewiseLinear("linear", slope=1.0),
    "quadratic": Polynomial("quadratic", "even", 2, growth=2, coefficients=(0.0, 0.0, 1.0), variance=0.0),
    "gelu": Gelu("gelu", growth=1, formula=_gelu_derivatives, reflection=Mirror(1.0, slope=-1.0)),
    "silu": Smooth(
        "silu",
        growth=1,
        formula=_silu_derivatives,
        reflection=Mirror(1.0, slope=-1.0),
        mixture=Mixture(True),
    ),
}
_PARAMETRIC: dict[str, tuple[Callable[[float], Activation], float | None]] = {
    "softplus": (_softplus, 1.0),
    "sigmoid": (_sigmoid, 1.0),
    "tanh": (_tanh, 1.0),
    "hermite": (_hermite, None),
}
_KNOWN = {"x * sigmoid(x)": "silu", "sigmoid(x) * x": "silu"}
"""Formulas of activations that have derivatives written by hand: faster, and quadrature need not be checked."""

_CACHE: dict[str, Activation] = {}


def names() -> tuple[str, ...]:
    """The names of all activations; `:β` stands for a positive number, `:ρ` for a degree."""
    parametric = [f"{kind}[:β]" if default is not None else f"{kind}:ρ" for kind, (_, default) in _PARAMETRIC.items()]
    return (*_FIXED, *parametric)


def get(activation: str | Activation) -> Activation:
    """The activation with this name (parameters follow a colon). An `Activation` is returned unchanged.

    A smooth formula of x is a name too (see `understudy.formulas`). A function `module:function` must have been loaded
    with `load`: names also come from files, and a file must not decide which code is run.

    >>> round(float(get("tanh:0.5")(1.0)), 8)
    0.46211716
    >>> get("x*sigmoid(x)").name
    'x * sigmoid(x)'
    """
    if isinstance(activation, Activation):
        return activation
    if not isinstance(activation, str):
        raise TypeError(
            f"An activation is a name or an Activation; received {activation!r}. Names: {', '.join(names())}. "
            "Wrap a function of your own with understudy.activations.from_function."
        )
    if activation not in _CACHE:
        _CACHE[activation] = _build(activation)
    return _CACHE[activation]


_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*(#[0-9a-f]+)?")
_FINGERPRINT = np.linspace(-6.0, 6.0, 49)
"""Where a function of a module is evaluated, to notice that it has changed."""


def is_module_function(name: str) -> bool:
    """Whether the name has the form `module:function`, and is not an activation with a parameter."""
    return _MODULE.fullmatch(name) is not None and name.partition(":")[0] not in {*_FIXED, *_PARAMETRIC}


def load(name: str) -> Activation:
    """Import a function `module:function` (smooth, written with jax.numpy) and make it known to `get`.

    This runs the module's code, so call it with names that you trust. The module may state `parity`, `steepness` and
    `growth` as attributes of the function. The activation's name ends in a hash of the function's values
    (`module:function#1a2b3c4d`): stored results of a function that has changed are not reused, and a worker with
    another version of the module refuses.

    >>> load("jax.numpy:tanh").name.partition("#")[0]
    'jax.numpy:tanh'
    """
    plain, _, asked = name.partition("#")
    module, _, attribute = plain.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ValueError(f"The module {module!r} of the activation {plain!r} cannot be imported: {error}.") from error
    except AttributeError:
        raise ValueError(f"The module {module!r} has no function {attribute!r}; received {plain!r}.") from None
    stated = {key: getattr(function, key) for key in ("parity", "steepness", "growth") if hasattr(function, key)}
    made = from_function(function, plain, **stated)
    values = np.asarray(made(_FINGERPRINT))
    if not np.all(np.isfinite(values)):
        raise ValueError(f"The activation {plain!r} is not finite between -6 and 6.")
    text = ",".join(f"{value:.7e}" for value in np.where(np.abs(values) < 1e-12, 0.0, values))
    found = hashlib.sha256(f"{text};{stated}".encode()).hexdigest()[:8]
    if asked and asked != found:
        raise ValueError(f"{plain} has changed since {name} was made: its values are now those of {plain}#{found}.")
    named = f"{plain}#{found}"
    if named not in _CACHE:
        _CACHE[named] = replace(made, name=named)
    return _CACHE[named]


def _from_formula(text: str) -> Activation:
    try:
        formula = parse_formula(text)
    except ValueError as error:
        raise ValueError(f"Unknown activation {text!r}: {error} Available by name: {', '.join(names())}.") from None
    if formula.text in _KNOWN:
        return _CACHE.setdefault(formula.text, replace(_FIXED[_KNOWN[formula.text]], name=formula.text))
    if formula.text not in _CACHE:
        shape = examine(formula)
        found = from_function(
            _OfFormula(formula), formula.text, parity=shape.parity, steepness=shape.steepness, growth=shape.growth
        )
        x = np.linspace(-12.0, 12.0, 97)
        for order, values in enumerate(jax.jit(found.derivatives)(jnp.asarray(x))):
            if not np.all(np.isfinite(values)):
                where = x[~np.isfinite(np.asarray(values) * np.ones_like(x))][0]
                raise ValueError(
                    f"Derivative {order} of the activation {formula.text!r} does not exist at x = {where:g}."
                )
        _CACHE[formula.text] = found
    return _CACHE[formula.text]


@dataclass(frozen=True)
class _OfFormula:
    """A formula as a JAX function."""

    formula: Formula

    def __call__(self, x: Array) -> Array:
        functions = {name: getattr(jnp, name) for name in FUNCTIONS if hasattr(jnp, name)}
        functions |= {"erf": jax.lax.erf, "sigmoid": jax.nn.sigmoid, "softplus": jax.nn.softplus}
        return self.formula(x, functions)


def activate(activation: str | Activation, values: np.ndarray) -> np.ndarray:
    """σ of a NumPy array. Piecewise linear σ avoids JAX, which would compile for every new shape."""
    sigma = get(activation)
    if isinstance(sigma, PiecewiseLinear):
        return sigma.slope * values + sigma.kink * np.abs(values)
    return np.asarray(sigma(values))


def _build(name: str) -> Activation:
    kind, _, parameter = name.partition(":")
    if kind in _FIXED:
        if parameter:
            raise ValueError(f"The activation {kind!r} takes no parameter; received {name!r}. Use {kind!r}.")
        return _FIXED[kind]
    if _MODULE.fullmatch(name) and kind not in _PARAMETRIC:
        raise ValueError(
            f"The activation {name!r} is a function of a module that has not been loaded. In Python, call "
            f"understudy.activations.load({name.partition('#')[0]!r}); on the command line, give it as --activation."
        )
    if kind not in _PARAMETRIC:
        if re.fullmatch(r"\w*", name):
            raise ValueError(f"Unknown activation {name!r}. Available: {', '.join(names())}, or a formula of x.")
        return _from_formula(name)
    make, default = _PARAMETRIC[kind]
    if not parameter:
        if default is None:
            raise ValueError(f"The activation {kind!r} needs a degree, as in '{kind}:4'; received {name!r}.")
        return make(default)
    try:
        number = float(parameter)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ValueError(
            f"The parameter of {kind!r} is a positive number; received {parameter!r} in {name!r}. "
            f"Available: {', '.join(names())}."
        )
    return make(number)
