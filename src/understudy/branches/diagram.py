"""`continuation`: follow a critical point as a parameter moves, and the branches that leave it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from understudy.branches.follow import Follower, Trace
from understudy.branches.frame import Frame, Station
from understudy.branches.result import Branch, Continuation, Found, Side, SpecialPoint
from understudy.branches.slices import Family, Slice, Slices
from understudy.branches.special import Located
from understudy.branches.switching import leaving, sides
from understudy.certifying import certify

Report = Callable[[int, float, int], None]
"""Called with the number of the branch, the parameter and the number of points so far."""

SAME = 1e-8
"""Points with losses and eigenvalues this close (relative to the Hessian's norm) are one up to symmetry."""


def continuation(
    family: Family,
    point: Any,
    interval: tuple[float, float],
    *,
    start: float | None = None,
    step: float = 0.02,
    depth: int = 1,
    most_points: int = 2000,
    length: float | None = None,
    parameter: str | None = None,
    report: Report | None = None,
) -> Continuation:
    """Follow a critical point of a family of tasks as its real parameter moves through an interval.

    The solutions of ∂L/∂x(x, p) = 0 form curves. Pseudo-arclength continuation follows them around folds, with exact
    gradients and Hessians, transversal to the continuous symmetries of the task. Where eigenvalues of the Hessian
    change sign, the fold, pitchfork or transcritical point is located to rounding by Newton's method on an extended
    system, and both sides of it are certified. The branches that leave there are followed, too.

    **Arguments**

    - `family`: a function from a number to a task. All tasks need the same number of parameters. Ready families are in
      `understudy.branches` (such as `teacher_angle`).
    - `point`: a critical point of the task at `start`: a network or a flat vector, for example from `us.fit`.
    - `interval`: the parameter's range (low, high). A branch ends where it leaves the interval.
    - `start`: the parameter at `point`. Default: low. If it lies inside the interval, both directions are followed.
    - `step`: largest step, as a share of the interval and of the size of the point.
    - `depth`: how often to switch to the branches that leave: 0 follows only the given branch.
    - `most_points`: a branch ends after this many points.
    - `length`: the size of the parameters, the unit of steps. Default: the norm of `point`, at least 1.
    - `parameter`: the parameter's name in tables and figures. Default: the family's, or `"p"`.
    - `report`: called after each point with the branch's number, the parameter and the number of points.

    A critical point that loses stability in a pitchfork, L = x⁴/4 - p x²/2:

    >>> import understudy as us
    >>> result = us.continuation(lambda p: us.Loss(lambda x: x[0] ** 4 / 4 - p * x[0] ** 2 / 2, 1), [0.0], (-1.0, 1.0))
    >>> special = result.special_points[0]
    >>> special.kind, abs(special.parameter) < 1e-10, special.certified
    ('pitchfork', True, True)
    >>> [branch.index.tolist()[-1] for branch in result.branches]  # the middle is unstable, the fork is stable
    [1, 0]

    **Reference**: Keller 1977; Moore and Spence 1980; Allgower and Georg 1990.
    """
    low, high, begin = _checked(interval, start, step, depth, most_points)
    slices = Slices(family, low, high)
    x = np.asarray(slices.task(begin).flatten(point), float)
    if x.ndim != 1:
        raise ValueError(f"continuation follows one point; received a batch of shape {x.shape}.")
    frame = Frame(slices, x, begin, length)
    first = _first(frame, x, begin)
    name = parameter or getattr(family, "parameter", None) or "p"
    work = _Work(frame, Follower(frame, step, most_points, lambda p, n: None), report)
    work.trunk(first, begin)
    work.switch(depth)
    return Continuation(
        tuple(work.branches),
        tuple(work.specials),
        str(name),
        (low, high),
        slices.mode,
        slices.slope_error(first.x, min(max(begin, low + slices.step), high - slices.step)),
        work.at,
    )


def _checked(
    interval: tuple[float, float], start: float | None, step: float, depth: int, most_points: int
) -> tuple[float, float, float]:
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError):
        raise ValueError(f"interval is a pair (low, high) of numbers; received {interval!r}.") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"interval needs two finite numbers, low < high; received {interval!r}.")
    begin = low if start is None else float(start)
    if not low <= begin <= high:
        raise ValueError(f"start must lie in the interval from {low:g} to {high:g}; received {start!r}.")
    if not 1e-5 <= step <= 0.25:
        raise ValueError(f"step is a share of the interval between 1e-5 and 0.25; received {step!r}.")
    if depth < 0 or most_points < 2:
        raise ValueError(f"depth is at least 0 and most_points at least 2; received {depth!r} and {most_points!r}.")
    return low, high, begin


