"""The front door to interactions: expectations of products of two neurons, in closed form or by quadrature."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation, Erf, Gelu, PiecewiseLinear, Polynomial
from understudy.gaussian import closed, quadrature
from understudy.gaussian.closed import has_closed_form
from understudy.gaussian.gelu import gelu_partials
from understudy.gaussian.partials import Covariance, Estimated, Partials, SelfPartials
from understudy.gaussian.with_biases import (
    FINEST,
    NODES_AT_ONCE,
    biased_partials,
    first_nodes,
    require_smooth,
    with_unseen,
)
from understudy.numbers import real_array

_EPSILON = float(np.finfo(float).eps)
_LARGEST_NORM = 1e75
_LARGEST_ERROR = 1e-6  # relative to the size of the summands; `interaction` raises above it


def pair_partials(first: Activation, second: Activation, c: Covariance, nodes: int = 129) -> Partials:
    """G and its eight partials for given covariances, traceable; `nodes` matters for quadrature only."""
    if isinstance(first, Erf) and isinstance(second, Erf):
        return closed.erf_partials(c)
    if isinstance(first, PiecewiseLinear) and isinstance(second, PiecewiseLinear):
        return closed.piecewise_linear_partials(first, second, c)
    if isinstance(first, Polynomial) and isinstance(second, Polynomial):
        return closed.polynomial_partials(first, second, c)
    if isinstance(first, Gelu) and isinstance(second, Gelu):
        return gelu_partials(c)[0]
    if isinstance(first, PiecewiseLinear):
        return quadrature.kinked_partials(first, second, c, nodes)
    if isinstance(second, PiecewiseLinear):
        return quadrature.kinked_partials(second, first, c.swapped(), nodes).swapped()
    return quadrature.smooth_partials(first, second, c, nodes)


def self_partials(activation: Activation, q: Float[Array, "*shape"], nodes: int = 129) -> SelfPartials:
    """D(q) = E[σ(√q z)²], D' and D'', traceable."""
    if isinstance(activation, Erf):
        return closed.erf_self_partials(q)
    if isinstance(activation, PiecewiseLinear):
        return closed.piecewise_linear_self_partials(activation, q)
    if isinstance(activation, Polynomial | Gelu):
        c = Covariance(q, q, q, jnp.zeros_like(q))
        return closed.self_from_pair(pair_partials(activation, activation, c))
    return quadrature.smooth_self_partials(activation, q, nodes)


@partial(jax.jit, static_argnames=("first", "second"))
def _closed(first: Activation, second: Activation, c: Covariance) -> Estimated:
    p = pair_partials(first, second, c)
    size = Partials(*(jnp.abs(x) for x in p))
    if isinstance(first, Polynomial) and isinstance(second, Polynomial):
        size = closed.polynomial_sizes(first, second, c)
    if isinstance(first, Gelu):
        size = gelu_partials(c)[1]
    return Estimated(p, Partials(*(64 * _EPSILON * x for x in size)), size)


@jax.jit
def _closed_erf(r1: Array, r2: Array, u: Array) -> Estimated:
    p = closed.erf_partials_of_norms(r1, r2, u)
    size = Partials(*(jnp.abs(x) for x in p))
    return Estimated(p, Partials(*(64 * _EPSILON * x for x in size)), size)


@partial(jax.jit, static_argnames=("first", "second", "nodes"))
def _integrated(first: Activation, second: Activation, c: Covariance, nodes: int) -> quadrature.Stacked:
    if isinstance(first, PiecewiseLinear):
        return quadrature.kinked_with_error(first, second, c, nodes)
    return quadrature.smooth_with_error(first, second, c, nodes)


