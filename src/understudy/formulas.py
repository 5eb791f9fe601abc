"""Functions of x from text such as `x*sigmoid(x)`: parsed, never executed as Python.

A formula contains the variable x, numbers, pi, e, + - * / **, brackets and the functions in `FUNCTIONS`. Nothing else
is accepted: no names, attributes, comparisons or calls of anything else.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

LONGEST = 400
"""Characters of a formula at most."""

FUNCTIONS = (
    "exp", "log", "log1p", "expm1", "sqrt", "sin", "cos", "tanh", "sinh", "cosh", "arctan", "arcsinh", "erf", "sigmoid",
    "softplus",
)  # fmt: skip
"""Smooth functions that a formula may use; `sigmoid` is 1/(1 + exp(-x)), `softplus` its primitive."""

_CONSTANTS = {"pi": math.pi, "e": math.e}
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}
_KINKED = ("abs", "relu", "max", "min", "maximum", "minimum", "sign", "floor", "ceil", "round", "where")


@dataclass(frozen=True)
class Formula:
    """A parsed formula. It is called with x and a table of functions by name, for any kind of number."""

    text: str
    tree: ast.expr

    def __call__(self, x: Any, functions: dict[str, Callable[[Any], Any]]) -> Any:
        return _evaluate(self.tree, x, functions)


def parse_formula(text: str) -> Formula:
    """Parse a formula of x; `ValueError` says what is not allowed, and where.

    >>> parse_formula("x*sigmoid(1.5*x)").text
    'x * sigmoid(1.5 * x)'
    """
    if len(text) > LONGEST:
        raise ValueError(f"A formula has at most {LONGEST} characters; received {len(text)}.")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{text!r} is not a formula of x, such as x*sigmoid(x) or sin(3*x)/3.") from None
    _check(tree, text)
    if not any(isinstance(node, ast.Name) and node.id == "x" for node in ast.walk(tree)):
        raise ValueError(f"The formula {text!r} does not contain x.")
    return Formula(ast.unparse(tree), tree)


def _check(node: ast.expr, text: str) -> None:
    """Raise at the first part that is not allowed."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        _check(node.left, text)
        _check(node.right, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        _check(node.operand, text)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name in _KINKED:
            raise ValueError(f"{name} has a kink or a jump, and a formula must be smooth. Use 'relu' or 'abs' by name.")
        if name not in FUNCTIONS:
            raise ValueError(f"A formula has no function {name!r}; it has {', '.join(FUNCTIONS)}.")
        if len(node.args) != 1 or node.keywords:
            raise ValueError(f"{name} takes one argument; received {ast.unparse(node)!r}.")
        _check(node.args[0], text)
    elif isinstance(node, ast.Name):
        if node.id != "x" and node.id not in _CONSTANTS:
            raise ValueError(f"A formula has the names x, {', '.join(_CONSTANTS)} and functions; received {node.id!r}.")
    elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
        shown = ast.get_source_segment(text.strip(), node) or type(node).__name__
        raise ValueError(f"A formula has numbers, x, + - * / ** and functions; received {shown!r:.80}.")


def _evaluate(node: ast.expr, x: Any, functions: dict[str, Callable[[Any], Any]]) -> Any:
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, x, functions), _evaluate(node.right, x, functions)
        if (
            isinstance(node.op, ast.Pow)
            and isinstance(right, np.float64)
            and right == round(right)
            and abs(right) < 100
        ):
            right = int(right)  # whole powers of negative numbers exist, and have derivatives at zero
        return _OPERATIONS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        value = _evaluate(node.operand, x, functions)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return functions[node.func.id](_evaluate(node.args[0], x, functions))
    if isinstance(node, ast.Name):
        return x if node.id == "x" else np.float64(_CONSTANTS[node.id])
    assert isinstance(node, ast.Constant)
    # NumPy's overflow is infinity where Python's is an exception.
    return np.float64(float(node.value))  # type: ignore[arg-type]


def complex_functions() -> dict[str, Callable[[Any], Any]]:
    """The functions of a formula for complex arrays."""
    from scipy import special

    found = {name: getattr(np, name) for name in FUNCTIONS if hasattr(np, name)}
    return found | {
        "erf": special.erf,
        "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
        "softplus": lambda z: np.log1p(np.exp(z)),
    }


@dataclass(frozen=True)
class Shape:
    """What quadrature must know of a function: see `understudy.activations.Activation`."""

    parity: Literal["odd", "even"] | None
    steepness: float
    growth: int


_REACH, _FAR = 12.0, 40.0
_LIMIT, _LIMIT_BENT = 3.0, 100.0
"""A function is resolved up to the height in the complex plane where it, or its second derivative, has grown so much.

The second derivative sees branch points such as that of sqrt(1 + x**2), where the function itself stays small."""


def examine(formula: Formula) -> Shape:
    """Parity, steepness and growth of a formula, by evaluating it on lines in the complex plane.

    >>> examine(parse_formula("tanh(4*x)")).parity
    'odd'
    """
    functions = complex_functions()
    with np.errstate(all="ignore"):
        line = np.linspace(-_REACH, _REACH, 1601)
        real = np.asarray(formula(line, functions), float) * np.ones_like(line)
        far = np.array([-_FAR, -_FAR / 2, _FAR / 2, _FAR])
        ends = np.abs(np.asarray(formula(far, functions), float) * np.ones_like(far))
        if not (np.all(np.isfinite(real)) and np.all(np.isfinite(ends))):
            bad = [*line[~np.isfinite(real)], *far[~np.isfinite(ends)]][0]
            raise ValueError(f"The activation {formula.text!r} is not a finite number at x = {bad:g}.")
        growth = _growth(ends)
        if growth > 8:
            raise ValueError(
                f"The activation {formula.text!r} grows faster than x^8; Gaussian expectations need a polynomial bound."
            )
        return Shape(_parity(real), math.pi / 2 / _height(formula, line, growth), growth)


def _height(formula: Formula, line: np.ndarray, growth: int) -> float:
    """How far from the real line the formula stays small, at most π: that of the logistic function."""
    functions, bound = complex_functions(), (1 + np.abs(line)) ** growth

    def sizes(height: float) -> tuple[float, float]:
        values = np.asarray(formula(line + 1j * height, functions)) * np.ones_like(line) / bound
        return float(np.max(np.abs(values))), float(np.max(np.abs(np.diff(values, 2))))

    size, bend = sizes(0.0)
    bend = max(bend, 1e-6 * size)
    for step in np.arange(1, 400) * math.pi / 400:
        here, bent = sizes(float(step))
        if not (here <= _LIMIT * size and bent <= _LIMIT_BENT * bend):
            return float(step)
    return math.pi


def _growth(ends: np.ndarray) -> int:
    """The degree of the polynomial that bounds the function, from its values at ±20 and ±40."""
    low, high = np.maximum(ends[[2, 1]], 1e-3), np.maximum(ends[[3, 0]], 1e-3)
    return max(0, math.ceil(float(np.max(np.log2(high / low))) - 0.05))


def _parity(values: np.ndarray) -> Literal["odd", "even"] | None:
    """Of values on a symmetric line, equal to rounding."""
    size = np.max(np.abs(values)) * 1e-14 + np.abs(values) * 1e-12
    if np.all(np.abs(values + values[::-1]) <= size):
        return "odd"
    return "even" if np.all(np.abs(values - values[::-1]) <= size) else None
