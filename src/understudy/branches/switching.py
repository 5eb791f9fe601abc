"""The branches that leave a special point, and the two sides of the one that passes through."""

from collections.abc import Iterator

import numpy as np

from understudy.branches.frame import Frame, Station
from understudy.branches.special import Located

LENGTHS = (0.02, 0.01, 0.005, 0.002, 0.001)
"""Distances from a special point at which a branch is looked for, in scaled coordinates."""


def sides(frame: Frame, special: Located, towards: np.ndarray | None) -> tuple[Station, Station] | None:
    """The branch on both sides of a special point, where `multiplicity` eigenvalues differ in sign; None if not found.

    `towards`: the tangent of the branch on which the point was found. At a pitchfork it is replaced by the tangent of
    the branch that passes through, because the fork stays on one side.
    """
    tangent = special.tangents[-1] if special.kind == "pitchfork" or towards is None else towards
    if special.kind == "fold":
        tangent = special.tangents[0] * np.copysign(1.0, 1.0 if towards is None else special.tangents[0] @ towards)
    elif towards is not None and tangent @ towards < 0:
        tangent = -tangent
    for length in LENGTHS:
        pair = [_along(frame, special.z, sign * tangent, length) for sign in (-1.0, 1.0)]
        before, after = pair
        if before is None or after is None or before.degenerate or after.degenerate:
            continue
        if abs(before.index - after.index) == special.multiplicity:
            return before, after
    return None


def _along(frame: Frame, z: np.ndarray, tangent: np.ndarray, length: float) -> Station | None:
    """The station at a distance from z along a tangent."""
    wanted = z + length * tangent
    if not 0 <= wanted[-1] <= 1:
        return None
    found = frame.newton(wanted, tangent)
    if found is None or np.linalg.norm(found - wanted) > 0.5 * length:
        return None
    return frame.station(found, tangent)


def leaving(frame: Frame, special: Located, arrived: np.ndarray) -> Iterator[Station]:
    """Stations on the branches that leave a special point, apart from the one that arrives along a tangent."""
    if special.kind in ("pitchfork", "transcritical"):
        other = min(special.tangents, key=lambda t: abs(float(t @ arrived)))
        for sign in (1.0, -1.0):
            for length in LENGTHS:
                station = _along(frame, special.z, sign * other, length)
                if station is not None and not station.degenerate:
                    yield station
                    break
    elif special.kind == "multiple":
        yield from _sphere(frame, special, np.random.default_rng(0))


def _sphere(frame: Frame, special: Located, draw: np.random.Generator) -> Iterator[Station]:
    """Branches out of a null space of dimension m ≥ 2: Newton's method on ‖N(x - x*)‖ = r, from many directions."""
    null = special.null
    count = len(null)
    random = draw.normal(size=(12 + 4 * count, count))
    directions = np.concatenate([np.eye(count), random / np.linalg.norm(random, axis=1, keepdims=True)])
    for direction in directions:
        for length in LENGTHS:
            z = _on_sphere(frame, special, direction, length)
            if z is None:
                continue
            towards = z - special.z
            station = frame.station(z, towards / np.linalg.norm(towards))
            if station is not None and not station.degenerate:
                yield station
                break


def _on_sphere(frame: Frame, special: Located, direction: np.ndarray, length: float) -> np.ndarray | None:
    z = special.z + np.append(length * special.null.T @ direction, 0.0)
    here = frame.slices.at(*frame.unscaled(z))
    along = direction @ special.null
    pull, change = along @ frame.residual(here), along @ frame.jacobian(here)[:, -1]
    if change:  # the parameter at which the gradient along this direction vanishes
        z[-1] -= np.clip(pull / change, -5 * length, 5 * length)
    before = np.inf
    for _ in range(25):
        x, p = frame.unscaled(z)
        if not (frame.inside(p) and np.all(np.isfinite(z))):
            return None
        here = frame.slices.at(x, p)
        along = special.null @ (z - special.z)[:-1]
        matrix = np.vstack([frame.jacobian(here), np.append(along @ special.null, 0.0) / length])
        right = np.append(frame.residual(here), (along @ along - length**2) / (2 * length))
        try:
            move = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            return None
        size = float(np.linalg.norm(move))
        if not np.isfinite(size) or size > 3 * length:
            return None
        z = z - move
        if size <= 1e-12 or (size <= 1e-9 and size > 0.5 * before):
            return z if np.linalg.norm(z - special.z) <= 5 * length else None
        before = size
    return None
