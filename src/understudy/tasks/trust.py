"""Check that the series and quadrature rules of losses resolve a user's activation."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from understudy.activations import Activation
from understudy.gaussian import own, partials
from understudy.tasks.pairs import pair_up

_TOLERANCE = (1e-10, 1e-8)
"""Largest error of interactions and of their second derivatives, relative to the size of what is summed."""

_CORRELATIONS = (0.6, -0.9, 1.0)


def require(student: Activation, teacher: Activation, resolution: float, biased: bool) -> None:
    """Raise if interactions at norms up to resolution/steepness are less accurate than `_TOLERANCE`."""
    if own.is_own(student):
        _require(student, student, resolution, biased)
    if own.is_own(student, teacher):
        _require(student, teacher, resolution, biased)


@lru_cache(maxsize=64)
def _require(first: Activation, second: Activation, resolution: float, biased: bool) -> None:
    """Compare the rule that a loss would use with `gaussian.partials`, which refines until its own error is known."""
    norms = [resolution / activation.steepness for activation in (first, second)]
    bias = 0.7 if biased else 0.0
    worst, error = _errors(first, second, (norms[0], norms[1]), resolution, bias)
    for kind, gap, allowed in zip(("interactions", "second derivatives"), (worst, error), _TOLERANCE, strict=True):
        if not gap <= allowed:
            names = first.name if first == second else f"{first.name} and {second.name}"
            raise ValueError(
                f"Quadrature does not resolve {names} at norms up to {max(norms):.3g}: the {kind} have a relative "
                f"error of about {gap:.0e}, more than {allowed:.0e}. Give from_function a larger steepness= (the scale "
                "on which the function changes), use a smoother function, or keep the norms small."
            )


def _errors(
    first: Activation, second: Activation, norms: tuple[float, float], resolution: float, bias: float
) -> tuple[float, float]:
    """Largest relative errors of the value and of the second derivatives, at three correlations."""
    u = np.array(_CORRELATIONS)
    best = partials(first, norms[0], norms[1], u, second, bias1=bias, bias2=-bias)
    p = norms[0] * jnp.array([[1.0, 0.0]])
    q = norms[1] * jnp.asarray(np.stack([u, np.sqrt((1 - u) * (1 + u))], axis=1))
    if bias:
        from understudy.tasks import biased_pairs

        one, two = biased_pairs.Shifted(p, jnp.full(1, bias)), biased_pairs.Shifted(q, jnp.full(len(u), -bias))
        used = jax.jit(lambda a, b: biased_pairs.pair_up(first, second, a, b, resolution).partials)(one, two)
    else:
        used = jax.jit(lambda a, b: pair_up(first, second, a, b, resolution).partials)(p, q)
    gaps = []
    for x, y, error, size in zip(used, *best, strict=True):
        scale = np.maximum(np.asarray(size), 1e-300)
        gaps.append(float(np.max((np.abs(np.asarray(x)[0] - np.asarray(y)) + np.asarray(error)) / scale)))
    return gaps[0], max(gaps[1:])