def _first(frame: Frame, x: np.ndarray, p: float) -> Station:
    """The critical point next to x, if there is one and it is regular."""
    given, here = frame.scaled(x, p), frame.slices.at(x, p)
    z = frame.newton(given, frame.upward, most=30)
    norm = float(np.linalg.norm(here.gradient))
    if z is None and norm <= 1e-12 * here.size * frame.length:
        z = given
    if z is None or np.linalg.norm(z - given) > 0.1:
        raise ValueError(
            f"The point is not critical at {p:g}: its gradient has norm {norm:.1e}, and Newton's method finds no "
            "critical point near it. Start from a point of us.fit at that parameter."
        )
    station = frame.station(z, frame.upward)
    if station is None or station.degenerate:
        raise ValueError(
            f"The critical point at {p:g} is degenerate: an eigenvalue of the Hessian is zero that no continuous "
            "symmetry explains, so the branch has no definite direction. Start at another parameter."
        )
    return station


@dataclass
class _Work:
    """What one continuation has found so far."""

    frame: Frame
    follower: Follower
    report: Report | None
    branches: list[Branch] = field(default_factory=list)
    specials: list[SpecialPoint] = field(default_factory=list)
    located: list[Located] = field(default_factory=list)
    waiting: deque[tuple[int, np.ndarray, int]] = field(default_factory=deque)

    def trunk(self, first: Station, begin: float) -> None:
        """Follow the branch of the first station in every direction that stays in the interval."""
        backward = replace(first, tangent=-first.tangent)
        ahead = self._follow(first) if begin < self.frame.slices.high else Trace([first])
        if begin <= self.frame.slices.low:
            self._keep(ahead, None, 0, 1)
            return
        behind = self._follow(backward)
        if begin >= self.frame.slices.high:
            self._keep(behind, None, 0, 1)
            return
        turned = [replace(s, tangent=-s.tangent) for s in reversed(behind.stations)]
        count = len(turned)
        found = [(count - i, special) for i, special in reversed(behind.found)]
        found += [(count - 1 + i, special) for i, special in ahead.found]
        self._keep(Trace(turned + ahead.stations[1:], found, ahead.ending), None, 0, 1)

    def _follow(self, station: Station, origin: np.ndarray | None = None) -> Trace:
        number = len(self.branches)
        if self.report is not None:
            self.follower.report = lambda p, n: self.report(number, p, n)  # type: ignore[misc]
        return self.follower.follow(station, lambda special: self._number(special) is not None, origin)

    def switch(self, depth: int) -> None:
        """Follow the branches that leave special points, up to `depth` switches away from the first branch."""
        while self.waiting:
            number, arrived, generation = self.waiting.popleft()
            if generation > depth:
                continue
            special = self.located[number]
            for station in leaving(self.frame, special, arrived):
                if (known := self._branch_of(station)) is not None:
                    self._meets(number, known)
                    branch = self.branches[known]
                    if branch.leaves == number and special.kind != "multiple":
                        self.branches[known] = replace(branch, twins=branch.twins + 1)
                    continue
                trace = self._follow(station, special.z)
                self._keep(trace, number, 0, generation + 1)

    def _keep(self, trace: Trace, leaves: int | None, twins: int, generation: int) -> None:
        """Add a branch, and register its special points."""
        number = len(self.branches)
        rows: list[tuple[Any, ...]] = [(s.p, s.x, s.here.loss, s.index, float(s.values[0])) for s in trace.stations]
        for position, special in reversed(trace.found):
            rows.insert(position, self._special_row(special, rows[position - 1][3]))
        if leaves is not None:
            rows.insert(0, self._special_row(self.located[leaves], rows[0][3]))
        p, x, loss, index, least = (np.array(column) for column in zip(*rows, strict=True))
        self.branches.append(Branch(p, x, loss, index, least, leaves, twins, trace.ending))
        if leaves is not None:
            self._meets(leaves, number)
        for position, special in trace.found:
            known = self._number(special)
            if known is not None:
                self._meets(known, number)
                continue
            towards = trace.stations[min(position, len(trace.stations) - 1)].tangent
            self._register(special, towards, number)
            self.waiting.append((len(self.located) - 1, towards, generation))

    def _special_row(self, special: Located, index: int) -> tuple[Any, ...]:
        """The row of a special point, with the index of its neighbour."""
        x, p = self.frame.unscaled(special.z)
        here = self.frame.slices.at(x, p)
        return p, x, here.loss, index, float(here.spectrum()[0][0])

    def _register(self, special: Located, towards: np.ndarray, branch: int) -> None:
        x, p = self.frame.unscaled(special.z)
        pair = sides(self.frame, special, towards) if special.kind != "undecided" else None
        before, after = (None, None) if pair is None else self._certified(*pair, special.multiplicity)
        self.located.append(special)
        self.specials.append(
            SpecialPoint(
                special.kind,
                p,
                special.error,
                x,
                self.frame.slices.at(x, p).loss,
                special.null,
                before,
                after,
                (branch,),
            )
        )

    def _certified(self, before: Station, after: Station, count: int) -> tuple[Side, Side]:
        low = min(before.index, after.index)
        found = []
        for station in (before, after):
            crossing = station.values[low : low + count]
            value = float(crossing[np.argmin(np.abs(crossing))])
            verdict = certify(self.frame.slices.task(station.p), station.x)
            found.append(Side(station.p, value, verdict.index, verdict.kind))
        return found[0], found[1]

    def _number(self, special: Located) -> int | None:
        """The number of a special point that was found before, also as a copy by symmetry."""
        x, p = self.frame.unscaled(special.z)
        here = self.frame.slices.at(x, p)
        for number, other in enumerate(self.located):
            if other.kind != special.kind or abs(special.z[-1] - other.z[-1]) > 1e-7:
                continue
            there = self.frame.slices.at(*self.frame.unscaled(other.z))
            if np.linalg.norm(special.z - other.z) <= 1e-5 or _alike(here.loss, here.spectrum()[0], there, 1e-6):
                return number
        return None

    def _meets(self, special: int, branch: int) -> None:
        old = self.specials[special]
        if branch not in old.branches:
            self.specials[special] = replace(old, branches=(*old.branches, branch))

    def _branch_of(self, station: Station) -> int | None:
        """The number of the branch on which a station, or a copy of it by symmetry, lies."""
        for found in self.at(station.p):
            if _alike(found.loss, found.eigenvalues, station.here, SAME):
                return found.branch
        return None

    def at(self, p: float) -> list[Found]:
        """Every critical point on the branches at one parameter."""
        found: list[Found] = []
        for number, branch in enumerate(self.branches):
            here: list[np.ndarray] = []
            for i in range(len(branch) - 1):
                first, second = branch.parameters[i : i + 2]
                if not min(first, second) - 1e-12 <= p <= max(first, second) + 1e-12:
                    continue
                share = 0.5 if first == second else min(max((p - first) / (second - first), 0.0), 1.0)
                x = (1 - share) * branch.points[i] + share * branch.points[i + 1]
                z = self.frame.newton(self.frame.scaled(x, p), self.frame.upward)
                if z is None or any(np.linalg.norm(z - other) <= 1e-9 for other in here):
                    continue
                here.append(z)
                x = self.frame.unscaled(z)[0]
                slice_ = self.frame.slices.at(x, p)
                values = slice_.spectrum()[0]
                found.append(Found(number, p, x, slice_.loss, int(np.sum(values < 0)), values))
        return found


def _alike(loss: float, values: np.ndarray, other: Slice, tolerance: float) -> bool:
    """Whether two critical points at one parameter can be copies by symmetry.

    Permutations and reflections keep the eigenvalues. Rescalings do not, so points of tasks with continuous symmetries
    are compared by their losses (more strictly) and the signs of their eigenvalues.
    """
    theirs = other.spectrum()[0]
    if len(theirs) != len(values):
        return False
    scale = max(abs(loss), abs(other.loss))
    if len(other.symmetries):
        return bool(abs(loss - other.loss) <= 1e-11 * scale and np.sum(values < 0) == np.sum(theirs < 0))
    same_loss = abs(loss - other.loss) <= tolerance * max(scale, other.size)
    return bool(same_loss and np.abs(np.sort(values) - theirs).max() <= tolerance * other.size)
