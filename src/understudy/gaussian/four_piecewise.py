r"""E[σ'(x_i)σ'(x_j)σ(x_l)σ(x_m)] for neurons slope·x + kink·|x|: closed forms and one integral over an interval.

Multiplied out, the average is a sum of five expectations of signs, absolute values and linear factors. Stein's lemma
E[x_l g] = Σ_a C_la E[∂_a g] turns each of them into expectations given that a pre-activation vanishes (∂ sign = 2δ), in
which only signs are left: E[s_a s_b] = (2/π) asin ρ_ab. What remains is S = E[s_i s_j s_l s_m], the orthant probability
of four Gaussians, which has no closed form. With the four correlations between (i, j) and (l, m) multiplied by t, it is
(4/π²) asin ρ_ij asin ρ_lm at t = 0, and

dS/dt = Σ_{a ∈ {i,j}, b ∈ {l,m}} ρ_ab (4/π²) (1 - t²ρ_ab²)^(-½) asin(correlation of the other two given x_a = x_b = 0)

(Plackett 1954, Biometrika 41, 351). The integrand is analytic inside (0, 1) and has square-root singularities at t = 1
where the covariance is singular, so a double-exponential rule is used.

A variance below 1e-13 times its value before conditioning is a rounding error. It counts as zero, and so does the sign.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

_ROUNDING = 1e-13
_NODES, _STEP = 65, 0.11
"""t = (1 + tanh(½π sinh s))/2 with |s| ≤ 3.5: the weights fall to 1e-22, and e^(-2π·1.5/step) is below 1e-16."""


def piecewise_averages(
    c: Float[Array, "M M"],
    i: Int[Array, ""],
    j: Int[Array, ""],
    own: tuple[float, float],
    slopes: Float[Array, " M"],
    kinks: Float[Array, " M"],
) -> Float[Array, "M M"]:
    """The averages for one pair (i, j) and every pair (l, m); `own` = (slope, kink) of the neurons i and j."""
    slope, kink = own
    k = _quadruples(c, i, j)
    total = slope**2 * slopes[:, None] * slopes[None, :] * c
    both = kinks[:, None] * kinks[None, :]
    if slope:
        total += slope**2 * both * _absolutes(k)
    if slope and kink:
        crossed = sum(_sign_linear_absolute(k, a) for a in (0, 1))
        total += slope * kink * (slopes[:, None] * kinks[None, :] * crossed)
        total += slope * kink * (slopes[:, None] * kinks[None, :] * crossed).T
    if kink:
        total += kink**2 * (slopes[:, None] * slopes[None, :] * _signs_linear(k) + both * _signs_absolutes(k))
    return total


def _quadruples(c: Array, i: Array, j: Array) -> Float[Array, "M M 4 4"]:
    """Covariances of (x_i, x_j, x_l, x_m) for every (l, m)."""
    count = len(c)
    l, m = jnp.meshgrid(jnp.arange(count), jnp.arange(count), indexing="ij")
    index = jnp.stack([jnp.full_like(l, i), jnp.full_like(l, j), l, m], axis=-1)
    return c[index[..., :, None], index[..., None, :]]


def _given(k: Array, a: int) -> Array:
    """Covariances given x_a = 0; rounding errors are set to zero."""
    variance = k[..., a, a]
    scale = jnp.where(variance > 0, 1 / jnp.where(variance > 0, variance, 1.0), 0.0)
    left = k - k[..., :, a, None] * k[..., None, a, :] * scale[..., None, None]
    before, after = jnp.diagonal(k, axis1=-2, axis2=-1), jnp.diagonal(left, axis1=-2, axis2=-1)
    there = after > _ROUNDING * before
    return jnp.where(there[..., :, None] & there[..., None, :], left, 0.0)


def _asin(k: Array, a: int, b: int) -> Array:
    """asin of the correlation of x_a and x_b; 0 if one of them is zero."""
    product = k[..., a, a] * k[..., b, b]
    there = product > 0
    rest = jnp.sqrt(jnp.maximum(product - k[..., a, b] ** 2, 0.0))
    return jnp.where(there, jnp.arctan2(k[..., a, b], jnp.where(there, rest, 1.0)), 0.0)


def _density(k: Array, a: int) -> Array:
    """2p(x_a = 0) = √(2/(π C_aa)), or 0 for a zero neuron, whose sign does not change."""
    there = k[..., a, a] > 0
    return jnp.where(there, jnp.sqrt(2 / math.pi / jnp.where(there, k[..., a, a], 1.0)), 0.0)


def _absolutes(k: Array) -> Array:
    """E|x_l x_m|."""
    area = jnp.sqrt(jnp.maximum(k[..., 2, 2] * k[..., 3, 3] - k[..., 2, 3] ** 2, 0.0))
    return 2 / math.pi * (area + k[..., 2, 3] * _asin(k, 2, 3))


def _sign_linear_absolute(k: Array, a: int) -> Array:
    """E[sign(x_a) x_l |x_m|]."""
    given = _given(k, a)
    turning = k[..., 2, a] * _density(k, a) * jnp.sqrt(2 / math.pi * given[..., 3, 3])
    return turning + k[..., 2, 3] * 2 / math.pi * _asin(k, a, 3)


def _signs_linear(k: Array) -> Array:
    """E[sign(x_i) sign(x_j) x_l x_m]."""
    total = k[..., 2, 3] * 2 / math.pi * _asin(k, 0, 1)
    for a, b in ((0, 1), (1, 0)):
        given = _given(k, a)
        total += k[..., 2, a] * _density(k, a) * given[..., 3, b] * _density(given, b)
    return total


def _signs_absolutes(k: Array) -> Array:
    """E[sign(x_i) sign(x_j) |x_l| |x_m|]; parallel neurons are taken together first, because products of their signs
    and of delta functions have no value at zero.
    """
    total = _apart(k)
    stretched, _ = _parallel(k, 2, 3)
    total = jnp.where(stretched > 0, stretched * _signs_linear(_pick(k, (0, 1, 2, 2))), total)
    for a, b, other, rest in ((0, 2, 1, 3), (1, 2, 0, 3), (0, 3, 1, 2), (1, 3, 0, 2)):
        stretched, _ = _parallel(k, a, b)  # sign(x_a) |x_b| = stretched x_a
        merged = _sign_linear_absolute(_pick(k, (other, other, a, rest)), 0)
        total = jnp.where(stretched > 0, stretched * merged, total)
    together, sign = _parallel(k, 0, 1)
    return jnp.where(together > 0, sign * _absolutes(k), total)


def _pick(k: Array, index: tuple[int, ...]) -> Array:
    chosen = np.array(index)
    return k[..., chosen[:, None], chosen[None, :]]


def _parallel(k: Array, a: int, b: int) -> tuple[Array, Array]:
    """‖x_b‖ / ‖x_a‖ where the two are parallel to rounding, else 0, and the sign of their correlation."""
    product = k[..., a, a] * k[..., b, b]
    parallel = (product > 0) & (product - k[..., a, b] ** 2 <= _ROUNDING * product)
    ratio = k[..., b, b] / jnp.where(product > 0, k[..., a, a], 1.0)
    return jnp.where(parallel, jnp.sqrt(ratio), 0.0), jnp.sign(k[..., a, b])


_FIRST = ((0, (1, 2)), (1, (0, 2)), (2, (0, 1)))
"""Which pre-activation Stein's lemma sets to zero first, and the other two signs."""


