"""What a critical point is, by another route: a dense spectrum of a plainly written loss, and descent beside the
point."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float

Loss = Callable[[Array], Array]

ZERO, CLEAR = 1e-13, 1e-7
"""An eigenvalue is zero below the first and another number above the second, beside the largest; between them is the
gap."""

NEAR = 100.0
"""λ² beside the gradient's norm from which on Newton's method contracts along that eigenvector, for third derivatives
of about ten: a smaller eigenvalue may be nothing but the distance to a degenerate critical point."""

RESTING = 1e3 * float(np.finfo(float).eps)
"""A gradient's norm beside the largest eigenvalue times 1 + the largest weight up to which it is rounding."""

FAINT = 0.01
"""Share of an eigenvalue that a weight may be which makes it: curvature is a weight times a force, which may be
large."""

ASIDE = (3 - 5**0.5) / 2
"""How large a negative eigenvalue in the gap is beside the largest positive one there where a minimum ends.

Next to the minima of a x², a > 0 small, the loss has the Hessian [[0, 2x], [2x, 2a]] in (a, x). Its eigenvalues have
the ratio -(√(1 + 4t²) - 1)/(√(1 + 4t²) + 1), t = x/a, and at t = 1 the point is as far from them as they are from
a = 0.
"""

RADII = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
STARTS = 24
STEPS = 60

Kind = Literal["minimum", "strict saddle", "non-strict saddle", "saddle", "unclear"]


@dataclass(frozen=True)
class Reference:
    """The kind, the inertia (negative, zero, positive) and the eigenvalues behind it.

    `unclear_spectrum`: an eigenvalue is in the gap, so that it cannot be told from zero; a saddle with a negative one
    there is just called a saddle. `regular`: the point is critical to rounding, and not degenerate at its own scale: no
    eigenvalue is in the gap. `falls`: of the loss within each radius, where descent had to decide.
    """

    kind: Kind
    inertia: tuple[int, int, int]
    values: np.ndarray
    unclear_spectrum: bool
    regular: bool
    falls: tuple[float, ...] = ()


@eqx.filter_jit
def derivatives(loss: Loss, points: Float[Array, "b P"]) -> tuple[Float[Array, "b P"], Float[Array, "b P P"]]:
    """Gradients and Hessians by automatic differentiation."""
    return jax.vmap(jax.grad(loss))(points), jax.vmap(jax.hessian(loss))(points)


def judge(
    loss: Loss,
    point: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    rng: np.random.Generator,
    *,
    radial: int = 0,
    analytic: bool = True,
) -> Reference:
    """The kind of a critical point with these derivatives.

    `radial` zero modes belong to the way the loss is written; falls of an `analytic` one are known by its gradients,
    too.
    """
    values, vectors = scipy.linalg.eigh((hessian + hessian.T) / 2, driver="ev")  # "evr" can fail where many are equal
    largest = max(float(np.abs(values).max()), 1e-2)  # rounding of losses of order one is not smaller
    zero = np.abs(values) <= ZERO * largest
    clear = (np.abs(values) >= CLEAR * largest) & (values**2 >= NEAR * float(np.linalg.norm(gradient)))
    inertia = (int(np.sum(values[~zero] < 0)), int(np.sum(zero)) - radial, int(np.sum(values[~zero] > 0)))
    unclear = bool(np.any(~zero & ~clear))
    resting = float(np.linalg.norm(gradient)) <= RESTING * largest * (1 + float(np.abs(point).max()))
    regular = resting and not unclear
    if np.any(values[clear] < 0):
        return Reference("strict saddle", inertia, values, unclear, regular)
    if inertia[1] <= 0 and not unclear:
        return Reference("minimum", inertia, values, unclear, regular)
    falls, noise = _falls(loss, point, gradient, values, vectors, ~clear, rng, analytic)
    kind = told(falls, noise)
    if analytic and regular and kind == "minimum" and _has_cubic(loss, point, gradient, values, vectors, zero):
        kind = "non-strict saddle"
    if not unclear and kind == "non-strict saddle" and _least_weight(point, FAINT * CLEAR * largest) < RADII[-1]:
        # the basin of a minimum can be as narrow as its least weight: beyond, that one has changed its sign
        kind = "unclear"
    if unclear and kind in ("minimum", "non-strict saddle"):
        kind = _with_gap(kind, values[~zero & ~clear])
    return Reference(kind, inertia, values, unclear, regular, tuple(map(float, falls)))