def _in_batches(first: Activation, second: Activation, c: Covariance, nodes: int) -> Estimated:
    """Evaluate a few points at a time, because (nodes)² numbers for each of many points would not fit in memory.

    The last batch is padded. All batches then have one shape, so the code is compiled once for any number of points.
    """
    if isinstance(second, PiecewiseLinear):
        return _in_batches(second, first, c.swapped(), nodes).swapped()
    batch = max(1, NODES_AT_ONCE // nodes**2)
    padded = [jnp.asarray(np.append(x, np.ones(-np.size(x) % batch)).reshape(-1, batch)) for x in c]
    batches = [_integrated(first, second, Covariance(*rows), nodes) for rows in zip(*padded, strict=True)]
    empty = (np.zeros((len(Partials._fields), 0)),) * 3
    stacked = [np.concatenate(parts, axis=1) for parts in zip(empty, *batches, strict=True)]
    shaped = [jnp.asarray(part[:, : c.q12.size]).reshape(len(part), *c.q12.shape) for part in stacked]
    return Estimated(*(Partials(*part) for part in shaped))


def partials(
    activation: str | Activation,
    r1: ArrayLike,
    r2: ArrayLike,
    u: ArrayLike,
    activation2: str | Activation | None = None,
    *,
    bias1: ArrayLike = 0.0,
    bias2: ArrayLike = 0.0,
) -> Estimated:
    """E[σ1(r1 x + bias1) σ2(r2 y + bias2)], its partials by the covariance (q11, q12, q22), and error estimates.

    Arguments as in `interaction`. If any bias is not zero, the result includes the partials by the biases
    (`BiasedPartials`). Partials that do not exist (ReLU at a zero norm, second partials at u = ±1) are NaN. Quadrature
    doubles its nodes until that no longer helps. `error` is the estimated error that remains.
    """
    first, second, arrays = _checked(activation, activation2, r1=r1, r2=r2, u=u, bias1=bias1, bias2=bias2)
    norm1, norm2, correlation, mean1, mean2 = arrays
    if isinstance(first, Erf) and isinstance(second, Erf) and not _any(mean1, mean2):
        return _closed_erf(norm1, norm2, correlation)
    c = Covariance.from_correlation(norm1, norm2, correlation)
    if _any(mean1, mean2):
        return biased_partials(first, second, c, (mean1, mean2))
    if has_closed_form(first, second):
        return _closed(first, second, c)
    require_smooth(first, second, norm1, norm2)
    nodes = 2 * first_nodes(first, second, c) - 1  # twice as many as needed: the error estimate compares with half
    result = _in_batches(first, second, c, nodes)
    while 2 * nodes - 1 <= FINEST:
        error = np.asarray(result.error.value)
        if np.all(error <= 1e-13 * np.asarray(result.size.value)):
            break
        nodes = 2 * nodes - 1
        finer = _in_batches(first, second, c, nodes)
        if np.all(np.asarray(finer.error.value) > error / 4):
            break
        result = finer
    return with_unseen(result, (first, second), (norm1, norm2), nodes)


def _any(*arrays: Array) -> bool:
    return any(bool(np.any(np.asarray(array) != 0)) for array in arrays)


def interaction(
    activation: str | Activation,
    r1: ArrayLike,
    r2: ArrayLike,
    u: ArrayLike,
    activation2: str | Activation | None = None,
    *,
    bias1: ArrayLike = 0.0,
    bias2: ArrayLike = 0.0,
) -> Float[Array, "*shape"]:
    """g(r1, r2, u) = E[σ1(r1 x + bias1) σ2(r2 y + bias2)] for standard Gaussians x, y with correlation u.

    **Arguments**

    - `activation`: σ1, by name or object; `activation2`: σ2. Default: the same.
    - `r1`, `r2`: norms ≥ 0 of the two incoming vectors; `u` in [-1, 1]: their correlation; `bias1`, `bias2`: biases.
      They broadcast.

    The value is exact to rounding if both activations are erf, both are among relu, abs and linear, or both are
    polynomials (quadratic, hermite:ρ). This includes u = ±1, zero norms and large biases. The value is also exact to
    rounding for two gelu neurons without biases. All other pairs use quadrature, with a relative error ≤ 1e-12 for
    norms up to 10 and ≤ 1e-8 up to 30. An estimated error above 1e-6 raises an exception.
    `understudy.gaussian.partials` returns the error estimate with the value.

    >>> float(interaction("relu", 1.0, 1.0, 1.0))
    0.5
    >>> round(float(interaction("erf", 1.0, 1.0, 0.5, bias1=0.3, bias2=-0.2)), 12)
    0.136109441173

    **Reference**: Simsek, Bendjeddou, Gerstner, Brea 2023, "Should under-parameterized student networks copy or average
    teacher weights?", Eq. 7, 125 and Lemma F.1.
    """
    found = partials(activation, r1, r2, u, activation2, bias1=bias1, bias2=bias2)
    _require_accuracy(found)
    return found.partials.value


def _require_accuracy(found: Estimated) -> None:
    error, size = np.ravel(found.error.value), np.ravel(found.size.value)
    bad = error > _LARGEST_ERROR * size
    if np.any(bad):
        worst = int(np.argmax(np.where(bad, error, 0.0)))
        raise ValueError(
            f"Quadrature does not resolve this activation: it found {float(np.ravel(found.partials.value)[worst]):.6g} "
            f"with an error estimate of {error[worst]:.1e}. Give from_function a larger steepness= (and growth=), or "
            "use a smoother function; understudy.gaussian.partials returns values with their error estimates."
        )


def _checked(
    activation: str | Activation, activation2: str | Activation | None, **numbers: ArrayLike
) -> tuple[Activation, Activation, list[Array]]:
    """The activations, and r1, r2, u, bias1, bias2 as arrays of one shape."""
    first = activations.get(activation)
    second = first if activation2 is None else activations.get(activation2)
    arrays = {name: real_array(number, name) for name, number in numbers.items()}
    for name, array in arrays.items():
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name} must be finite; received {array[~np.isfinite(array)].ravel()[0]}.")
    for name in ("r1", "r2"):
        if np.any(arrays[name] < 0):
            raise ValueError(f"{name} is a norm and must not be negative; received {arrays[name].min()}.")
    if np.any(np.abs(arrays["u"]) > 1):
        worst = arrays["u"].ravel()[np.argmax(np.abs(arrays["u"]).ravel())]
        raise ValueError(
            f"u is a correlation and must lie in [-1, 1]; received {worst}. If it comes from dot products, clip it."
        )
    biased_erf = any(np.any(arrays[name]) for name in ("bias1", "bias2"))
    if biased_erf or not (isinstance(first, Erf) and isinstance(second, Erf)):
        for name in ("r1", "r2", "bias1", "bias2"):
            if np.any(np.abs(arrays[name]) > _LARGEST_NORM):
                raise ValueError(
                    f"{name} is at most {_LARGEST_NORM:g}, so that products of four norms do not overflow; received "
                    f"{np.abs(arrays[name]).max():g}."
                )
    try:
        np.broadcast_shapes(*(a.shape for a in arrays.values()))
    except ValueError:
        given = {name: a for name, a in arrays.items() if a.ndim or not name.startswith("bias")}
        shapes = ", ".join(f"{name} {a.shape}" for name, a in given.items())
        raise ValueError(f"r1, r2 and u must broadcast against each other; received shapes {shapes}.") from None
    return first, second, list(jnp.broadcast_arrays(*arrays.values()))
