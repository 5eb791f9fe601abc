"""Kernels by the names of two activations."""

from __future__ import annotations

from understudy.proofs.balls import Ball, ball
from understudy.proofs.biased_kernels import BiasedErf, BiasedKernel, BiasedLines
from understudy.proofs.kernels import Cosine, Erf, Kernel, PiecewiseLinear, Polynomials
from understudy.proofs.quadrature import Quadrature, logistic_of
from understudy.tasks.exact_form import ExactForm

_SLOPE_AND_KINK = {"relu": ("0.5", "0.5"), "abs": ("0", "1"), "linear": ("1", "0")}

HOMOGENEITY = {"relu": 1, "abs": 1, "linear": 1, "quadratic": 2, "hermite:1": 1}
"""The p with σ(c x) = c^p σ(x) for c > 0."""

PARITY = {"erf": -1, "tanh": -1, "linear": -1, "abs": 1, "quadratic": 1}
"""σ(-x) = ±σ(x); Hermite polynomials by their degree."""


class NoKernelError(ValueError):
    """There is no enclosure for the interaction of these activations. The message lists those that have one."""


def kernel_of(loss: str, first: str, second: str) -> Kernel:
    """G of two activations, at the current precision."""
    if loss == "sphere":
        return Cosine(int(first.partition(":")[2]))
    if first == second == "erf":
        return Erf()
    if first in _SLOPE_AND_KINK and second in _SLOPE_AND_KINK:
        return PiecewiseLinear(_slope_and_kink(first), _slope_and_kink(second))
    if _is_polynomial(first) and _is_polynomial(second):
        return Polynomials(_polynomial(first), _polynomial(second))
    smooth, other = logistic_of(first), logistic_of(second)
    if smooth is not None and other is not None:
        return Quadrature(smooth, other)
    raise NoKernelError(
        f"no enclosure for {first} with {second}; there is one for erf, for two of relu, abs and linear, for two of "
        "quadratic and hermite:ρ, and for two of softplus, sigmoid and tanh"
    )


def biased_kernel_of(first: str, second: str) -> BiasedKernel:
    """Expectations of two activations with biases, at the current precision."""
    if first == second == "erf":
        return BiasedErf()
    if first in _SLOPE_AND_KINK and second in _SLOPE_AND_KINK:
        return BiasedLines(_slope_and_kink(first), _slope_and_kink(second))
    raise NoKernelError(
        f"no enclosure with biases for {first} with {second}; there is one for erf, and for two of relu, abs and linear"
    )


def accuracy_of(form: ExactForm) -> float:
    """The length to which Newton's steps can shrink; it is limited where quadrature is not exact."""
    return 1e-40 if logistic_of(form.activation) is None else 1e-18


def parity_of(name: str) -> int:
    """1 for an even, -1 for an odd activation, 0 for others."""
    kind, _, degree = name.partition(":")
    return (-1) ** int(degree) if kind == "hermite" else PARITY.get(kind, 0)


def _slope_and_kink(name: str) -> tuple[Ball, Ball]:
    slope, kink = _SLOPE_AND_KINK[name]
    return ball(slope), ball(kink)


def _is_polynomial(name: str) -> bool:
    return name == "quadratic" or name.startswith("hermite:")


def _polynomial(name: str) -> tuple[tuple[Ball, ...], int]:
    """Coefficients in Hermite polynomials, and their variance (0 for powers of x)."""
    if name == "quadratic":
        return (ball(0), ball(0), ball(1)), 0
    degree = int(name.partition(":")[2])
    return (*[ball(0)] * degree, 1 / ball(degree).fac().sqrt()), 1