def _has_cubic(
    loss: Loss, point: np.ndarray, gradient: np.ndarray, values: np.ndarray, vectors: np.ndarray, zero: np.ndarray
) -> bool:
    """Whether third derivatives along the null space are more than rounding: then the loss falls, however little.

    Relaxing the other directions changes the loss along the null space from the fourth order on only. What Newton's
    step changes in these derivatives is what the distance to the critical point may have made of them.
    """
    null = vectors[:, zero]
    ways = np.random.default_rng(0).normal(size=(STARTS, null.shape[1])) @ null.T
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    step = vectors[:, ~zero] @ ((vectors.T @ gradient)[~zero] / values[~zero])
    here, there = (np.asarray(_third(loss, jnp.asarray(p), jnp.asarray(ways))) for p in (point, point - step))
    scale = (1 + float(np.abs(values).max())) * (1 + float(np.abs(point).max()))
    return bool(np.any(np.abs(here) > 10 * (np.abs(there - here) + RESTING * scale)))


@eqx.filter_jit
def _third(loss: Loss, point: Float[Array, " P"], ways: Float[Array, "s P"]) -> Float[Array, " s"]:
    """The third derivative of the loss along each way."""

    def at(t: Array, way: Array) -> Array:
        return loss(point + t * way)

    return jax.vmap(lambda way: jax.grad(jax.grad(jax.grad(at)))(0.0, way))(ways)


def _least_weight(point: np.ndarray, nothing: float) -> float:
    """The least size of a coordinate above `nothing`: the curvature that smaller ones make is in the gap, or zero."""
    sizes = np.abs(point)
    return float(np.min(sizes[sizes > nothing], initial=np.inf))


def _with_gap(kind: Kind, gap: np.ndarray) -> Kind:
    """What is left of a kind, told by falls, with these eigenvalues in the gap.

    With positive ones it may be a minimum whose basin is as narrow as they are small, and whose zero modes, a little
    aside, are smaller numbers of either sign (see `ASIDE`); with negative ones a saddle beside which the loss falls by
    less than rounding.
    """
    if kind == "minimum":
        return "unclear" if np.any(gap < 0) else "minimum"
    return "saddle" if np.any(gap < 0) and -gap.min() >= ASIDE * gap.max() else "unclear"


def told(falls: np.ndarray, noise: np.ndarray) -> Kind:
    """The kind, from how far the loss falls within balls of radius `RADII`.

    Beside a saddle it falls within all of them, like a power of the radius, until the fall is below rounding. Beside a
    minimum there may be a way down at some distance (where a flat set ends), but none within the smaller balls although
    a power would show there. Falls that all are below what rounding may be and still go like a power tell nothing.

    >>> radii, noise = np.array(RADII), np.full(len(RADII), 1e-13)
    >>> told(radii**3, noise), told(np.maximum(radii - 0.02, 0.0), noise)
    ('non-strict saddle', 'minimum')
    """
    seen, logs = falls > noise, np.log(np.array(RADII))
    count = int(np.argmin(seen)) if not seen.all() else len(seen)
    if np.any(seen[count:]):
        return "unclear"
    if count == 0:
        return "unclear" if _is_power(falls[-3:], logs[-3:]) else "minimum"
    powers = np.diff(np.log(falls[:count])) / np.diff(logs[:count])
    power = float(powers[-1]) if count > 1 else 8.0
    # What does not shrink with the ball is the distance to the critical point; what shrinks faster and faster is about
    # to end.
    steady = count > 2 and 1.5 < power <= powers[-2] + 1
    if count == len(falls):
        return "non-strict saddle" if steady else "unclear"
    expected = falls[count - 1] * np.exp(power * (logs[count] - logs[count - 1]))
    if expected > 10 * noise[count]:
        return "minimum"
    return "non-strict saddle" if steady else "unclear"