def _apart(k: Array) -> Array:
    """`_signs_absolutes` of four neurons of which no two are parallel.

    Every term sets x_a and then x_e to zero; the nine terms are permutations (a, e, the others) of one formula.
    """
    orders = [(a, e, *rest, 3) for a, (b, c) in _FIRST for e, rest in ((b, (c,)), (c, (b,)))]
    orders += [(a, 3, b, c) for a, (b, c) in _FIRST]
    permuted = jnp.stack([_pick(k, order) for order in orders])
    given = _given(permuted, 0)
    with_m = jnp.concatenate([given[:6, ..., 1, 3], given[6:, ..., 1, 1]])
    inner = with_m * _density(given, 1) * 2 / math.pi * _asin(_given(given, 1), 2, 3)
    with_l = jnp.stack([k[..., 2, order[0]] for order in orders])
    return k[..., 2, 3] * _four_signs(k) + jnp.sum(with_l * _density(permuted, 0) * inner, axis=0)


def _rule() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes t in (0, 1), 1 - t without cancellation, and weights of the double-exponential rule."""
    s = _STEP * (np.arange(_NODES) - _NODES // 2)
    u = math.pi / 2 * np.sinh(s)
    return 1 / (1 + np.exp(-2 * u)), 1 / (1 + np.exp(2 * u)), _STEP * math.pi / 4 * np.cosh(s) / np.cosh(u) ** 2


def _four_signs(k: Array) -> Array:
    """S = E[sign(x_i) sign(x_j) sign(x_l) sign(x_m)]."""
    size = jnp.sqrt(jnp.diagonal(k, axis1=-2, axis2=-1))
    scale = jnp.where(size > 0, 1 / jnp.where(size > 0, size, 1.0), 0.0)
    rho = k * scale[..., :, None] * scale[..., None, :]
    apart = np.kron(1 - np.eye(2), np.ones((2, 2)))

    orders = [(a, b, 1 - a, 5 - b) for a in (0, 1) for b in (2, 3)]

    def slope(t: Array, complement: Array) -> Array:
        scaled = rho * jnp.broadcast_to(1 + (t - 1) * apart, rho.shape)
        permuted = jnp.stack([_pick(scaled, order) for order in orders])
        correlation = jnp.stack([rho[..., a, b] for a, b, _, _ in orders])
        size = jnp.minimum(jnp.abs(correlation), 1.0)
        rest = jnp.sqrt((1 - size + size * complement) * (1 + size * t))  # 1 - (tρ)²
        return 4 / math.pi**2 * jnp.sum(correlation / rest * _asin(_given(_given(permuted, 0), 1), 2, 3), axis=0)

    rule = tuple(jnp.asarray(part) for part in _rule())
    change = jax.lax.map(lambda node: node[2] * slope(node[0], node[1]), rule)
    return 4 / math.pi**2 * _asin(rho, 0, 1) * _asin(rho, 2, 3) + jnp.sum(change, axis=0)
