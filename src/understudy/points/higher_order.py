"""Where the Hessian does not decide: the loss along its zero directions at many scales, with all others relaxed.

At a critical point with Hessian H ⪰ 0 split the space into the null space Z of H and its complement Y. For small z ∈ Z
there is one y(z) = O(|z|²) with ∇_Y L(θ + z + y) = 0, and θ is a minimum of L if and only if 0 is one of
ψ(z) = L(θ + z + y(z)) - L(θ) (splitting lemma). The slope dψ/dr = u·∇L along z = r u is known to the rounding of the
gradient, which near a critical point is far below that of the loss. The sign of the slope decides, at the smallest
distances at which the slope can be distinguished from rounding. So it is computed down to distances at which rounding
dominates, in the directions in which ψ is lowest.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy.points.surroundings import EPS, Surroundings

Finding = Literal["descends", "rises", "level", "flat", "undecided"]

_OCTAVES = 44
_FAR = 10
"""Radii R 2^-i from the largest R down, and R (1 - 2^-j) towards it: where the point is far from zero, R leads to its middle."""

_AXES, _RANDOM, _BEST = 12, 12, 6
_RELAXATIONS = 60
_TURNS = 24
_SEPARATE = 1e-8
"""1 - cosine from which on two directions are different ones: an angle of 1.4e-4, the accuracy of the search."""

_SEARCHED = 4
"""Octaves between two radii at which the lowest direction is searched for."""

_CLEAR = 8.0
"""How many times its rounding a slope must be to count."""

_FAINT = 0.5
"""Share of one rounding of the largest eigenvalue from which on a curvature along a zero direction is suspicious."""

_OCTAVES_OF_POWER = 9
"""Radii whose slopes give the exponent that is reported."""

_ENOUGH = 3
"""Neighbouring radii on which a slope must be clear to count."""

_FAR_ENOUGH = 0.4
"""Distance to which a direction must be followed in which nothing changes."""

_CLOSE = 1 / 16
"""Share of the largest distance at which a rise must be seen at the latest."""

_NEWTON_STEPS, _LOST = 8, 320
_RELAXED = 1e-9
"""Gradient across the null space that may be left over after relaxation, beside the Hessian times the distance."""

_LEVEL = 1e-5
"""Slope beside the steepest one at the same distance below which a direction counts as level: descents end only near to it."""


@dataclass(frozen=True)
class Scan:
    """Slopes dψ/dr along one direction, from the smallest distance outward; NaN where y(z) was not found.

    `noise`: the rounding of the slopes.
    """

    direction: np.ndarray
    radii: np.ndarray
    slopes: np.ndarray
    noise: np.ndarray

    @property
    def clear(self) -> np.ndarray:
        """The sign (-1 or 1) of each slope that can be distinguished from rounding; 0 for the others."""
        told = np.isfinite(self.slopes) & (np.abs(self.slopes) > _CLEAR * self.noise)
        return np.where(told, np.sign(np.nan_to_num(self.slopes)), 0).astype(int)

    @property
    def start(self) -> int | None:
        """Position of the smallest radius at which three consecutive slopes are clear and have the same sign."""
        signs = self.clear
        for i in range(len(signs) - _ENOUGH + 1):
            if signs[i] and np.all(signs[i : i + _ENOUGH] == signs[i]):
                return i
        return None

    @property
    def resolved(self) -> float:
        """The radius at `start`, or inf."""
        return float("inf") if self.start is None else float(self.radii[self.start])

    @property
    def sign(self) -> int:
        """The sign of the slope at the smallest distances, 0 if nothing is clear."""
        return 0 if self.start is None else int(self.clear[self.start])

    @property
    def order(self) -> float:
        """Exponent of ψ in the distance, where its slope begins to be clear (3 for a cubic descent)."""
        if self.start is None:
            return float("nan")
        part = slice(self.start, self.start + _ENOUGH)
        return 1 + float(np.polyfit(np.log(self.radii[part]), np.log(np.abs(self.slopes[part])), 1)[0])

    @property
    def power(self) -> float:
        """The same exponent as the median over up to eight octaves, which is less affected by rounding."""
        if self.start is None:
            return float("nan")
        signs = self.clear[self.start : self.start + _OCTAVES_OF_POWER]
        length = int(np.argmax(signs != signs[0])) if np.any(signs != signs[0]) else len(signs)
        part = slice(self.start, self.start + length)
        return 1 + float(np.median(np.diff(np.log(np.abs(self.slopes[part]))) / np.diff(np.log(self.radii[part]))))

    @property
    def steady(self) -> bool:
        """Whether the exponent there is stable: it does not grow towards smaller distances."""
        if self.start is None:
            return False
        part = slice(self.start, self.start + _ENOUGH)
        powers = np.diff(np.log(np.abs(self.slopes[part]))) / np.diff(np.log(self.radii[part]))
        return bool(powers[0] <= powers[1] + 0.3)


@dataclass(frozen=True)
class HigherOrder:
    """Evidence along `dimension` zero directions.

    - `radii`: the distances examined, from the smallest; `slopes`: dψ/dr at each, in the direction that decided;
      `noise`: their rounding; `resolved`: the least distance at which they can be distinguished from rounding (inf if
      nowhere).
    - `order`: exponent of ψ in the distance there (3 for a cubic descent); `direction`: in the parameters, of length 1.
    - `finding`: `descends` (in some direction the loss falls from the least resolved distance on), `rises` (in every
      examined direction it rises in this way), `flat` (its slope can nowhere be distinguished from rounding), `level`
      (flat in some directions, rising in the others), `undecided` (anything else, with the `reason`). `reason`: also a
      remark on how small curvatures were judged.
    - `flat`: dimension of the set on which the loss does not change; `drop`: a fall of the loss that would have been
      seen at every distance.
    """

    dimension: int
    radii: tuple[float, ...]
    slopes: tuple[float, ...]
    noise: tuple[float, ...]
    resolved: float
    order: float
    finding: Finding
    direction: np.ndarray
    flat: int
    drop: float
    reason: str = ""

    def describe(self) -> str:
        """The numbers that decided, in words."""
        seen = f"from a distance of {self.resolved:.1e} on" if np.isfinite(self.resolved) else "nowhere"
        words = {
            "descends": f"the loss falls along one of them, like the power {self.order:.2f} of the distance, seen {seen}"
            + (f"; {self.reason}" if self.reason else ""),
            "rises": f"the loss rises along all of them, like the power {self.order:.2f} of the distance or steeper, seen {seen}",
            "flat": "the loss does not change along them",
            "level": f"the loss rises along some, like the power {self.order:.2f} of the distance, and does not change along others",
            "undecided": self.reason,
        }
        return (
            f"{words[self.finding]} (slopes at distances from {self.radii[0]:.0e} to {self.radii[-1]:.2g}, a fall of the loss by "
            f"{self.drop:.0e} would have been seen)"
        )


def examine(
    around: Surroundings, values: np.ndarray, vectors: np.ndarray, zero: np.ndarray, skip: np.ndarray, largest: float
) -> HigherOrder:
    """ψ along the eigenvectors flagged in `zero`.

    **Arguments**

    - `values`, `vectors`: the dense spectrum at the point.
    - `skip`: tangents (rows) of continuous symmetries, along which nothing changes at any point.
    - `largest`: the largest distance; the loss must be smooth within it.
    """
    around = around.prepared(2 * min(largest, 1.0))
    null = _without(vectors[:, zero], skip)
    relaxation = _Relaxation(around, null, values[~zero], vectors[:, ~zero])
    radii = largest * 0.5 ** np.arange(1, _OCTAVES)[::-1]
    directions = _candidates(relaxation, radii)
    radii = np.concatenate([radii, largest * (1 - 0.5 ** np.arange(2, _FAR))])
    scans = relaxation.scans(directions, radii)
    return _judge(relaxation, scans, radii)


def _without(null: np.ndarray, skip: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the null space without these tangents."""
    if not len(skip):
        return null
    rows = skip / np.linalg.norm(skip, axis=1, keepdims=True)
    left, singular, _ = np.linalg.svd(null.T @ rows.T, full_matrices=True)
    used = int(np.sum(singular > 0.7))
    return null @ left[:, used:]


