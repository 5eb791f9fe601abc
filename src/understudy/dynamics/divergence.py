"""Recognising runs that go to infinity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.dynamics.trajectory import Trajectory
from understudy.tasks.task import Task

_DECADES = 3
_STEADY = 0.8
_LEAST_GROWTH = 0.005
_STEEPEST = 0.6
_SETTLED = 1e-4


@dataclass(frozen=True)
class Divergence:
    """A run whose parameters grow without bound: ‖θ(t)‖ ~ t^`exponent` at the end (small for growth like log t), and
    which entries of the flat vector carried the growth of the last kept decade."""

    exponent: float
    norm: float
    growing: tuple[int, ...]

    def describe(self) -> str:
        """In words."""
        entries = f"; the growth is in entries {list(self.growing)} of the flat vector" if self.growing else ""
        return (
            f"parameters grow like t^{self.exponent:.2f} (norm {self.norm:.3g} at the end) while the loss still falls"
            f"{entries}"
        )


def find_divergence(trajectory: Trajectory, task: Task | None = None, scale: float = 1.0) -> Divergence | None:
    """Whether a run that did not settle goes to infinity, judged by the norm in the last three decades of time.

    A run goes to infinity if three conditions hold. It was not ended by a justified jump. The loss no longer falls
    noticeably (t‖∇L‖², its fall in a time t, is below 1e-4). And the norm grows in each of the last three decades: by
    at least 0.5 % in the last, and each time by at least 0.8 of the growth in the decade before.

    Growth like a power of t (increments rise) or like log t (increments stay the same, for example for separable data
    under a logistic cost) passes. A norm that saturates like t^-¼ or faster does not. On the way to a limit norms can
    also grow for a while, but then faster than √t or with a falling loss. A flow whose loss is bounded below cannot do
    that forever, because ‖θ(t) - θ(0)‖² ≤ t (L(0) - L(t)).

    At loose tolerances the last gradient is mostly the integrator's error in stiff directions. If `task` is given and
    snapshots were kept, the fall of the loss in the last decade is measured instead. `scale`: the size of the loss, in
    natural units.
    """
    if trajectory.ending in ("polished", "settled", "lengthening") or len(trajectory.norms) < 4 * _DECADES // 2:
        return None
    times, norms = trajectory.norms.T
    end = times[-1]
    early = np.flatnonzero(trajectory.times <= end / 10)
    speed = trajectory.gradient_norm if np.isnan(trajectory.speed) else trajectory.speed
    fall = end * speed**2
    if task is not None and len(early):
        fall = (float(task.loss(trajectory.snapshots[early[-1]])) - trajectory.loss) / trajectory.unit
    if times[0] > end / 10**_DECADES or fall > _SETTLED * scale:
        return None
    marks = end / 10.0 ** np.arange(_DECADES, -1, -1)
    along = np.interp(np.log(marks), np.log(times), norms)
    increments = np.diff(along)
    exponents = np.diff(np.log(along)) / np.log(10)
    steady = np.all(increments > 0) and np.all(increments[1:] > _STEADY * increments[:-1])
    if not steady or exponents[-1] < _LEAST_GROWTH / np.log(10) or exponents.max() > _STEEPEST:
        return None
    growing: tuple[int, ...] = ()
    if len(early):
        change = np.abs(trajectory.vector - trajectory.snapshots[early[-1]])
        growing = tuple(int(i) for i in np.flatnonzero(change > 0.2 * change.max()))
    return Divergence(float(exponents[-1]), float(norms[-1]), growing)
