"""The number of processes that work at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

JOBS = "UNDERSTUDY_JOBS"
"""Environment variable with the number of processes to use. Helper processes have it set to 1."""


def core_count() -> int:
    """How many cores this process may use, by its affinity mask and the quota of its container."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()[:2]
        return max(min(allowed, -(-int(quota) // int(period))), 1)
    except (OSError, ValueError):  # no container, or "max" instead of a number
        return allowed


def job_count(jobs: int | None = None) -> int:
    """The number of processes to use: `jobs` if given, else that of `UNDERSTUDY_JOBS`, else one per core.

    >>> job_count(3)
    3
    """
    if jobs is not None:
        return check_jobs(jobs)
    named = os.environ.get(JOBS, "").strip()
    if not named:
        return core_count()
    if not named.isdigit() or int(named) < 1:
        raise ValueError(f"{JOBS} is a number of processes, at least 1; received {named!r}.")
    return int(named)


def check_jobs(jobs: int) -> int:
    """`jobs`, or `ValueError` if it is not a number of processes."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs is a number of processes, at least 1; received {jobs!r}.")
    return jobs


@contextmanager
def use_jobs(jobs: int | None) -> Iterator[None]:
    """Within this context, `jobs` is the default number of processes. None changes nothing."""
    with unchanged_environment([JOBS]):
        if jobs is not None:
            os.environ[JOBS] = str(check_jobs(jobs))
        yield


@contextmanager
def unchanged_environment(names: Iterable[str]) -> Iterator[None]:
    """Restore these variables of the environment at the end."""
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
