"""Recognising runs that go to infinity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.dynamics.flow import Trajectory

_DECADES = 2.0
_LEAST_EXPONENT = 0.02
_LEAST_GROWTH = 1.2


@dataclass(frozen=True)
class Divergence:
    """A run whose parameters grow without bound: ‖θ(t)‖ ~ t^`exponent`, and which entries carry the growth."""

    exponent: float
    norm: float
    growing: tuple[int, ...]

    def describe(self) -> str:
        """In words."""
        return (
            f"parameters grow like t^{self.exponent:.2f} (norm {self.norm:.3g} at the end) while the loss still falls; "
            f"the growth is in entries {list(self.growing)} of the flat vector"
        )


def find_divergence(trajectory: Trajectory) -> Divergence | None:
    """Whether the last decades of a run that did not settle show steady growth of the parameters.

    The rule: the run was not ended by a justified jump; over the last two decades of time the norm grew by at least a
    fifth and monotonically, with an exponent d log‖θ‖ / d log t above 0.02 that has not fallen to less than half of its
    earlier value (a norm that saturates fails this).
    """
    if trajectory.ending == "polished" or len(trajectory.times) < 8:
        return None
    times, points = trajectory.times, trajectory.snapshots
    late = times >= times[-1] / 10**_DECADES
    if late.sum() < 6:
        return None
    norms = np.linalg.norm(points[late], axis=1)
    growth = norms[-1] / norms[0]
    exponents = np.diff(np.log(norms)) / np.diff(np.log(times[late]))
    half = len(exponents) // 2
    early_rate, late_rate = exponents[:half].mean(), exponents[half:].mean()
    steady = late_rate > _LEAST_EXPONENT and late_rate > 0.5 * early_rate and np.all(exponents > 0)
    if growth < _LEAST_GROWTH or not steady:
        return None
    change = np.abs(points[-1] - points[late][0])
    growing = tuple(int(i) for i in np.flatnonzero(change > 0.2 * change.max()))
    return Divergence(float(late_rate), float(norms[-1]), growing)
