"""Expectations of two neurons with biases, in closed form where there is one, otherwise by quadrature."""

import math
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import Activation, Erf, PiecewiseLinear, Polynomial
from understudy.gaussian import biased, bivariate, own, quadrature, shifted
from understudy.gaussian.closed import has_closed_form
from understudy.gaussian.partials import BIASED_TERMS, BiasedPartials, BiasedSelfPartials, Covariance, Estimated

_EPSILON = float(np.finfo(float).eps)
FINEST = 1025  # nodes per line
NODES_AT_ONCE = 600_000


def biased_pair_partials(
    first: Activation, second: Activation, c: Covariance, means: biased.Means, nodes: int = 129
) -> BiasedPartials:
    """G = E[σ1(m1 + x) σ2(m2 + y)] and its partials by covariance and means, traceable."""
    return _biased(first, second, c, means, nodes, bivariate.QUICK)[0]


def _biased(
    first: Activation, second: Activation, c: Covariance, means: biased.Means, nodes: int, fine: int
) -> tuple[BiasedPartials, BiasedPartials]:
    """The partials and the sizes of their summands; `nodes` for quadrature, `fine` for closed forms."""
    if isinstance(first, Erf) and isinstance(second, Erf):
        return biased.erf_partials(c, means, fine)
    if isinstance(first, PiecewiseLinear) and isinstance(second, PiecewiseLinear):
        return biased.piecewise_linear_partials(first, second, c, means, fine)
    if isinstance(first, Polynomial) and isinstance(second, Polynomial):
        return biased.polynomial_partials(first, second, c, means)
    if isinstance(first, PiecewiseLinear):
        return shifted.kinked_partials(first, second, c, means, nodes)
    if isinstance(second, PiecewiseLinear):
        found = shifted.kinked_partials(second, first, c.swapped(), (means[1], means[0]), nodes)
        return found[0].swapped(), found[1].swapped()
    return shifted.smooth_partials(first, second, c, means, nodes)


def biased_self_partials(
    activation: Activation, q: Float[Array, "*shape"], mean: Float[Array, "*shape"], nodes: int = 129
) -> BiasedSelfPartials:
    """D(q, m) = E[σ(m + √q z)²] and its derivatives, traceable."""
    if isinstance(activation, PiecewiseLinear):
        return biased.piecewise_linear_self_partials(activation, q, mean)
    if isinstance(activation, Erf | Polynomial):
        c = Covariance(q, q, q, jnp.zeros_like(q))
        return biased.self_from_pair(biased_pair_partials(activation, activation, c, (mean, mean)))
    return shifted.smooth_self_partials(activation, q, mean, nodes)


def single_expectations(
    activation: Activation, q: Float[Array, "*shape"], mean: Float[Array, "*shape"], nodes: int = 129
) -> list[Array]:
    """E[σ^(j)(m + √q z)] of one neuron, j = 0…4, traceable."""
    if isinstance(activation, Erf):
        return biased.erf_single(q, mean)
    if isinstance(activation, PiecewiseLinear):
        return biased.piecewise_linear_single(activation, q, mean)
    if isinstance(activation, Polynomial):
        return biased.polynomial_single(activation, q, mean)
    return shifted.smooth_single(activation, q, mean, nodes)


def first_nodes(first: Activation, second: Activation, c: Covariance) -> int:
    """Nodes for the largest steepness × norm, rounded up to one of a few values to limit compilation."""
    scales = jnp.maximum(first.steepness * jnp.sqrt(c.q11), second.steepness * jnp.sqrt(c.q22))
    return quadrature.nodes_needed(2.0 ** math.ceil(math.log2(float(jnp.max(scales, initial=1.0)))))


@partial(jax.jit, static_argnames=("first", "second", "nodes"))
def _summed(first: Activation, second: Activation, c: Covariance, means: biased.Means, nodes: int) -> shifted.Sums:
    return _biased(first, second, c, means, nodes, bivariate.FINE)


