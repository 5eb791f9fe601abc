r"""All pairs of many smooth neurons at once, by Mehler's formula.

With h_m = He_m/√m! and c_m(r) = E[σ(r x) h_m(x)], E[σ1(r1 x) σ2(r2 y)] = Σ_m c_m(r1) c_m(r2) u^m for correlation u
(Mehler 1866). The coefficients belong to single neurons, so n + k lines of nodes replace the n(n + k) planes of a
double quadrature, and every pair costs a polynomial in u. If σ(r·) is analytic in a strip of half-width a = π/(2 ×
scale), scale = steepness × norm, the coefficients fall like exp(-a√m), because h_m oscillates with wave number √m.
Their products fall twice as fast. So the number of terms grows with the square of the scale, and large scales use
`quadrature`.

One transform per neuron is enough for all derivatives. By Stein's lemma E[σ(r x) h_m(x)] √m = r E[σ'(r x) h_(m-1)(x)].
So with d_m = E[σ''''(r x) h_m(x)] and s_j = E[σ^(j)(r x)] the coefficients of σ^(i) are

c^(i)_m = r^m/√m! s_(m+i) for m + i < 4, and r^(4-i) √((m+i-4)!/m!) d_(m+i-4) beyond.

From the highest derivative down nothing is divided by r, and rounding errors of d_m shrink with m. The sums over pairs
need powers of u times d_l(r1) d_(l+s)(r2) only, with fixed weights for each of the expectations.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.activations import HIGHEST_ORDER, Activation, Mirror, PiecewiseLinear
from understudy.gaussian.closed import has_closed_form
from understudy.gaussian.partials import BIASED_TERMS, TERMS, BiasedPartials, BiasedSelfPartials, Partials

LARGEST_SCALE = 6.0
"""Beyond this steepness × norm the double quadrature is used: there are 5,900 terms and 1,000 nodes here."""

_TOP = HIGHEST_ORDER
Top = tuple[Float[Array, "n even"] | None, Float[Array, "n odd"] | None]


class Series(NamedTuple):
    """The Hermite coefficients of neurons.

    - `low`: c^(i)_m for every derivative i ≤ 4 and m < 4.
    - `top`: d_m of the fourth derivative for even m, and for odd m; None for a half that vanishes by symmetry.
    - `own`, `single`: each neuron with itself, and E[σ^(j)] for j ≤ 4, from the same nodes.
    """

    norms: Float[Array, " n"]
    low: Float[Array, "n 5 4"]
    top: Top
    own: BiasedSelfPartials
    single: list[Float[Array, " n"]]


def serves(first: Activation, second: Activation, scale: float, biased: bool = False) -> bool:
    """Whether pairs of these activations are summed by the series, at steepness × norm up to `scale`."""
    kinked = isinstance(first, PiecewiseLinear) or isinstance(second, PiecewiseLinear)
    return not kinked and not has_closed_form(first, second, biased) and scale <= LARGEST_SCALE


def term_count(scale: float) -> int:
    """The number of terms for every r with steepness × r ≤ scale.

    2a√M = 40 leaves e^-40 = 4e-18. The four derivatives in a Hessian multiply this by M²: 3e-13 of the largest second
    partial of tanh at u = 1, and less elsewhere.
    """
    return math.ceil((40 * scale / math.pi) ** 2) + 16


@lru_cache(maxsize=8)
def transform(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The nodes x_q and the matrix T with c_m = Σ_q σ(r x_q) T_qm, for every r with steepness × r ≤ scale."""
    x = _nodes(scale)
    x = np.concatenate([-x[:0:-1], x])
    return x, _hermite_functions(x, scale)


def _step(scale: float) -> float:
    """The distance between nodes.

    The trapezoid rule sees the wave number √M of the last Hermite function and the spectrum of σ, which falls like
    e^(-a k); its step leaves room for both up to 40/a.
    """
    return 2 * math.pi / (math.sqrt(term_count(scale)) + 80 * scale / math.pi + 10)


def _nodes(scale: float) -> np.ndarray:
    """The nodes x ≥ 0. The range ends where the square root of the density is below 1e-18."""
    return _step(scale) * np.arange(math.ceil(13.0 / _step(scale)) + 1)


