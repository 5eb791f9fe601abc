"""How long a run of the benchmarks may take, and medians of repeated timings."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

SECONDS = float(os.environ.get("UNDERSTUDY_BENCH_SECONDS", "1200"))
"""When this many seconds have passed, sections that have not begun are left out, and said to be."""

_begun = time.perf_counter()


def is_spent(needed: float = 0.0) -> bool:
    """Whether there is no time left for something that takes `needed` seconds."""
    return time.perf_counter() - _begun + needed > SECONDS


def alternate(candidates: dict[str, Callable[[], Any]], rounds: int, most: float) -> dict[str, list[Any]]:
    """Call the candidates in turn, `rounds` times, so that other work on the machine falls on all of them.

    A candidate that has used `most` seconds, or that returned a reason why it failed, is not called again. Their
    results, by name."""
    found: dict[str, list[Any]] = {name: [] for name in candidates}
    spent = dict.fromkeys(candidates, 0.0)
    for number in range(rounds):
        for name, candidate in candidates.items():
            last = spent[name] / number if number else 0.0
            if number and (len(found[name]) < number or spent[name] + last > most or is_spent(last)):
                continue
            clock = time.perf_counter()
            result = candidate()
            elapsed = getattr(result, "seconds", time.perf_counter() - clock)  # without compiling, if it says so
            spent[name] += most if isinstance(result, str) else elapsed  # a string is a reason why it failed
            found[name].append(result)
    return found


def told(seconds: Sequence[float]) -> str:
    """Median and range, and how many there were if fewer than three.

    >>> told([3.0, 1.0, 2.0]), told([1.0])
    ('2.00 (1.00-3.00)', '1.00 (once)')
    """
    middle = statistics.median(seconds)
    if len(seconds) == 1:
        return f"{middle:.2f} (once)"
    twice = ", twice" if len(seconds) == 2 else ""
    return f"{middle:.2f} ({min(seconds):.2f}-{max(seconds):.2f}{twice})"