def _is_power(falls: np.ndarray, logs: np.ndarray) -> bool:
    """Whether these falls go like the second or a higher power of the radius."""
    return bool(np.all(falls > 0)) and bool(np.all(np.diff(np.log(falls)) / np.diff(logs) > 2))


def _falls(
    loss: Loss,
    point: np.ndarray,
    gradient: np.ndarray,
    values: np.ndarray,
    vectors: np.ndarray,
    zero: np.ndarray,
    rng: np.random.Generator,
    analytic: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """How far the loss falls within balls of each radius, and below what that is rounding.

    Starts are along eigenvectors with the least eigenvalues, both ways, in the null space, and anywhere. A fall is a
    difference of two losses, known to 1e-13, or of an analytic loss -∫(∇L(θ + tδ) - ∇L(θ))·δ dt, known to 1e-14 |δ|
    beside what is left of the gradient at the point.
    """
    ways = rng.normal(size=(STARTS, len(point)))
    ways[::2] = (ways[::2] @ vectors * zero) @ vectors.T
    softest = vectors[:, zero].T[: STARTS // 4]
    ways[: 2 * len(softest)] = np.concatenate([softest, -softest])
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    inverse = np.where(zero, 0.0, 1 / np.where(zero, 1.0, np.abs(values)))
    coarse = 1e-13 * (1 + abs(float(loss(jnp.asarray(point)))))
    arrays = (jnp.asarray(x) for x in (point, gradient, vectors, inverse, ways, np.array(RADII), coarse))
    plain, along = (np.nanmax(np.asarray(x), axis=1) for x in _descend(loss, *arrays))
    noise = np.full(len(RADII), coarse)
    if not analytic:
        return _at_least_as_inside(plain), noise
    fine = np.array(RADII) * (10 * float(np.linalg.norm(gradient)) + 1e-14 * (1 + float(np.abs(point).max()) ** 2))
    return _at_least_as_inside(np.where(plain > coarse, plain, along)), np.minimum(noise, fine)


def _at_least_as_inside(falls: np.ndarray) -> np.ndarray:
    """A ball contains the smaller ones: where descent got lost in a large one, what was found inside counts."""
    return np.maximum.accumulate(falls[::-1])[::-1]


@eqx.filter_jit
def _descend(
    loss: Loss,
    point: Float[Array, " P"],
    gradient: Float[Array, " P"],
    vectors: Float[Array, "P P"],
    inverse: Float[Array, " P"],
    ways: Float[Array, "s P"],
    radii: Float[Array, " r"],
    noise: Float[Array, ""],
) -> tuple[Float[Array, "r s"], Float[Array, "r s"]]:
    """How far the loss falls on the way down from each start, inside each ball: by losses, and by gradients at both
    ends.

    Newton's step with |H| off the null space; in it steps along the gradient, half of the radius long at first and a
    tenth shorter each time.
    """
    slope = jax.value_and_grad(loss)
    base = loss(point)
    nodes, shares = (jnp.asarray(x / 2) for x in np.polynomial.legendre.leggauss(8))

    def fall(away: Array) -> Array:
        slopes = jax.vmap(lambda t: slope(point + t * away)[1] - gradient)(nodes + 0.5)
        plain = base - loss(point + away)
        return jnp.clip(-jnp.dot(shares, slopes @ away), plain - noise, plain + noise)  # both must be true

    def run(radius: Array, way: Array) -> tuple[Array, Array]:
        def body(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            place, lowest = carry
            value, gradient = slope(place)
            along = vectors.T @ gradient
            free = jnp.where(inverse == 0, along, 0.0)
            free = 0.5 * 0.9**i * radius * free / jnp.maximum(jnp.linalg.norm(free), 1e-300)
            away = place - vectors @ (inverse * along + free) - point
            away = away * jnp.minimum(1.0, radius / jnp.maximum(jnp.linalg.norm(away), 1e-300))
            return point + away, jnp.fmin(lowest, value)

        place, lowest = jax.lax.fori_loop(0, STEPS, body, (point + radius * way, jnp.asarray(jnp.inf)))
        return base - jnp.fmin(lowest, loss(place)), jnp.fmax(fall(radius * way), fall(place - point))

    return jax.vmap(lambda r: jax.vmap(lambda w: run(r, w))(ways))(radii)
