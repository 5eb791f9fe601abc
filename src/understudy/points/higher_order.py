"""Where the Hessian does not decide: the loss along its zero directions at many scales, with all others relaxed.

At a critical point with Hessian H ⪰ 0 split the space into the null space Z of H and its complement Y. For small z ∈ Z
there is one y(z) = O(|z|²) with ∇_Y L(θ + z + y) = 0, and θ is a minimum of L if and only if 0 is one of
ψ(z) = L(θ + z + y(z)) - L(θ) (splitting lemma). The slope dψ/dr = u·∇L along z = r u is known to the rounding of the
gradient, which near a critical point is far below that of the loss. The sign of the slope decides, at the smallest
distances at which the slope can be distinguished from rounding. So it is computed down to distances at which rounding
dominates, in the directions in which ψ is lowest.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from understudy.points.relaxation import FAR_ENOUGH, Relaxation
from understudy.points.scan import CLEAR, Scan, lower_term
from understudy.points.surroundings import Surroundings

Finding = Literal["descends", "rises", "level", "flat", "undecided"]

_OCTAVES = 44
_FAR = 10
"""Radii R 2^-i from the largest R down, and R (1 - 2^-j) towards it: where the point is far from zero, R leads to its
middle."""

_TO_ZERO = 44
"""j up to which |θ| (1 - 2^-j) is looked at before a direction counts as level. A loss far out on a plateau is level to
rounding over most of the way to zero, and not close to zero."""

_AXES, _RANDOM, _BEST = 12, 12, 6
_TURNS = 24
_SEPARATE = 1e-8
"""1 - cosine above which two directions are different: an angle of 1.4e-4, the accuracy of the search."""

_FINER = (1e-3, 1e-7)
"""First steps of two more descents, which find level directions to an angle of about 1e-10."""

_SEARCHED = 4
"""Octaves between two radii at which the lowest direction is searched for."""

_CLOSE = 1 / 16
"""Share of the largest distance at which a rise must be seen at the latest."""

_FAR_FROM_ROUNDING = 100.0
"""How many times its rounding a single slope must be to be none."""

_LEVEL = 1e-5
"""Share of the steepest slope at the same distance below which a direction counts as level: descents end only near such
a direction."""


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
        power = f"like the power {self.order:.2f} of the distance"
        words = {
            "descends": f"the loss falls along one of them, {power}, seen {seen}"
            + (f"; {self.reason}" if self.reason else ""),
            "rises": f"the loss rises along all of them, {power} or steeper, seen {seen}",
            "flat": "the loss does not change along them",
            "level": f"the loss rises along some, {power}, and does not change along others",
            "undecided": self.reason,
        }
        return (
            f"{words[self.finding]} (slopes at distances from {self.radii[0]:.0e} to {self.radii[-1]:.2g}, a fall of "
            f"the loss by {self.drop:.0e} would have been seen)"
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
    relaxation = Relaxation(around, null, values[~zero], vectors[:, ~zero])
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


def _candidates(relaxation: Relaxation, radii: np.ndarray) -> np.ndarray:
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


def _descend(
    relaxation: Relaxation, directions: np.ndarray, radius: float, first: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of descents of ψ on the sphere, with steps from the length `first` on, and dψ/dr there."""
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
        step = first * 0.7**turn * across / np.where(length > 0, length, 1.0)
        moved = directions - np.nan_to_num(step)
        directions = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return best, lowest


def _judge(relaxation: Relaxation, scans: list[Scan], radii: np.ndarray) -> HigherOrder:
    """The finding from all scans: a fall, or else what the loss does along the others."""
    falling = [s for s in scans if s.sign < 0] or _beside_level(relaxation, scans, radii)
    return _fall(relaxation, falling, scans) if falling else _no_fall(relaxation, scans, radii)


def _beside_level(relaxation: Relaxation, scans: list[Scan], radii: np.ndarray) -> list[Scan]:
    """Falls next to directions that rise a little: at the angle to which they are known, other terms hide a fall."""
    steepest = np.nanmax([np.where(np.isfinite(s.slopes), s.slopes, -np.inf) for s in scans], axis=0)
    near = [s.direction for s in scans if s.start is not None and s.sign > 0 and _nearly_level(s, steepest)]
    if not near or relaxation.null.shape[1] == 1:
        return []
    directions = _distinct(np.stack(near), _SEPARATE)[:_BEST]
    found: list[Scan] = []
    for radius in (radii[-1] / 2, radii[-1] / 16):
        ended = directions
        for first in _FINER:
            ended, _ = _descend(relaxation, ended, float(radius), first)
        found += [s for s in relaxation.scans(ended, radii) if s.sign < 0]
    return found


