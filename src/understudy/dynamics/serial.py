"""Run one compiled program with factorisations at a time.

Two such programs on two threads of one process can wait for each other forever: each occupies threads of XLA's pool
that the other needs. Processes do not share the pool, so they are not affected.
"""

import threading
from collections.abc import Callable
from typing import Any

import jax

_RUNNING = threading.RLock()


def alone(program: Callable[..., Any], *arguments: Any) -> Any:
    """Call `program` while no other thread of this process is inside `alone`, and wait for its result."""
    with _RUNNING:
        return jax.block_until_ready(program(*arguments))
