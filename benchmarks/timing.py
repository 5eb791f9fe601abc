"""How everything here is timed: warm, the best of many short rounds, until the result is there."""

import time
from collections.abc import Callable
from typing import Any

import jax


def best(function: Callable[[], Any], *, rounds: int = 40, seconds: float = 0.02) -> float:
    """Seconds of one call: the least mean over rounds of about `seconds` each, after a call that compiles.

    Short rounds and the least of them, because other work on the machine only ever adds to a time.
    """
    jax.block_until_ready(function())
    start = time.perf_counter()
    jax.block_until_ready(function())
    repeats = max(1, int(seconds / max(time.perf_counter() - start, 1e-6)))
    means = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            jax.block_until_ready(function())
        means.append((time.perf_counter() - start) / repeats)
    return min(means)