def biased_partials(first: Activation, second: Activation, c: Covariance, means: biased.Means) -> Estimated:
    """`partials` with biases. The nodes of the quadrature are doubled until that no longer helps.

    The stated error of quadrature has three parts. *Nodes*: the rules converge geometrically and share no nodes, so
    the finer is much nearer to the truth than to the coarser; four times their difference is stated. *Cut*: what lies
    beyond the ends of the lines, see `_beyond`. *Rounding*: see `_rounding`.
    """
    closed_form, norms = has_closed_form(first, second, biased=True), (jnp.sqrt(c.q11), jnp.sqrt(c.q22))
    require_smooth(first, second, *norms)
    nodes = 0 if closed_form else first_nodes(first, second, c) // 2
    found, size = _in_batches(first, second, c, means, nodes)
    error, before = BiasedPartials(*map(_rounding, size)), None
    while not closed_form and 2 * nodes <= FINEST:
        nodes *= 2
        coarse, (found, size) = found, _in_batches(first, second, c, means, nodes)
        changes = BiasedPartials(*(4 * jnp.abs(x - y) for x, y in zip(found, coarse, strict=True)))
        units = _argument(first, second, c, means) + 6 * math.sqrt(6 * nodes)
        parts = zip(changes, size, _beyond(first, second, c, means), strict=True)
        error = BiasedPartials(*(change + _rounding(s, units) + cut for change, s, cut in parts))
        now = np.asarray(changes.value)
        if np.all(now <= 1e-13 * np.asarray(size.value)) or (before is not None and np.all(now > before / 4)):
            break
        before = now
    return with_unseen(Estimated(found, error, size), (first, second), norms, max(nodes, 1))


@lru_cache(maxsize=64)
def _heights(activation: Activation) -> tuple[float, ...]:
    """K_i with |σ^(i)(x)| ≤ K_i (1 + |x|)^growth, i = 0…4, read off a grid that is finer than σ's smallest scale.

    Between the nodes of the grid a derivative can be higher by a few percent: a tenth is added.
    """
    scale = max(1.0, activation.steepness)
    x = np.concatenate([np.linspace(-6, 6, 961) / scale, np.linspace(-40, 40, 801)])
    rows = activation.derivatives(jnp.asarray(x))
    return tuple(float(1.1 * np.max(np.abs(np.asarray(f)) / (1 + np.abs(x)) ** activation.growth)) for f in rows)


def _largest(activation: Activation, q: Array, mean: Array) -> list[Array]:
    """`_heights` for every entry of q; a kinked σ has σ'' = 2κδ, whose averages are 2κ φ^(l)(h) / r^(l+1), h = m/r."""
    rows = [jnp.full_like(q, height) for height in _heights(activation)]
    if not isinstance(activation, PiecewiseLinear):
        return rows
    r = jnp.sqrt(jnp.where(q > 0, q, 1.0))
    h = jnp.abs(mean) / r
    bump = jnp.where(q > 0, 2 * abs(activation.kink) * bivariate.density(h) / r, 0.0)
    return [*rows[:2], *(bump * ((1 + h) / r) ** order for order in range(3))]


def _beyond(first: Activation, second: Activation, c: Covariance, means: biased.Means) -> list[Array]:
    r"""A bound on what lies beyond the ends of both lines, for each entry of `BiasedPartials`.

    In polar coordinates of the two standard Gaussians everything that is cut has a radius ρ > R, R = `reach`. There
    |m + x| ≤ |m| + rρ, so that a factor is at most K_i (1 + |m| + r)^growth ρ^growth. With g the sum of the growths,
    ∫_R^∞ ρ^(g+1) e^(-ρ²/2) dρ = R^g e^(-R²/2) + g ∫_R^∞ ρ^(g-1) e^(-ρ²/2) dρ ≤ R^g e^(-R²/2) / (1 - g/R²).
    """
    cut, growth = quadrature.reach(first, second), first.growth + second.growth
    mass = cut**growth * math.exp(-(cut**2) / 2) / (1 - growth / cut**2)
    sides = ((first, c.q11, means[0]), (second, c.q22, means[1]))
    large = [(1 + jnp.abs(mean) + jnp.sqrt(q)) ** a.growth for a, q, mean in sides]
    one, two = (_largest(*side) for side in sides)
    return [factor * mass * one[i] * two[j] * large[0] * large[1] for factor, i, j in BIASED_TERMS]


