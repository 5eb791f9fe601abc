"""Searches that start at symmetric points, where the symmetric saddles are that random starts rarely find."""

import numpy as np

from understudy.landscape.search import Plan, plan
from understudy.landscape.strings import onto
from understudy.tasks.task import Task

_GONE = 1e-3
"""A neuron whose weights are this small a share of those of a random start is gone; such starts are drawn again."""


def symmetric_starts(task: Task, count: int, seed: int, init_std: float) -> Plan | None:
    """Searches from random starts that a random symmetry keeps (see `Symmetries.symmetric`).

    They descend and choose their targets as random searches do. None if the task has no known symmetries.
    """
    symmetries = task.symmetries()
    if symmetries is None or count < 1:
        return None
    random = plan(task, seed, range(count), init_std, stream=13)
    starts = []
    for i, start in enumerate(random.starts):
        rng = np.random.default_rng([11, seed, i])
        candidates = [symmetries.symmetric(start, rng) for _ in range(8)]
        starts.append(next((c for c in candidates if _whole(c[symmetries.layout], start)), start))
    return Plan(onto(task, np.stack(starts)), random.descents, random.targets)


def _whole(rows: np.ndarray, start: np.ndarray) -> bool:
    """Whether no neuron averaged out."""
    return bool(np.linalg.norm(rows, axis=1).min() > _GONE * np.linalg.norm(start) / np.sqrt(len(rows)))
