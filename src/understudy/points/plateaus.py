"""Plateaus of a run: periods of slow motion between faster ones, and the critical points behind them."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.signal import find_peaks

from understudy.dynamics.trajectory import Trajectory
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


def nearest_critical(task: Task, vector: Float[Array, " P"] | np.ndarray, steps: int = 120) -> tuple[np.ndarray, float]:
    """A critical point of any kind near a point, by Newton's method on the gradient, and its gradient norm.

    Steps are least-squares steps of length at most 0.1. So saddles and degenerate points attract like minima do. (At
    degenerate points the distance falls by a third per step, not quadratically.)
    """
    end, norm = _newton(task, jnp.asarray(vector), steps)
    return np.asarray(end), float(norm)


@eqx.filter_jit
def _newton(task: Task, vector: Array, steps: int) -> tuple[Array, Array]:
    def iterate(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        point, best, least = carry
        local, origin = task.chart(point)
        _, gradient, hessian = local.evaluate(origin)
        norm = jnp.linalg.norm(gradient)
        best, least = jnp.where(norm < least, point, best), jnp.minimum(norm, least)
        values, vectors = jnp.linalg.eigh(hessian)
        # Directions softer than this are flat to rounding. A step along them would follow noise.
        soft = jnp.abs(values) <= 1e-13 * jnp.max(jnp.abs(values))
        step = -vectors @ jnp.where(soft, 0.0, vectors.T @ gradient / jnp.where(soft, 1.0, values))
        length = jnp.linalg.norm(step)
        return local.point(origin + step * jnp.minimum(1.0, 0.1 / jnp.maximum(length, 1e-300))), best, least

    _, best, least = jax.lax.fori_loop(0, steps, iterate, (vector, vector, jnp.asarray(jnp.inf)))
    return best, least