class _Relaxation:
    """Points z + y(z) above directions of the null space `null`."""

    def __init__(self, around: Surroundings, null: np.ndarray, values: np.ndarray, vectors: np.ndarray):
        self.around, self.null = around, null
        self.inverse = (vectors / values) @ vectors.T
        self.across = vectors
        self.residual = np.abs(null.T @ around.gradient)
        self.size = float(np.abs(values).max(initial=0.0))
        self.floor = 8 * around.rounding.gradient + float(np.linalg.norm(around.gradient))
        # The point itself may be off by this much across the null space, so that y(0) is not exactly 0.
        self.off = 2 * float(np.linalg.norm(self.inverse @ around.gradient))

    def curvature(self, direction: np.ndarray) -> float:
        """uᵀHu along a direction of the null space, or 0 if below the last digit of H or rounding of the point."""
        u = self.null @ direction
        long = u.astype(np.longdouble)
        found = float(long @ (self.around.hessian.astype(np.longdouble) @ long))
        limit = _FAINT * EPS * max(self.size, self.around.size)
        if u @ self.around.gradient != 0:  # not the critical point itself, but one within rounding of it
            limit = max(limit, 2 * float(np.abs(np.einsum("kij,i,j->k", self.around.hessians, u, u)).max()))
        return found if abs(found) > limit else 0.0

    def inflection(self, scan: Scan, curvature: float) -> float | None:
        """The distance to an inflection without slope that explains a curvature near rounding, or None.

        Along a cubic ψ' = c r + k r² the curvature vanishes at r = -c/2k, and the slope there is -c²/4k. If the point
        is known only to rounding (its slope is not exactly zero) and c²/4k is below the rounding of slopes, a critical
        point without curvature at that distance has the same numbers.
        """
        if scan.start is None or abs(scan.order - 3) > 0.5 or not np.any(self.residual):
            return None
        cubic = abs(scan.slopes[scan.start + 1]) / scan.radii[scan.start + 1] ** 2
        below = scan.noise[: scan.start + 1]
        return abs(curvature) / (2 * cubic) if curvature**2 / (4 * cubic) <= float(np.median(below)) else None

    def faint(self, radius: float) -> float:
        """The size of slopes that are only rounding at this distance, from the first direction of the null space."""
        noise = self.slopes(np.eye(self.null.shape[1])[:1], np.array([radius]))[1][0]
        return float(noise) if np.isfinite(noise) else 0.0

    def relax(
        self, directions: np.ndarray, radii: np.ndarray, rounds: int = _RELAXATIONS
    ) -> tuple[np.ndarray, np.ndarray]:
        """Offsets z + y(z) and gradients there; NaN where y(z) is not found near z."""
        start = radii[:, None] * (directions @ self.null.T)
        offsets = start.copy()
        gradients = self.around.slopes(offsets)[1]
        active = np.ones(len(start), bool)
        for _ in range(rounds):
            move = gradients[active] @ self.inverse
            moved = offsets[active] - move
            far = np.linalg.norm(moved - start[active], axis=1)
            good = far < radii[active] + self.off
            slopes = self.around.slopes(moved)[1]
            left, before = (np.linalg.norm(g @ self.across, axis=1) for g in (slopes, gradients[active]))
            better = good & (left < before)
            index = np.flatnonzero(active)
            offsets[index[better]], gradients[index[better]] = moved[better], slopes[better]
            offsets[index[~good]] = np.nan
            active[index[~better]] = False
            active[index[better & (left > 0.9 * before)]] = False
            if not active.any():
                break
        gradients[np.isnan(offsets).any(axis=1)] = np.nan
        return offsets, gradients

    def slopes(self, directions: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """dψ/dr at each pair of direction and radius, and its rounding."""
        offsets, gradients = self.relax(directions, radii)
        ahead = directions @ self.null.T
        allowed = _RELAXED * self.around.size * radii + self.floor
        self._find_lost(radii[:, None] * ahead, radii, offsets, gradients, allowed)
        slopes = np.einsum("ij,ij->i", gradients, ahead)
        bent = np.linalg.norm(offsets - radii[:, None] * ahead, axis=1) / radii
        left = np.linalg.norm(gradients @ self.across, axis=1)
        places = self.around.vector + self.around.lengths * np.nan_to_num(offsets)
        ulps = np.maximum(2 * np.spacing(np.abs(places)) / self.around.lengths, EPS)
        signs = np.sign(np.cos(np.arange(offsets.shape[1]) * 2.3 + 0.7))
        spread = np.zeros(len(slopes))
        for turn in (signs, signs[::-1]):
            changed = self.around.slopes(np.nan_to_num(offsets) + ulps * turn)[1]
            spread = np.maximum(spread, np.abs(np.einsum("ij,ij->i", changed, ahead) - slopes))
        slopes = np.where(left <= allowed, slopes, np.nan)
        here = np.abs(directions) @ self.residual
        noise = 2 * spread + 2 * (bent + EPS) * left + here + EPS * np.abs(slopes)
        return slopes, np.where(np.isfinite(noise), noise, np.inf)

    def _find_lost(
        self, start: np.ndarray, radii: np.ndarray, offsets: np.ndarray, gradients: np.ndarray, allowed: np.ndarray
    ) -> None:
        """Newton's method for y(z), with the Hessian there, where relaxation was too slow; changes the arrays in place.

        It starts at four times the y(z) of half the distance, which comes before in the lists.
        """
        left = np.linalg.norm(gradients @ self.across, axis=1)
        for i in np.flatnonzero(~(left <= allowed) & (radii <= 2 * _FAR_ENOUGH))[:_LOST]:
            before = offsets[i - 1] - start[i - 1] if i and radii[i] < 2.1 * radii[i - 1] else np.zeros(start.shape[1])
            offset = start[i] + 4 * np.nan_to_num(before)
            for _ in range(_NEWTON_STEPS):
                _, gradient, hessian = self.around.evaluate(offset)
                across = gradient @ self.across
                if not np.all(np.isfinite(hessian)) or np.linalg.norm(offset - start[i]) > radii[i] + self.off:
                    break
                if np.linalg.norm(across) <= allowed[i]:
                    offsets[i], gradients[i] = offset, gradient
                    break
                offset = offset - self.across @ np.linalg.lstsq(self.across.T @ hessian @ self.across, across)[0]

    def scans(self, directions: np.ndarray, radii: np.ndarray) -> list[Scan]:
        """Slopes along each direction at every radius."""
        pairs = np.repeat(directions, len(radii), axis=0)
        slopes, noise = self.slopes(pairs, np.tile(radii, len(directions)))
        shape = (len(directions), len(radii))
        slopes, noise = slopes.reshape(shape), noise.reshape(shape)
        # Beyond a distance at which y(z) was not found, later results may belong to another valley.
        beyond = np.cumsum(np.isnan(slopes), axis=1) > 0
        slopes, noise = np.where(beyond, np.nan, slopes), np.where(beyond, np.inf, noise)
        return [Scan(d, radii, s, n) for d, s, n in zip(directions, slopes, noise, strict=True)]


def _candidates(relaxation: _Relaxation, radii: np.ndarray) -> np.ndarray:
    """Directions in which ψ is low at some radius: axes, and where descents on spheres of several radii end."""
    count = relaxation.null.shape[1]
    axes = np.eye(count)[:_AXES]
    first = np.concatenate([axes, -axes])
    if count == 1:
        return first
    rng = np.random.default_rng(0)
    best = np.zeros((0, count))
    found: list[np.ndarray] = []
    for radius in radii[::-1][::_SEARCHED]:
        random = rng.normal(size=(_RANDOM, count))
        trial = np.concatenate([first, random, best])
        trial /= np.linalg.norm(trial, axis=1, keepdims=True)
        ended, slopes = _descend(relaxation, trial, float(radius))
        if not np.any(np.abs(slopes[np.isfinite(slopes)]) > relaxation.faint(float(radius))):
            if np.isfinite(slopes).any():
                break  # at this distance and below, all slopes are rounding
            continue
        order = np.argsort(np.where(np.isfinite(slopes), slopes, np.inf))
        best = _distinct(ended[order])[:_BEST]
        found.append(best[:2])
    # Directions that were searched for come first: an axis at a small angle to one of them is not as low.
    chosen = _distinct(np.concatenate([*found, first]), _SEPARATE)
    return _distinct(np.concatenate([chosen, -chosen]), _SEPARATE)


def _distinct(directions: np.ndarray, apart: float = 1e-4) -> np.ndarray:
    kept: list[np.ndarray] = []
    for d in directions:
        if all(float(d @ other) < 1 - apart for other in kept):
            kept.append(d)
    return np.array(kept)


def _descend(relaxation: _Relaxation, directions: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of descents of ψ on the sphere, and dψ/dr there."""
    radii = np.full(len(directions), radius)
    best, lowest = directions, np.full(len(directions), np.inf)
    for turn in range(_TURNS):
        _, gradients = relaxation.relax(directions, radii, rounds=6)
        slopes = gradients @ relaxation.null
        outward = np.einsum("ij,ij->i", slopes, directions)
        better = outward < lowest
        best, lowest = np.where(better[:, None], directions, best), np.where(better, outward, lowest)
        across = slopes - outward[:, None] * directions
        length = np.linalg.norm(across, axis=1, keepdims=True)
        step = 0.5 * 0.7**turn * across / np.where(length > 0, length, 1.0)
        moved = directions - np.nan_to_num(step)
        directions = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return best, lowest


def _judge(relaxation: _Relaxation, scans: list[Scan], radii: np.ndarray) -> HigherOrder:
    around = relaxation.around

    def told(finding: Finding, scan: Scan, reason: str = "", flat: int = 0) -> HigherOrder:
        usable = np.isfinite(scan.noise)
        drop = float(np.max(_CLEAR * scan.noise[usable] * radii[usable], initial=0.0)) * around.unit
        return HigherOrder(
            dimension=relaxation.null.shape[1],
            radii=tuple(radii),
            slopes=tuple(scan.slopes),
            noise=tuple(scan.noise),
            resolved=scan.resolved,
            order=scan.power,
            finding=finding,
            direction=relaxation.null @ scan.direction,
            flat=flat,
            drop=drop,
            reason=reason,
        )

    falling = [s for s in scans if s.sign < 0]
    if falling:
        scan = max(
            falling,
            key=lambda s: (s.steady and s.order > 2.5, not relaxation.curvature(s.direction), -s.resolved),
        )
        if scan.order < 2.5:
            return told(
                "undecided", scan, "the loss falls like a curvature that is lost in the rounding of the Hessian"
            )
        if not scan.steady:
            return told("undecided", scan, "the loss falls, but its slope is about to change where rounding begins")
        curvature = relaxation.curvature(scan.direction)
        if not curvature:
            return told("descends", scan)
        aside = relaxation.inflection(scan, curvature)
        if aside is None:
            return told(
                "undecided", scan, "the loss falls, but a curvature near rounding may decide at smaller distances"
            )
        return told(
            "descends", scan, f"its curvature {curvature:.0e} here is that of a cubic at a distance of {aside:.0e}"
        )
    far = min(_FAR_ENOUGH, radii[-1] / 4)
    if any(not np.isfinite(s.slopes[radii >= far][0]) for s in scans if s.sign == 0):
        return told("undecided", scans[0], "the loss could not be followed along some of its zero directions")
    steepest = np.nanmax([np.where(np.isfinite(s.slopes), s.slopes, -np.inf) for s in scans], axis=0)
    rising = [s for s in scans if s.sign > 0 and not _nearly_level(s, steepest)]
    level = [s for s in scans if not any(s is other for other in rising)]
    worst = max(rising, key=lambda s: s.resolved) if rising else scans[0]
    if any(_one_sided(s, scans) for s in level):
        return told(
            "undecided", level[0], "the loss changes on one side and not on the other: a slope too small to be seen"
        )
    if rising:
        if worst.resolved > _CLOSE * radii[-1]:
            return told(
                "undecided", worst, "the loss rises, but only at distances too large to tell what it does close by"
            )
        if not all(s.steady for s in rising):
            return told("undecided", worst, "the loss rises, but its slope is about to change where rounding begins")
        if any(relaxation.curvature(s.direction) < 0 for s in rising if s.order > 2.5):
            return told("undecided", worst, "the loss rises, but a curvature near rounding points down")
    if not level:
        return told("rises", worst)
    flat = _flat_dimension(relaxation, level, steepest)
    return told("level" if rising else "flat", worst if rising else level[0], flat=flat)


def _one_sided(scan: Scan, scans: list[Scan]) -> bool:
    """Whether the loss is level in this direction but clearly not in the opposite one."""
    for other in scans:
        if float(other.direction @ scan.direction) < -1 + 1e-6 and other.start is not None and scan.start is None:
            only = (other.clear != 0) & (scan.clear == 0)
            if np.any(np.abs(other.slopes[only]) > 100 * scan.noise[only]):
                return True
    return False


def _flat_dimension(relaxation: _Relaxation, level: list[Scan], steepest: np.ndarray) -> int:
    """Dimension of the span of the level directions, or 1 if they are several sets that cross."""
    rows = np.stack([s.direction for s in level])
    _, singular, basis = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(singular > 1e-2 * singular[0]))
    if rank == 1:
        return 1
    mixed = np.random.default_rng(1).normal(size=(4, rank)) @ basis[:rank]
    mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
    scans = relaxation.scans(mixed, level[0].radii)
    return rank if all(_nearly_level(s, steepest) for s in scans) else 1


def _nearly_level(scan: Scan, steepest: np.ndarray) -> bool:
    """Whether slopes in this direction are zero, or close to zero relative to the steepest."""
    return scan.start is None or bool(scan.slopes[scan.start + 1] <= _LEVEL * steepest[scan.start + 1])