def _argument(first: Activation, second: Activation, c: Covariance, means: biased.Means) -> Array:
    """Units of rounding by which σ1 σ2 changes when its arguments are rounded.

    The argument m + rt is off by (|m| + r|t|) ε, and a σ with poles at the distance (π/2)/steepness decays by at most
    e^(2 steepness) per unit.
    """
    cut = quadrature.reach(first, second)
    sides = ((first, c.q11, means[0]), (second, c.q22, means[1]))
    shares = [2 * a.steepness * (jnp.abs(mean) + jnp.sqrt(q) * cut) for a, q, mean in sides]
    return shares[0] + shares[1]


_UNSEEN = 1e-12
"""Relative mismatch of second moments above which quadrature has missed something."""


def _rounding(size: Array, units: Array | float = 0.0) -> Array:
    """The rounding error of a sum of this size.

    64 units for each term (about 30 operations). In the tails the exponents of the terms are about log(size), and each
    is rounded: 1.5 units of each of up to four exponentials. Quadrature adds `units`: those of `_argument`, and for N
    terms that are added one after another 6√N, six standard deviations of independent roundings; a line has at most
    six times `nodes` terms.
    """
    return _EPSILON * (64 + units + 6 * jnp.abs(jnp.log(jnp.where(size > 0, size, 1.0)))) * size


def _in_batches(
    first: Activation, second: Activation, c: Covariance, means: biased.Means, nodes: int
) -> tuple[BiasedPartials, BiasedPartials]:
    """Evaluate a few points at a time, with the last batch padded; see `interaction._in_batches`."""
    batch = max(1, NODES_AT_ONCE // (2 * nodes**2 if nodes else 8 * bivariate.FINE))
    padded = [jnp.asarray(np.append(x, np.ones(-np.size(x) % batch)).reshape(-1, batch)) for x in (*c, *means)]
    batches = [_summed(first, second, Covariance(*rows[:4]), rows[4:], nodes) for rows in zip(*padded, strict=True)]
    shape = c.q12.shape
    if not batches:
        empty = BiasedPartials(*(jnp.zeros(shape) for _ in BiasedPartials._fields))
        return empty, empty
    together = jax.tree.map(lambda *parts: jnp.concatenate(parts)[: c.q12.size].reshape(shape), *batches)
    return together[0], together[1]


def require_smooth(first: Activation, second: Activation, norm1: Array, norm2: Array) -> None:
    """Raise if a user's activation is not smooth at the norms with which it is used."""
    own.require_smooth(first, float(jnp.max(norm1, initial=1.0)))
    own.require_smooth(second, float(jnp.max(norm2, initial=1.0)))


def with_unseen(
    result: Estimated, pair: tuple[Activation, Activation], norms: tuple[Array, Array], nodes: int
) -> Estimated:
    """Errors, increased where the nodes do not resolve a user's activation (see `own.mismatch`)."""
    if not own.is_own(*pair):
        return result
    missed = [own.mismatch(a, float(jnp.max(r, initial=0.0)), nodes) for a, r in zip(pair, norms, strict=True)]
    terms = BIASED_TERMS[: len(result.partials)]
    (miss1, root1), (miss2, root2) = missed
    errors = []
    for error, size, (_, i, j) in zip(result.error, result.size, terms, strict=True):
        missing = float(miss1[i] + miss2[j])
        # `size` does not contain features that no node sees. Below this level the mismatch is rounding.
        unseen = root1[i] * root2[j] if missing > _UNSEEN else 0.0
        errors.append(error + (size + unseen) * missing)
    return result._replace(error=type(result.error)(*errors))
