"""Plateaus of a run: periods of slow motion between faster ones, and the critical points behind them."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.signal import find_peaks

from understudy.dynamics.trajectory import Trajectory
from understudy.points.plateaus import nearest_critical
from understudy.tasks.task import Task


@dataclass(frozen=True)
class Plateau:
    """A period of slow motion. It is slowest at `time`, and within a factor `rise` of that speed from `begin` to `end`.

    `gradient_norm`, `loss`, `vector`: at the slowest kept moment. `critical`: the critical point Newton's method finds
    from there, `residual` its gradient norm, `distance` how far (in flat parameters) the run passed by it.
    """

    begin: float
    end: float
    time: float
    gradient_norm: float
    loss: float
    vector: np.ndarray
    critical: np.ndarray
    residual: float
    distance: float

    @property
    def duration(self) -> float:
        """How long it lasted."""
        return self.end - self.begin


def find_plateaus(task: Task, trajectory: Trajectory, *, rise: float = 10.0, floor: float = 1e-6) -> list[Plateau]:
    """The plateaus of a run, in order of time, from its snapshots.

    A plateau is a local minimum of the speed (the gradient norm) that lies below the highest speeds before and after it
    by a factor of at least `rise`. That is, log speed has a minimum with prominence log(rise). The end of a run is not
    a plateau, because nothing faster follows. Speeds below `floor`, about the flow's own tolerance, count as equal. The
    loss shows what happens between two snapshots: it fell by at most the highest speed times the distance. Plateaus
    shorter than the spacing of the snapshots are not seen.
    """
    if len(trajectory.times) < 3:
        return []
    points = np.concatenate([trajectory.snapshots, trajectory.flow_end[None]])
    times = np.append(trajectory.times, trajectory.time)
    losses, norms = (np.asarray(x) for x in _speeds(task, jnp.asarray(points)))
    distances = np.linalg.norm(np.diff(points, axis=0), axis=1)
    # Below this distance the fall of the loss is rounding.
    slopes = np.where(distances > 1e-5, -np.diff(losses) / np.maximum(distances, 1e-5), 0.0)
    speeds = np.empty(2 * len(norms) - 1)
    speeds[::2] = norms
    speeds[1::2] = np.maximum(np.maximum(norms[:-1], norms[1:]), slopes)
    slowest, _ = find_peaks(-np.log(np.maximum(speeds, floor)), prominence=np.log(rise))
    plateaus = []
    for peak in slowest:
        i = peak // 2 + (peak % 2 == 1 and norms[peak // 2 + 1] < norms[peak // 2])
        slow = speeds <= rise * max(norms[i], floor)
        before, after = np.flatnonzero(~slow[: 2 * i]), np.flatnonzero(~slow[2 * i :])
        begin = (before[-1] + 2) // 2 if len(before) else 0
        end = (2 * i + after[0]) // 2 if len(after) else len(times) - 1
        critical, residual = nearest_critical(task, points[i])
        plateaus.append(
            Plateau(
                begin=float(times[begin]),
                end=float(times[end]),
                time=float(times[i]),
                gradient_norm=float(norms[i]),
                loss=float(losses[i]),
                vector=points[i],
                critical=critical,
                residual=residual,
                distance=float(np.linalg.norm(critical - points[i])),
            )
        )
    return plateaus


@eqx.filter_jit
def _speeds(task: Task, points: Float[Array, "times P"]) -> tuple[Array, Array]:
    def one(vector: Array) -> tuple[Array, Array]:
        local, origin = task.chart(vector)
        loss, gradient = local.value_and_gradient(origin)
        return loss, jnp.linalg.norm(gradient)

    return jax.lax.map(one, points)
