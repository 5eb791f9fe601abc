"""Follow one branch of critical points by pseudo-arclength steps, and notice where something changes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from understudy.branches.frame import Frame, Station
from understudy.branches.special import Located, locate

Ending = Literal["end of interval", "closed loop", "joins a special point", "too many points", "stuck", "diverging"]

SMALLEST_STEP = 1e-7
TURN = 0.2
"""Tangents of neighbours differ by at most this angle (radians), so that steps do not jump between branches."""

FAR = 1e6
"""A branch whose point is this many times its first size diverges."""


@dataclass
class Trace:
    """A branch as it was followed: its stations, and the special points with their positions among them."""

    stations: list[Station]
    found: list[tuple[int, Located]] = field(default_factory=list)
    ending: Ending = "end of interval"


Known = Callable[[Located], bool]


class Follower:
    """The step control of one continuation."""

    def __init__(self, frame: Frame, step: float, most_points: int, report: Callable[[float, int], None]):
        self.frame, self.step, self.most_points, self.report = frame, step, most_points, report

    def follow(self, first: Station, known: Known, origin: np.ndarray | None = None) -> Trace:
        """Follow the branch from a station along its tangent, until it leaves the interval or ends otherwise.

        `known` says whether a special point was found before; a fork that reaches the vertex of a known one ends there.
        `origin`: the special point at which this branch begins, so that it is not found again.
        """
        trace, step = Trace([first]), self.step / 2
        while True:
            here = trace.stations[-1]
            if len(trace.stations) >= self.most_points:
                trace.ending = "too many points"
                return trace
            there, last = self._advance(here, step)
            if there is None or not self._smooth(here, there, step):
                if step < SMALLEST_STEP:
                    trace.ending = "stuck"
                    return trace
                step /= 2
                continue
            changed = here.index != there.index or here.tangent[-1] * there.tangent[-1] < 0
            special = locate(self.frame, here, there) if changed else None
            if changed and special is None and step > 1e-3 * self.step:
                step /= 2
                continue
            if changed:
                special = self._undecided(here, there) if special is None else special
                if origin is None or np.linalg.norm(special.z - origin) > 1e-6:
                    trace.found.append((len(trace.stations), special))
                if here.index == there.index and known(special):
                    trace.ending = "joins a special point"
                    return trace
            trace.stations.append(there)
            self.report(there.p, len(trace.stations))
            if ending := self._ends(trace, there, last):
                trace.ending = ending
                return trace
            step = min(1.4 * step, self.step)

    def _advance(self, here: Station, step: float) -> tuple[Station | None, bool]:
        """The next station, and whether it is the last one: on the end of interval."""
        frame, z, t = self.frame, self.frame.scaled(here.x, here.p), here.tangent
        wanted = z + step * t
        row, last = t, not 0 < wanted[-1] < 1
        if last:
            end = 0.0 if wanted[-1] <= 0 else 1.0
            wanted = z + (end - z[-1]) / t[-1] * t
            wanted[-1], row = end, frame.upward
        solved = frame.newton(wanted, row)
        if solved is None:
            return None, last
        there = frame.station(solved, t)
        if there is not None and there.degenerate and not last:
            there = frame.station(nudged, t) if (nudged := frame.newton(z + 0.77 * step * t, t)) is not None else None
        return there, last

    def _smooth(self, here: Station, there: Station, step: float) -> bool:
        """Whether a step stayed on the branch: the tangent turned little, and the point is where it was predicted."""
        moved = self.frame.scaled(there.x, there.p) - self.frame.scaled(here.x, here.p)
        length = float(np.linalg.norm(moved))
        straight = here.tangent @ there.tangent >= np.cos(TURN)
        forward = here.tangent @ moved >= 0.9 * length
        return bool(straight and forward and 0 < length <= 1.5 * step)

    def _undecided(self, here: Station, there: Station) -> Located:
        z = (self.frame.scaled(here.x, here.p) + self.frame.scaled(there.x, there.p)) / 2
        low, high = sorted((here.index, there.index))
        return Located("undecided", z, here.vectors[:, low : max(high, low + 1)].T, abs(there.p - here.p))

    def _ends(self, trace: Trace, there: Station, last: bool) -> Ending | None:
        if last:
            return "end of interval"
        if np.linalg.norm(there.x) > FAR * self.frame.length:
            return "diverging"
        first = trace.stations[0]
        gap = self.frame.scaled(there.x, there.p) - self.frame.scaled(first.x, first.p)
        if len(trace.stations) > 5 and np.linalg.norm(gap) < self.step / 2 and first.tangent @ there.tangent > 0.9:
            return "closed loop"
        return None
