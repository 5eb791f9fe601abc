"""Points above directions of a null space, with all other directions relaxed; see `higher_order`."""

import numpy as np

from understudy.points.scan import Scan
from understudy.points.surroundings import EPS, Surroundings

FAR_ENOUGH = 0.4
"""Distance to which a direction must be followed in which nothing changes."""

_RELAXATIONS = 60
_NEWTON_STEPS, _LOST = 8, 320
_RELAXED = 1e-9
"""Gradient across the null space that may be left over after relaxation, relative to the Hessian times the distance."""

_FAINT = 0.5
"""Share of one rounding of the largest eigenvalue above which a curvature along a zero direction is suspicious."""


class Relaxation:
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
        for i in np.flatnonzero(~(left <= allowed) & (radii <= 2 * FAR_ENOUGH))[:_LOST]:
            doubled = i > 0 and radii[i - 1] < radii[i] < 2.1 * radii[i - 1]  # else another direction comes before
            before = offsets[i - 1] - start[i - 1] if doubled else np.zeros(start.shape[1])
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
