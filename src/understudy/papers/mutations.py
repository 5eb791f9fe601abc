"""Mutations: for each claim, a changed number under which one of its checks turns out the other way.

A check that no number can fail says nothing. `mutations/PAPER.toml` names, per claim, a check and a wrong value of ours
or another value of the paper's, and what mistake that value stands for. `retold` repeats the comparison of a stored
check with the changed value, without computing anything else again.
"""

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from understudy.papers.check import Check
from understudy.papers.measurement import verdict
from understudy.papers.result import Result
from understudy.papers.values import Json, text

MUTATIONS = Path(__file__).parent / "mutations"
Rule: TypeAlias = Literal["close", "equal", "at most", "at least", "between", "holds"]
DEVIATION = "deviation "
ROUNDING = 1e-5
"""Bounds are stored as text with six digits: a value this close to one (relative) is on the passing side."""


@dataclass(frozen=True)
class Mutation:
    """One changed number: the check it belongs to (how its name begins), the change, and what it stands for.

    Exactly one of `measured` (replaces our value), `expected` (replaces the paper's value or the bound) and `times`
    (multiplies our value) is given.
    """

    check: str
    because: str
    measured: Json = None
    expected: Json = None
    times: float | None = None

    def __post_init__(self) -> None:
        given = [x is not None for x in (self.measured, self.expected, self.times)]
        if sum(given) != 1 or not self.because.strip():
            raise ValueError(f"a mutation needs a reason and one of measured, expected, times; received {self!r}")

    def of(self, checks: tuple[Check, ...]) -> Check | None:
        """The check that it changes; None if the result has none of that name."""
        return next((check for check in checks if check.name.startswith(self.check)), None)

    def changed(self, check: Check) -> Check:
        """The check, repeated with the changed number."""
        if self.times is not None:
            return retold(check, measured=_scaled(check.measured, self.times))
        return retold(check, measured=self.measured, expected=self.expected)

    def applied(self, result: Result) -> Result:
        """The result with its check repeated, and the verdict that follows."""
        old = self.of((*result.checks, *result.printed))
        if old is None:
            raise ValueError(f"{result.paper}/{result.claim} has no check that begins with {self.check!r}")
        new = self.changed(old)
        checks, printed = (tuple(new if c is old else c for c in part) for part in (result.checks, result.printed))
        return replace(result, checks=checks, printed=printed, status=verdict(checks, printed))


@cache
def mutations(paper: str) -> dict[str, Mutation]:
    """The mutation of each claim of the paper, by the claim's id."""
    path = MUTATIONS / f"{paper}.toml"
    stored = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: Mutation(**told) for name, told in stored.items()}


def rule(check: Check) -> Rule:
    """How the check compares, read from what is stored of it.

    >>> rule(Check("norm", "≤ 1", 0.5, None, True))
    'at most'
    """
    if check.tolerance == "exact":
        return "equal"
    if check.tolerance is None:
        marks: dict[str, Rule] = {"≤": "at most", "≥": "at least", "in [": "between", "holds": "holds"}
        return next(kind for mark, kind in marks.items() if str(check.paper).startswith(mark))
    return "close"


def retold(check: Check, *, measured: Json = None, expected: Json = None) -> Check:
    """The same comparison with another value of ours (`measured`) or another value to compare with (`expected`).

    >>> retold(Check("norm", "≤ 1", 0.5, None, True), measured=1.5).ok
    False
    >>> retold(Check("slope", 2.0, 2.01, 0.1, True), expected=3.0).ok
    False
    """
    found = check.measured if measured is None else measured
    kind = rule(check)
    if kind == "holds":
        raise ValueError(f"{check.name!r} is a statement without a number: it cannot be repeated")
    wanted = _bound(kind, check.paper) if expected is None else expected
    if kind == "equal":
        return replace(check, measured=found, paper=wanted, ok=found == wanted)
    if kind == "close":
        return replace(check, measured=found, paper=wanted, ok=_close(found, wanted, check.tolerance))
    low, high = _interval(kind, wanted)
    slack = [ROUNDING * abs(x) if math.isfinite(x) else 0.0 for x in (low, high)]
    ok = all(low - slack[0] <= value <= high + slack[1] for value in _numbers(found))
    shown = check.paper if expected is None else _shown(kind, wanted)
    return replace(check, measured=found, paper=shown, ok=ok)


