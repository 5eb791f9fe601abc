"""Agreement: whether a new measurement of a claim agrees with the ledger.

A run **agrees** with the ledger if, for every claim,

- each check passes or fails as it did in the ledger's result at the same scale, with the same settings, and
- each finding has the status that the ledger gives it. The ledger's status is that of its largest scale. A quick run
  may say "reproduced in part" where it says "reproduced", because "reproduced" needs the paper's scale, and may leave a
  finding open that says why it needs full scale (`needs_full` of the judgement).

A claim whose data are not on this machine is not compared.

A number that **moved** by more than a hundredth of its distance to the other outcome is reported, but is not a
disagreement: training amplifies rounding, which differs between processors.
"""

import math
from dataclasses import dataclass

from understudy.papers.check import Check
from understudy.papers.findings import findings
from understudy.papers.ledger import Entry
from understudy.papers.measurement import UNMEASURED
from understudy.papers.mutations import distance, rule, stored_numbers
from understudy.papers.result import Result
from understudy.papers.values import jsonable, text

SHARE = 0.01
"""A value may move by this share of its distance to failing (or passing). Rounding moves it by less."""

RELATIVE = 1e-6


@dataclass(frozen=True)
class Comparison:
    """A new result beside the ledger's: what disagrees, what moved, and what needs full scale, in words."""

    differs: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    open: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether every check and every finding came out as recorded."""
        return not self.differs


def compare(entry: Entry, new: Result) -> Comparison:
    """Compare a new result with the ledger's results of the claim."""
    known = entry.results.get(new.scale)
    if new.status in UNMEASURED:
        told = (f"{new.status}: {new.error.strip().splitlines()[-1]}",)
        return Comparison(open=told) if new.status == "not yet" else Comparison(told)
    if known is None:
        return Comparison((f"the ledger has no result at {new.scale} scale",))
    if jsonable(known.settings) != jsonable(new.settings):
        return Comparison((f"measured with other settings than the ledger's: {text(new.settings)}",))
    differs, moved = compare_checks(known, new)
    against, left = compare_statuses(entry, new)
    return Comparison((*differs, *against), moved, left)


def compare_checks(known: Result, new: Result) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The checks that came out differently, and those whose numbers moved, in words."""
    before = {check.name: check for check in (*known.checks, *known.printed)}
    after = {check.name: check for check in (*new.checks, *new.printed)}
    differs = [f"{name}: only in the {'ledger' if name in before else 'new result'}" for name in before.keys() ^ after]
    moved = []
    for name in before.keys() & after.keys():
        told = f"{name}: was {text(before[name].measured, 12)}, is {text(after[name].measured, 12)}"
        if before[name].ok != after[name].ok or rule(before[name]) != rule(after[name]):
            differs.append(f"{told} ({'passes' if after[name].ok else 'fails'})")
        elif not agrees(before[name], after[name]):
            moved.append(told)
    return tuple(sorted(differs)), tuple(sorted(moved))


def compare_statuses(entry: Entry, new: Result) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The findings whose status is not the ledger's, and those that this run leaves to full scale, in words."""
    given = {found.finding: found for found in findings(entry, new)}
    differs, left = [], []
    for recorded in findings(entry, entry.best):
        found = given.get(recorded.finding)
        allowed = {recorded.status} | ({"reproduced in part"} if recorded.status == "reproduced" else set())
        if found is None:
            differs.append(f"no finding instead of {recorded.status}: {recorded.finding}")
        elif found.status == "not yet" and recorded.status != "not yet":
            left.append(f"{recorded.status}, {found.scale}: {recorded.finding}")
        elif found.status not in allowed:
            differs.append(f"{found.status} instead of {recorded.status}: {recorded.finding}")
    return tuple(differs), tuple(left)


def agrees(old: Check, new: Check) -> bool:
    """Whether the outcome is the same and the value moved by at most a hundredth of the way to the other outcome.

    >>> agrees(Check("loss", "≤ 1e-08", 1.3e-11, None, True), Check("loss", "≤ 1e-08", 1.5e-11, None, True))
    True
    >>> agrees(Check("norm", "≤ 1", 0.5, None, True), Check("norm", "≤ 1", 0.6, None, True))
    False
    """
    if old.ok != new.ok or rule(old) != rule(new):
        return False
    if rule(old) == "holds":
        return True
    if rule(old) == "equal":
        return old.measured == new.measured
    a, b = stored_numbers(old), stored_numbers(new)
    if len(a) != len(b):
        return False
    allowed = SHARE * distance(old)
    return all(
        abs(x - y) <= max(allowed, RELATIVE * abs(x)) or (math.isinf(x) and x == y) for x, y in zip(a, b, strict=True)
    )
