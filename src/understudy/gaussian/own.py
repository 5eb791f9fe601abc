"""Check users' activations: are they smooth, and does quadrature resolve them?

A quadrature rule cannot see what happens between its nodes: a narrow bump, a kink, a fast oscillation. So activations
made by `from_function` are first examined on a line with very many nodes. Features narrower than its spacing are not
seen.
"""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.activations import HIGHEST_ORDER, Activation, Smooth
from understudy.gaussian import quadrature

_NODES = 2**15
_TILT = 0.4
"""The mean of the Gaussian under which derivatives are checked. It is not 0: symmetric functions would pass the
check."""


def is_own(*activations: Activation) -> bool:
    """Whether any of them was made by `from_function`."""
    return any(isinstance(a, Smooth) and a.own for a in activations)


@partial(jax.jit, static_argnames=("activation",))
def _derivatives(activation: Activation, x: Array) -> Array:
    return jnp.stack(jnp.broadcast_arrays(*activation.derivatives(x)))


@lru_cache(maxsize=64)
def _dense(activation: Activation, norm: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of a fine line, and σ and its derivatives at norm × node."""
    end = quadrature.reach(activation, activation) + 4.0
    z = np.linspace(-end, end, _NODES)
    return z, np.asarray(_derivatives(activation, jnp.asarray(norm * z)))


def require_smooth(activation: Activation, norm: float) -> None:
    """Raise if the derivatives from automatic differentiation are not those of a smooth function.

    By Stein's lemma r^j E[σ^(j)(r z)] = E[σ(r z) He_j(z)] for a smooth σ. A jump, a kink or a very narrow bump breaks
    it, because its derivatives contain point masses that automatic differentiation does not see.
    """
    if not is_own(activation):
        return
    norm = max(norm, 1e-3)
    z, values = _dense(activation, norm)
    centred = z - _TILT
    weight = np.exp(-(centred**2) / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    if not np.all(np.isfinite(values[:, weight > 1e-30])):
        raise ValueError(
            f"The activation {activation.name!r} or one of its four derivatives is not finite everywhere. Write it so "
            "that jax.numpy differentiates it without overflow or division by zero."
        )
    hermite = [np.ones_like(z), centred]
    for order in range(1, HIGHEST_ORDER):
        hermite.append(centred * hermite[order] - order * hermite[order - 1])
    for order in range(1, HIGHEST_ORDER + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            direct, parts = weight * values[order] * norm**order, weight * values[0] * hermite[order]
        gap, size = abs(np.sum(direct) - np.sum(parts)), np.sum(np.abs(direct)) + np.sum(np.abs(parts))
        if not gap <= 1e-6 * size:
            raise ValueError(
                f"The activation {activation.name!r} is not smooth enough at norm {norm:.3g}, or grows faster than its "
                f"growth={activation.growth} says: derivative {order} misses {gap / size:.1e} of what it should add up "
                "to. Gaussian quadrature needs four continuous derivatives, and no features narrower than a "
                "thousandth; use 'relu', 'abs' or PiecewiseLinear for kinks."
            )


def mismatch(activation: Activation, norm: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The relative error of the rule of `quadrature` with these nodes for E[(σ^(j)(r z))²], j = 0…4; and its root."""
    if not is_own(activation):
        return np.zeros(HIGHEST_ORDER + 1), np.ones(HIGHEST_ORDER + 1)
    exact = _second_moments(*_dense(activation, norm))
    scale, cut = jnp.asarray(1 / max(1.0, activation.steepness * norm)), quadrature.reach(activation, activation)
    z, weight = quadrature._line(nodes, scale, jnp.asarray(-cut), jnp.asarray(cut))
    values = _derivatives(activation, norm * z)
    seen = np.asarray(values) ** 2 @ (np.asarray(weight) * np.exp(-(np.asarray(z) ** 2) / 2) / np.sqrt(2 * np.pi))
    return np.abs(seen - exact) / np.maximum(exact, 1e-300), np.sqrt(exact)


def _second_moments(z: np.ndarray, values: np.ndarray) -> np.ndarray:
    weight = np.exp(-(z**2) / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    return values**2 @ weight