def failing(check: Check) -> str:
    """For which values of ours the check comes out the other way, in words.

    >>> failing(Check("norm", "≤ 1", 0.5, None, True))
    'fails above 1'
    >>> failing(Check("slope", 2.0, 2.01, 0.1, True))
    'fails if off by more than 0.1'
    """
    kind = rule(check)
    if kind == "holds":
        return "fails if the computed statement is false" if check.ok else "passes if the computed statement is true"
    verb = "fails" if check.ok else "passes"
    if kind == "equal":
        return "fails for any other value" if check.ok else "passes for the expected value only"
    if kind == "close":
        return f"{verb} if off by {'more' if check.ok else 'less'} than {text(check.tolerance)}"
    low, high = _interval(kind, _bound(kind, check.paper))
    if kind == "between":
        return f"{verb} {'outside' if check.ok else 'inside'} [{text(low)}, {text(high)}]"
    above = (kind == "at most") == check.ok
    return f"{verb} {'above' if above else 'below'} {text(high if kind == 'at most' else low)}"


def stored_numbers(check: Check) -> list[float]:
    """The numbers of ours that a check keeps; of a long array its largest deviation."""
    found = check.measured
    if isinstance(found, str) and DEVIATION in found:
        return [float(found.partition(DEVIATION)[2])]
    return list(_numbers(found))


def distance(check: Check) -> float:
    """How far the value is from where the check comes out the other way; zero where that cannot be read.

    >>> distance(Check("norm", "≤ 1", 0.25, None, True))
    0.75
    """
    kind, values = rule(check), stored_numbers(check)
    if kind == "close":
        size, _, relative = str(check.tolerance).partition(" ")
        summarised = isinstance(check.measured, str)
        scale = max((abs(x) for x in _numbers(check.paper)), default=0.0) if relative and not summarised else 1.0
        return float(size) * scale
    low, high = _interval(kind, _bound(kind, check.paper))
    return min(min(abs(x - low), abs(x - high)) for x in values)


def _bound(kind: Rule, paper: Json) -> Json:
    """The value to compare with: a bound, two of them, or the paper's value itself."""
    if kind == "at most" or kind == "at least":
        return float(str(paper)[2:])
    if kind == "between":
        return [float(x) for x in str(paper)[4:-1].split(",")]
    return paper


def _interval(kind: Rule, wanted: Any) -> tuple[float, float]:
    if kind == "between":
        return float(wanted[0]), float(wanted[1])
    return (-math.inf, float(wanted)) if kind == "at most" else (float(wanted), math.inf)


def _shown(kind: Rule, wanted: Any) -> Json:
    marks = {"at most": "≤ ", "at least": "≥ "}
    return f"in [{text(wanted[0])}, {text(wanted[1])}]" if kind == "between" else f"{marks[kind]}{text(wanted)}"


def _close(found: Any, wanted: Any, tolerance: Json) -> bool:
    """Whether all of `found` are within the tolerance; of a long array only the largest deviation is known."""
    size, _, relative = str(tolerance).partition(" ")
    allowed = float(size)
    if isinstance(found, str) and DEVIATION in found:
        found, wanted = float(found.partition(DEVIATION)[2]), 0.0
        relative = ""
    elif isinstance(wanted, str):  # "200 values": ours is then a deviation from them
        wanted, relative = 0.0, ""
    values = list(_numbers(found))
    targets = list(_numbers(wanted))
    targets = targets * len(values) if len(targets) == 1 else targets
    return all(abs(x - y) <= allowed * (abs(y) if relative else 1.0) for x, y in zip(values, targets, strict=True))


def _scaled(value: Json, factor: float) -> Json:
    if isinstance(value, str) and DEVIATION in value:
        return factor * float(value.partition(DEVIATION)[2])
    if isinstance(value, list):
        return [_scaled(item, factor) for item in value]
    if isinstance(value, str):
        return [factor * x for x in _numbers(value)]
    return factor * value  # type: ignore[operator]


def _numbers(value: Any) -> Iterator[float]:
    """The numbers in a stored value: one, a list, or the ends of a range in text."""
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, str) and " … " in value:
        yield from map(float, value.split(" … "))
    else:
        yield float(value)
