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
    each; `noise`: rounding level of ψ; `slopes`: lowest values of dψ/dr on each (NaN where y(z) is seldom found to rounding),
    `slope_noise` their rounding level;
    `order`: exponent of the lowest value in the radius (3 for a cubic descent). `finding`, from ψ, and where ψ is lost in
    rounding from r dψ/dr (`by_slopes`), which is known much better (r⁶ at r = 0.01 is 1e-12, and rounding of the loss often
    1e-13):

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
    by_slopes: bool

    def describe(self) -> str:
        """The numbers that decided, in words."""
        radii, lowest, highest, slopes = (
            ", ".join(f"{x:.2g}" for x in row) for row in (self.radii, self.lowest, self.highest, self.slopes)
        )
        text = (
            f"relaxed loss on spheres of radius {radii} around the point: lowest {lowest}, highest {highest}, "
            f"rounding {self.noise:.0e}"
        )
        if self.by_slopes:
            text += f"; its least slope outwards: {slopes}, rounding {self.slope_noise:.0e}"
        return text


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
        numbers = (jnp.asarray(x) for x in (radius, noise, slope_noise))
        found = np.asarray(_search(task, point, basis, relaxing, tried, *numbers))
        losses = found[:, :2]
        usable = losses[np.isfinite(losses)] - base
        if len(usable) < losses.size / 2:
            continue  # a sphere of which half cannot be reached says nothing
        radii.append(float(radius))
        lowest.append(float(usable.min()))
        highest.append(float(usable.max()))
        settled = np.isfinite(found[:, 2])
        slopes.append(float(found[settled, 2].min()) if settled.mean() >= 0.5 else np.nan)
        if len(radii) == _ENOUGH:
            break
    finding, order = _judge(np.array(radii), np.array(lowest), np.array(highest), noise)
    by_slopes = False
    if finding in ("undecided", "level", "flat"):
        by_slope, power = _judge(np.array(radii), np.array(slopes), np.array(slopes), slope_noise, least=1.5)
        if by_slope in ("descends", "rises"):
            finding, order, by_slopes = by_slope, power + 1, True
    return HigherOrder(
        dimension=count,
        radii=tuple(radii),
        lowest=tuple(lowest),
        highest=tuple(highest),
        noise=float(noise),
        order=order,
        finding=finding,
        slopes=tuple(slopes),
        slope_noise=slope_noise,
        by_slopes=by_slopes,
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
    slope_noise: Float[Array, ""],
) -> Float[Array, "m 3"]:
    """ψ + L(θ) on the sphere of that radius: at the given directions, and the lowest met in a descent from each; and the
    lowest dψ/dr met."""

    def relaxed(direction: Array) -> tuple[Array, Array, Array]:
        """ψ + L(θ), its gradient in Z, and dψ/dr."""
        start = vector + radius * null @ direction

        def relax(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            point, _ = carry
            gradient = task.value_and_gradient(point)[1]
            return point - inverse @ gradient, null.T @ gradient

        point, before = jax.lax.fori_loop(0, _RELAXATIONS, relax, (start, jnp.zeros_like(direction)))
        loss, gradient = task.value_and_gradient(point)
        slope = null.T @ gradient
        # What is left to gain in Y must be below rounding, and y(z) shorter than z.
        left = jnp.abs(gradient @ (inverse @ gradient))
        near = (jnp.linalg.norm(point - start) < radius) & (left < noise)
        # An error of y(z) is one of first order in the slope: the last relaxation must not have changed it.
        settled = near & (jnp.linalg.norm(slope - before) <= slope_noise)
        return jnp.where(near, loss, jnp.nan), slope, jnp.where(settled, slope @ direction, jnp.nan)

    def descend(direction: Array) -> Array:
        def turn(i: Array, carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            d, slope, lowest, least = carry
            slope = slope - (slope @ d) * d
            length = jnp.linalg.norm(slope)
            moved = d - 0.5 * 0.85**i * slope / jnp.where(length > 0, length, 1.0)
            d = moved / jnp.linalg.norm(moved)
            loss, slope, outward = relaxed(d)
            return d, slope, jnp.fmin(lowest, loss), jnp.fmin(least, outward)

        rounds = _DESCENTS if null.shape[1] > 1 else 0
        first, slope, outward = relaxed(direction)
        _, _, lowest, least = jax.lax.fori_loop(0, rounds, turn, (direction, slope, first, outward))
        return jnp.stack([first, lowest, least])

    return jax.lax.map(descend, directions, batch_size=16)
