"""Searches that start between two minima, where the saddles that join them are."""

from collections.abc import Sequence

import numpy as np

from understudy.landscape.search import GAUSS_NEWTON, Plan
from understudy.landscape.strings import straight
from understudy.tasks.task import Task

IMAGES = 12
"""Starts are inner points of a line with this many points, two or more away from its ends."""


def between(task: Task, minima: Sequence[np.ndarray], count: int, seed: int) -> Plan | None:
    """Gauss-Newton searches from random points of straight lines between two minima; None if there are no two.

    The second one is a random symmetric copy, half of the time the copy that is closest to the first.
    """
    symmetries = task.symmetries()
    if not minima or count < 1 or (len(minima) == 1 and symmetries is None):
        return None
    starts = []
    for i in range(count):
        rng = np.random.default_rng([7, seed, i])
        first, second = (minima[j] for j in rng.integers(len(minima), size=2))
        if symmetries is not None:
            second = symmetries.image(second, rng)
            if rng.random() < 0.5:
                second = symmetries.closest(second, first)
        starts.append(straight(task, first, second, IMAGES)[rng.integers(2, IMAGES - 2)])
    return Plan(np.stack(starts), np.full(count, 3), np.full(count, GAUSS_NEWTON))