def _hermite_functions(x: np.ndarray, scale: float) -> Float[np.ndarray, "nodes terms"]:
    """h_m times the weight of each node."""
    terms = term_count(scale)
    root = np.exp(-(x**2) / 4) / (2 * math.pi) ** 0.25
    functions = [root, x * root]
    for m in range(1, terms - 1):
        functions.append((x * functions[m] - math.sqrt(m) * functions[m - 1]) / math.sqrt(m + 1))
    return _step(scale) * np.stack(functions, axis=1) * root[:, None]


@lru_cache(maxsize=8)
def _folded(scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes x ≥ 0, their weights, and matrices for f(x) + f(-x) (even m) and f(x) - f(-x) (odd m)."""
    x = _nodes(scale)
    matrix = _hermite_functions(x, scale)
    matrix[0] /= 2  # x = 0 is its own mirror image
    return x, matrix[:, 0].copy(), matrix[:, 0::2].copy(), matrix[:, 1::2].copy()


def coefficients(
    activation: Activation, norms: Float[Array, " n"], scale: float, biases: Float[Array, " n"] | None = None
) -> Series:
    """The coefficients of σ(r· + bias) and of its four derivatives there, for every norm r."""
    x, weights, even, odd = _folded(scale)
    inputs = norms[:, None] * x[None, :]
    mirror = activation.mirror if biases is None else None
    if biases is not None:
        right, left = (activation.derivatives(biases[:, None] + side) for side in (inputs, -inputs))
    else:
        right = activation.derivatives(inputs)
        left = activation.derivatives(-inputs) if mirror is None else tuple(mirrored(mirror, inputs, right))
    top = (
        None if mirror is not None and mirror.sign < 0 else (right[_TOP] + left[_TOP]) @ even,
        None if mirror is not None and mirror.sign > 0 else (right[_TOP] - left[_TOP]) @ odd,
    )
    single = [(f + g) @ weights for f, g in zip(right, left, strict=True)]
    own = BiasedSelfPartials(*((f + g) @ weights for f, g in zip(_squares(right), _squares(left), strict=True)))
    return Series(norms, _low(norms, single, top), top, own, single)


def _squares(f: Sequence[Array]) -> list[Array]:
    """Summands of D = E[σ²], D_q and D_qq (half its second, a quarter of its fourth derivative), D_m and D_qm."""
    return [
        f[0] ** 2,
        f[0] * f[2] + f[1] ** 2,
        f[0] * f[4] / 2 + 2 * f[1] * f[3] + 1.5 * f[2] ** 2,
        2 * f[0] * f[1],
        f[0] * f[3] + 3 * f[1] * f[2],
    ]


def mirrored(mirror: Mirror, x: Array, right: Sequence[Array]) -> list[Array]:
    """Derivatives at -x from those at x."""
    left = [mirror.sign * (-1) ** j * f for j, f in enumerate(right)]
    left[0] = left[0] + mirror.slope * x + mirror.constant
    left[1] = left[1] - mirror.slope
    return left


def _low(norms: Array, single: list[Array], top: Top) -> Float[Array, "n 5 4"]:
    """c^(i)_m for m < 4."""
    rows = []
    for i in range(_TOP + 1):
        for m in range(_TOP):
            if i + m < _TOP:
                rows.append(norms**m / math.sqrt(math.factorial(m)) * single[i + m])
                continue
            place = i + m - _TOP
            half = top[place % 2]
            factor = norms ** (_TOP - i) * math.sqrt(math.factorial(place) / math.factorial(m))
            rows.append(jnp.zeros_like(norms) if half is None else factor * half[:, place // 2])
    return jnp.stack(rows, axis=1).reshape(-1, _TOP + 1, _TOP)


def pair_partials(
    first: Activation,
    second: Activation,
    scale: float,
    q11: Float[Array, " n"],
    q12: Float[Array, "n k"],
    q22: Float[Array, " k"],
) -> Partials:
    """The nine expectations of every pair, from variances and covariances."""
    one, two = coefficients(first, jnp.sqrt(q11), scale), coefficients(second, jnp.sqrt(q22), scale)
    return partials(one, two, correlations(one, two, q12))


def correlations(first: Series, second: Series, q12: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Correlations from covariances; zero for a neuron of norm zero."""
    length = first.norms[:, None] * second.norms[None, :]
    return q12 / jnp.where(length > 0, length, 1.0)


def partials(first: Series, second: Series, correlation: Float[Array, "n k"]) -> Partials:
    """The nine expectations of every pair, from the neurons' coefficients and correlations."""
    return Partials(*_expectations(first, second, correlation, TERMS))


def biased_partials(first: Series, second: Series, correlation: Float[Array, "n k"]) -> BiasedPartials:
    """The fifteen expectations of every pair with biases."""
    return BiasedPartials(*_expectations(first, second, correlation, BIASED_TERMS))


def _expectations(
    first: Series, second: Series, correlation: Array, chosen: tuple[tuple[float, int, int], ...]
) -> list[Array]:
    r"""factor × E[σ1^(i) σ2^(j)] for every chosen (factor, i, j): terms m < 4 - l apart, l = min(i, j), and the sums

    r1^(4-i) r2^(4-j) u^(4-l) Σ_m u^m d_(m+i-l)(r1) d_(m+j-l)(r2) √((m+i-l)! (m+j-l)!)/(m+4-l)!.
    """
    u = jnp.clip(correlation, -1.0, 1.0)
    sums = _sums(first, second, u, [(i, j) for _, i, j in chosen])
    found = []
    for factor, i, j in chosen:
        least = min(i, j)
        rest = jnp.zeros_like(u)
        for m in range(_TOP - 1 - least, -1, -1):  # Horner's scheme
            rest = rest * u + first.low[:, i, m][:, None] * second.low[:, j, m][None, :]
        length = first.norms[:, None] ** (_TOP - i) * second.norms[None, :] ** (_TOP - j)
        found.append(factor * (rest + length * u ** (_TOP - least) * sums[i, j]))
    return found


def _sums(first: Series, second: Series, u: Array, chosen: list[tuple[int, int]]) -> dict[tuple[int, int], Array]:
    """The sums over m in `_expectations`, as matrix products of weighted d(r1) with powers of u times d(r2)."""
    found = {pair: jnp.zeros_like(u) for pair in chosen}
    longest = max(half.shape[1] for half in (*first.top, *second.top) if half is not None)
    powers = _powers(u**2, longest)
    # Gradients need derivatives of orders up to two: products of their own, so that the others can be left out.
    groups: dict[tuple[int, bool], list[tuple[int, int]]] = {}
    for i, j in chosen:
        groups.setdefault((max(j - i, 0), i + j > 2), []).append((i, j))
    for parity in (0, 1):  # of m
        for (shift, _), members in groups.items():
            right = _shifted(second.top, parity, shift)
            lefts = {(i, j): _shifted(first.top, parity, max(i - j, 0)) for i, j in members}
            there = {pair: left for pair, left in lefts.items() if left is not None}
            if right is None or not there:
                continue
            count = min(x.shape[1] for x in (right, *there.values()))
            weighted = [left[:, :count] * _weights(*pair, parity, count)[None, :] for pair, left in there.items()]
            products = jnp.einsum("cim,ijm->cij", jnp.stack(weighted), powers[..., :count] * right[None, :, :count])
            for pair, product in zip(there, products, strict=True):
                found[pair] = found[pair] + (product * u if parity else product)
    return found


def _shifted(top: Top, parity: int, shift: int) -> Array | None:
    """d_(m+shift) for m = parity, parity + 2, …"""
    half = top[(parity + shift) % 2]
    return None if half is None else half[:, (parity + shift) // 2 :]


def _weights(i: int, j: int, parity: int, count: int) -> Float[np.ndarray, " count"]:
    """√((m+i-l)! (m+j-l)!)/(m+4-l)! for m = parity, parity + 2, …, l = min(i, j)."""
    m = parity + 2.0 * np.arange(count)
    least = min(i, j)
    over = np.prod([m + step for step in range(1, abs(i - j) + 1)], axis=0)
    return np.sqrt(over) / np.prod([m + step for step in range(1, _TOP - least + 1)], axis=0)


def _powers(base: Float[Array, "n k"], count: int) -> Float[Array, "n k count"]:
    """1, base, base², … along a new last axis, by doubling."""
    powers, factor = jnp.ones((*base.shape, 1)), base
    while powers.shape[-1] < count:
        powers = jnp.concatenate([powers, powers * factor[..., None]], axis=-1)
        factor = factor**2
    return powers[..., :count]
