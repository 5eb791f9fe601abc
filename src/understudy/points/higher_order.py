"""What the Hessian leaves open: the loss along its zero directions, with everything else relaxed.

At a critical point with Hessian H ⪰ 0 split the space into the null space Z of H and its complement Y. For small z ∈ Z
there is one y(z) = O(|z|²) with ∇_Y L(θ + z + y) = 0, and θ is a minimum of L if and only if 0 is one of
ψ(z) = L(θ + z + y(z)) - L(θ) (splitting lemma). ψ is evaluated on small spheres in Z, and its lowest value is searched
for by descent on the sphere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.tasks.task import Task

_LARGEST = 0.1
_RADII = 9
_ENOUGH = 4
_AXES = 12
_DIRECTIONS = 24
_RELAXATIONS = 20
_DESCENTS = 24

Finding = Literal["descends", "rises", "level", "flat", "undecided"]


@dataclass(frozen=True)
class HigherOrder:
    """Evidence along `dimension` zero directions.

    `radii`: of the spheres, the largest four on which y(z) is found near z; `lowest`, `highest`: extreme values of ψ on
    each; `noise`: rounding level of ψ; `slopes`: lowest values of dψ/dr on each, `slope_noise` their rounding level;
    `order`: exponent of the lowest value in the radius (3 for a cubic descent). `finding`, from ψ, and where ψ is lost in
    rounding from r dψ/dr, which is known much better (r⁶ at r = 0.01 is 1e-12, and rounding of the loss often 1e-13):

    - `descends`: ψ < -noise on at least two spheres, falling like the third or a higher power of the radius, and
      nowhere above noise on a smaller one;
    - `rises`: ψ > noise everywhere on at least two spheres, and nowhere below -noise on a smaller one;
    - `flat`: |ψ| ≤ noise everywhere; `level`: ψ ≥ -noise, with zeros: no way down, but no isolated minimum;
    - `undecided`: anything else.
    """

    dimension: int
    radii: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    noise: float
    order: float
    finding: Finding
    slopes: tuple[float, ...]
    slope_noise: float


def examine(
    task: Task,
    vector: np.ndarray,
    eigenvalues: np.ndarray,
    vectors: np.ndarray,
    zero: np.ndarray,
    largest: float = _LARGEST,
) -> HigherOrder:
    """ψ along the eigenvectors flagged in `zero`; `eigenvalues`, `vectors`: the dense spectrum at `vector`.

    `largest`: radius of the largest sphere. Points up to twice as far are looked at; the loss must be smooth there.
    """
    null = vectors[:, zero]
    inverse = (vectors[:, ~zero] / eigenvalues[~zero]) @ vectors[:, ~zero].T
    count = null.shape[1]
    axes = np.eye(count)[:_AXES]
    directions = np.concatenate([axes, -axes])
    if count > 1:
        directions = np.concatenate([directions, np.random.default_rng(0).normal(size=(_DIRECTIONS, count))])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    task = task.prepared(jnp.asarray(vector + 2 * largest * np.sign(vector)))
    base = float(task.loss(jnp.asarray(vector)))
    noise = 256 * np.finfo(float).eps * (1 + abs(base) + float(np.abs(vector).max()) ** 2)
    # Rounding of the gradient, and what is left of it at the point itself.
    here = float(np.linalg.norm(np.asarray(task.gradient(jnp.asarray(vector)))))
    slope_noise = here + 64 * np.finfo(float).eps * float(np.abs(eigenvalues).max()) * (1 + float(np.abs(vector).max()))
    point, basis, relaxing, tried = (jnp.asarray(x) for x in (vector, null, inverse, directions))
    radii: list[float] = []
    lowest, highest, slopes = [], [], []
    for radius in largest * 0.5 ** np.arange(_RADII):
        found = np.asarray(_search(task, point, basis, relaxing, tried, jnp.asarray(radius), jnp.asarray(noise)))
        losses = found[:, :2]
        usable = losses[np.isfinite(losses)] - base
        if len(usable) < losses.size / 2:
            continue  # a sphere of which half cannot be reached says nothing
        radii.append(float(radius))
        lowest.append(float(usable.min()))
        highest.append(float(usable.max()))
        slopes.append(float(np.nanmin(found[:, 2])))
        if len(radii) == _ENOUGH:
            break
    finding, order = _judge(np.array(radii), np.array(lowest), np.array(highest), noise)
    if finding in ("undecided", "level", "flat"):
        by_slope, power = _judge(np.array(radii), np.array(slopes), np.array(slopes), slope_noise, least=1.5)
        if by_slope in ("descends", "rises"):
            finding, order = by_slope, power + 1
    return HigherOrder(
        count, tuple(radii), tuple(lowest), tuple(highest), float(noise), order, finding, tuple(slopes), slope_noise
    )


def _judge(
    radii: np.ndarray, lowest: np.ndarray, highest: np.ndarray, noise: float, least: float = 2.5
) -> tuple[Finding, float]:
    """The finding, and the order of descent or rise, above `least` (NaN if it cannot be told)."""
    if len(radii) < 2:
        return "undecided", float("nan")
    down, up = lowest < -noise, lowest > noise
    for clear, other, finding in ((down, up, "descends"), (up, down, "rises")):
        where = np.flatnonzero(clear)
        if len(where) >= 2 and not np.any(other[where[0] :]):
            order = float(np.polyfit(np.log(radii[where]), np.log(np.abs(lowest[where])), 1)[0])
            if order > least:
                return finding, order  # type: ignore[return-value]
    if not np.any(down):
        return ("flat" if np.all(np.abs(highest) <= noise) else "level"), float("nan")
    return "undecided", float("nan")


@eqx.filter_jit
def _search(
    task: Task,
    vector: Float[Array, " P"],
    null: Float[Array, "P z"],
    inverse: Float[Array, "P P"],
    directions: Float[Array, "m z"],
    radius: Float[Array, ""],
    noise: Float[Array, ""],
) -> Float[Array, "m 3"]:
    """ψ + L(θ) on the sphere of that radius: at the given directions, and the lowest met in a descent from each; and the
    lowest dψ/dr met."""

    def relaxed(direction: Array) -> tuple[Array, Array]:
        start = vector + radius * null @ direction

        def relax(_: Array, point: Array) -> Array:
            return point - inverse @ task.value_and_gradient(point)[1]

        point = jax.lax.fori_loop(0, _RELAXATIONS, relax, start)
        loss, gradient = task.value_and_gradient(point)
        # What is left to gain in Y must be below rounding, and y(z) shorter than z.
        left = jnp.abs(gradient @ (inverse @ gradient))
        near = (jnp.linalg.norm(point - start) < radius) & (left < noise)
        return jnp.where(near, loss, jnp.nan), null.T @ gradient

    def descend(direction: Array) -> Array:
        first, slope = relaxed(direction)

        def outward(loss: Array, slope: Array, d: Array) -> Array:
            return jnp.where(jnp.isfinite(loss), slope @ d, jnp.nan)

        def turn(i: Array, carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            d, slope, lowest, least = carry
            slope = slope - (slope @ d) * d
            length = jnp.linalg.norm(slope)
            moved = d - 0.5 * 0.85**i * slope / jnp.where(length > 0, length, 1.0)
            d = moved / jnp.linalg.norm(moved)
            loss, slope = relaxed(d)
            return d, slope, jnp.fmin(lowest, loss), jnp.fmin(least, outward(loss, slope, d))

        rounds = _DESCENTS if null.shape[1] > 1 else 0
        begin = direction, slope, first, outward(first, slope, direction)
        _, _, lowest, least = jax.lax.fori_loop(0, rounds, turn, begin)
        return jnp.stack([first, lowest, least])

    return jax.lax.map(descend, directions, batch_size=16)
