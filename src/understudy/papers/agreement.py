"""Agreement: whether a new measurement of a claim agrees with the ledger, check by check."""

import math

from understudy.papers.check import Check
from understudy.papers.mutations import distance, rule, stored_numbers
from understudy.papers.result import Result
from understudy.papers.values import jsonable, text

SHARE = 0.01
"""A value may move by this share of its distance to failing (or passing). Rounding moves it by less."""

RELATIVE = 1e-6


def disagreements(known: Result, new: Result) -> list[str]:
    """What differs between the ledger's result and a new one with the same settings, in words; empty if they agree."""
    if jsonable(known.settings) != jsonable(new.settings):
        return ["measured with other settings: " + text(new.settings)]
    before = {check.name: check for check in (*known.checks, *known.printed)}
    after = {check.name: check for check in (*new.checks, *new.printed)}
    lines = [f"{name}: only in the {'ledger' if name in before else 'new result'}" for name in before.keys() ^ after]
    for name in before.keys() & after.keys():
        if not agrees(before[name], after[name]):
            lines.append(
                f"{name}: was {text(before[name].measured, 12)}, is {text(after[name].measured, 12)} "
                f"({'passes' if after[name].ok else 'fails'})"
            )
    return sorted(lines)


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
