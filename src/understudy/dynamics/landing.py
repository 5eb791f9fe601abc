"""Move the end of a flow of the smoothed loss to the corresponding point on the kinks."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from understudy.dynamics.divergence import find_divergence
from understudy.dynamics.settle import settle_from
from understudy.dynamics.trajectory import Trajectory
from understudy.tasks.task import Task

_NEAR = 0.1
"""How far `settle` may move the end, relative to 1 + its norm; farther away is another point."""

_STATIONARY = 1e-8
"""Largest residual that counts as having settled; Newton's method reaches rounding where the point is not
degenerate."""


def land(task: Task, trajectory: Trajectory, width: float) -> Trajectory:
    """The trajectory with its end moved onto the kinks, if Newton's method settles there; `width`: of the smoothing.

    Runs that go to infinity or overflowed are not changed, because they have no end to settle in. Loss and gradient
    norm are always those of the task itself, not of its smoothed form.
    """
    end = jnp.asarray(trajectory.vector)
    loss = float(task.loss(end))
    plain = replace(trajectory, loss=loss, gradient_norm=float(jnp.linalg.norm(task.gradient(end))), jump=None)
    limited = plain.ending in ("time limit", "step limit")
    if plain.ending == "not finite" or (limited and find_divergence(trajectory) is not None):
        return plain
    settled = settle_from(task, end, width)
    moved = float(np.linalg.norm(settled.vector - trajectory.vector))
    near = moved <= _NEAR * (1 + float(np.linalg.norm(trajectory.vector)))
    lower = settled.loss <= loss + 1e-9 * abs(loss)
    if near and lower and settled.residual + settled.slack <= _STATIONARY:
        return replace(
            plain, vector=settled.vector, loss=settled.loss, gradient_norm=settled.residual, ending="settled"
        )
    return replace(plain, ending="stationary" if plain.ending == "polished" else plain.ending)