def _evidence(relaxation: Relaxation, finding: Finding, scan: Scan, reason: str = "", flat: int = 0) -> HigherOrder:
    usable = np.isfinite(scan.noise)
    drop = float(np.max(CLEAR * scan.noise[usable] * scan.radii[usable], initial=0.0)) * relaxation.around.unit
    return HigherOrder(
        dimension=relaxation.null.shape[1],
        radii=tuple(scan.radii),
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


def _fall(relaxation: Relaxation, falling: list[Scan], scans: list[Scan]) -> HigherOrder:
    """The clearest of these falls: is it one of the critical point itself?"""
    scan = max(
        falling,
        key=lambda s: (s.steady and s.order > 2.5, not relaxation.curvature(s.direction), -s.resolved),
    )
    told = partial(_evidence, relaxation)
    if scan.order < 2.5:
        return told("undecided", scan, "the loss falls like a curvature that is lost in the rounding of the Hessian")
    if not scan.steady:
        return told("undecided", scan, "the loss falls, but its slope is about to change where rounding begins")
    if any(lower_term(scan, s, even=True) > 0 for s in _opposite(scan, scans)):
        return told("undecided", scan, "the loss falls on one side, but a term of lower order rises on both")
    curvature = relaxation.curvature(scan.direction)
    if not curvature:
        return told("descends", scan)
    aside = relaxation.inflection(scan, curvature)
    if aside is None:
        return told("undecided", scan, "the loss falls, but a curvature near rounding may decide at smaller distances")
    return told("descends", scan, f"its curvature {curvature:.0e} here is that of a cubic at a distance of {aside:.0e}")


def _no_fall(relaxation: Relaxation, scans: list[Scan], radii: np.ndarray) -> HigherOrder:
    """The finding where no direction falls: the loss rises, is level, or cannot be judged."""
    told = partial(_evidence, relaxation)
    far = FAR_ENOUGH if radii[-1] > 2 * FAR_ENOUGH else radii[-1] / 4  # there a kink is near
    if any(not np.isfinite(s.slopes[radii >= far][0]) for s in scans if s.sign == 0):
        return told(
            "undecided", scans[0], "the loss could not be followed far enough along some of its zero directions"
        )
    steepest = np.nanmax([np.where(np.isfinite(s.slopes), s.slopes, -np.inf) for s in scans], axis=0)
    rising = [s for s in scans if s.sign > 0 and not _nearly_level(s, steepest)]
    level = [s for s in scans if not any(s is other for other in rising)]
    worst = max(rising, key=lambda s: s.resolved) if rising else scans[0]
    if any(_isolated(s) for s in level):
        return told("undecided", level[0], "the loss changes, but at too few distances to tell how")
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
        if any(lower_term(s, other, even=False) for s in rising for other in _opposite(s, rising)):
            return told("undecided", worst, "the loss rises, but a term of lower order falls on one side")
        if any(relaxation.curvature(s.direction) < 0 for s in rising if s.order > 2.5):
            return told("undecided", worst, "the loss rises, but a curvature near rounding points down")
    if not level:
        return told("rises", worst)
    if any(_changes_on_the_way(relaxation, s) for s in level if s.sign == 0):
        return told("undecided", level[0], "the loss is level to rounding here, but not on the way to zero")
    flat = _flat_dimension(relaxation, level, steepest)
    return told("level" if rising else "flat", worst if rising else level[0], flat=flat)


def _isolated(scan: Scan) -> bool:
    """Whether slopes are clearly not rounding, but at fewer neighbouring distances than are needed to judge them.

    High powers of the distance are seen only far out, where the loss may not be followed much farther.
    """
    return scan.start is None and bool(np.any(np.abs(np.nan_to_num(scan.slopes)) > _FAR_FROM_ROUNDING * scan.noise))


def _opposite(scan: Scan, scans: list[Scan]) -> list[Scan]:
    """The scan in the opposite direction, if there is one."""
    return [s for s in scans if float(s.direction @ scan.direction) < -1 + _SEPARATE]


def _changes_on_the_way(relaxation: Relaxation, scan: Scan) -> bool:
    """Whether the loss changes on the way to zero in a direction in which it is level at all radii so far.

    An analytic loss that is constant along a piece of a curve is constant along all of it.
    """
    around = relaxation.around
    middle = min(float(np.linalg.norm(around.vector / around.lengths)), float(scan.radii[-1]))
    added = middle * (1 - 0.5 ** np.arange(1, _TO_ZERO))
    radii = np.unique(np.concatenate([scan.radii, added[added > scan.radii[0]]]))
    farther = relaxation.scans(scan.direction[None], radii)[0]
    return bool(np.any(np.abs(np.nan_to_num(farther.slopes)) > _FAR_FROM_ROUNDING * farther.noise))


def _one_sided(scan: Scan, scans: list[Scan]) -> bool:
    """Whether the loss is level in this direction but clearly not in the opposite one."""
    for other in scans:
        if float(other.direction @ scan.direction) < -1 + 1e-6 and other.start is not None and scan.start is None:
            only = (other.clear != 0) & (scan.clear == 0)
            if np.any(np.abs(other.slopes[only]) > _FAR_FROM_ROUNDING * scan.noise[only]):
                return True
    return False


def _flat_dimension(relaxation: Relaxation, level: list[Scan], steepest: np.ndarray) -> int:
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
