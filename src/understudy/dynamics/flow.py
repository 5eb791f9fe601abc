"""Gradient flow dθ/dt = -∇L(θ) for many seeds at once, from start to critical point.

Lanes of a fixed number are advanced together by compiled chunks of Rosenbrock steps; a lane whose run has ended takes
the next start. Between chunks the host looks at lanes whose gradient has become small and tries to leave the flow for
Newton's method (see `jump`). Nothing else decides where a run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from threadpoolctl import threadpool_limits

from understudy.dynamics import jump, rosenbrock
from understudy.tasks.softened import softened
from understudy.tasks.task import Task

Ending = Literal["polished", "stationary", "time limit", "step limit", "not finite"]
"""Why a run ended: Newton took over; the gradient is at rounding with no justified jump; limits; numbers overflowed."""

_MARKS = 80
"""Quarters of a decade of time, from 10⁻² on, in which the norm of the parameters is kept."""

_RUNNING, _PAUSED, _STATIONARY, _OUT_OF_TIME, _OUT_OF_STEPS, _NOT_FINITE = range(6)
_ENDINGS: dict[int, Ending] = {
    _STATIONARY: "stationary",
    _OUT_OF_TIME: "time limit",
    _OUT_OF_STEPS: "step limit",
    _NOT_FINITE: "not finite",
}


@dataclass(frozen=True)
class FlowOptions:
    """How the flow is followed.

    - `rtol`, `atol`: tolerances on the local error of a step, relative and absolute.
    - `stop`: gradient norm at which a run counts as stationary if no jump was justified before.
    - `pause`: gradient norm at which the first jump is tried; then at every tenfold decrease.
    - `max_time`, `max_steps`: limits of one run.
    - `snapshots`: times at which parameters are kept, or how many log-spaced ones between 10⁻² and `max_time`.
    - `polish`: whether to leave the flow for Newton's method where that is justified.
    """

    rtol: float = 1e-6
    atol: float = 1e-6
    stop: float = 1e-13
    pause: float = 1e-3
    max_time: float = 1e12
    max_steps: int = 20_000
    snapshots: int | Sequence[float] | np.ndarray = 113
    polish: bool = True

    def __post_init__(self) -> None:
        for name in ("rtol", "atol", "max_time", "max_steps"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive; received {getattr(self, name)!r}.")
        if np.any(np.isnan(self.times)) or np.any(np.diff(self.times) <= 0) or np.any(self.times < 0):
            raise ValueError(f"Snapshot times are increasing and not negative; received {self.snapshots!r}.")

    @cached_property
    def times(self) -> np.ndarray:
        """The snapshot times."""
        if isinstance(self.snapshots, (int, np.integer)):
            count = max(int(self.snapshots), 0)
            return np.geomspace(min(1e-2, 1e-2 * self.max_time), self.max_time, count) if count else np.zeros(0)
        return np.asarray(self.snapshots, float)


class Lanes(NamedTuple):
    """What is carried from step to step, for every lane."""

    vector: Float[Array, "lanes P"]
    time: Float[Array, " lanes"]
    step: Float[Array, " lanes"]
    status: Int[Array, " lanes"]
    pause: Float[Array, " lanes"]
    gradient_norm: Float[Array, " lanes"]
    loss: Float[Array, " lanes"]
    accepted: Int[Array, " lanes"]
    rejected: Int[Array, " lanes"]
    kept: Float[Array, "lanes times P"]
    norms: Float[Array, "lanes marks 2"]


@dataclass(frozen=True)
class Trajectory:
    """One run of the flow: where it ended, why, and what was kept on the way.

    `times`, `snapshots`: the snapshot times that the run reached, and the parameters then. `jump` tells of the jump
    that ended the flow, if one did: its departure time is `time`, `flow_end` the last point of the flow itself.
    `norms`: pairs (t, ‖θ(t)‖), one or none in each quarter of a decade of time.
    """

    vector: np.ndarray
    loss: float
    gradient_norm: float
    ending: Ending
    time: float
    steps: int
    rejected: int
    times: np.ndarray = field(repr=False)
    snapshots: np.ndarray = field(repr=False)
    flow_end: np.ndarray = field(repr=False)
    jump: dict[str, float] | None = None
    norms: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)), repr=False)


def _advance_lane(task: Task, s: Lanes, times: Array, rtol: Array, atol: Array, stop: Array, limits: Array) -> Lanes:
    """One attempted step of one lane."""
    local, origin = task.chart(s.vector)
    loss, gradient, hessian = local.evaluate(origin)
    norm = jnp.linalg.norm(gradient)
    left = limits[0] - s.time
    h = jnp.where((left > 0) & (left < s.step), left, s.step)
    taken = rosenbrock.step(local.slope, origin, gradient, hessian, h)
    scale = atol + rtol * jnp.maximum(jnp.abs(origin), jnp.abs(taken.end))
    error = jnp.sqrt(jnp.mean((taken.error / scale) ** 2))
    finite = jnp.isfinite(error)
    good = finite & (error <= 1)
    factor = jnp.where(finite, jnp.clip(0.9 * jnp.maximum(error, 1e-12) ** (-1 / rosenbrock.ORDER), 0.2, 6.0), 0.25)

    status = jnp.select(
        [
            ~jnp.isfinite(norm) | ~jnp.isfinite(loss),
            norm <= stop,
            norm <= s.pause,
            s.time >= limits[0],
            s.accepted + s.rejected >= limits[1],
            s.step < 1e-14 * (1 + s.time),
        ],
        [_NOT_FINITE, _STATIONARY, _PAUSED, _OUT_OF_TIME, _OUT_OF_STEPS, _OUT_OF_STEPS],
        _RUNNING,
    )
    running = s.status == _RUNNING
    moves = running & (status == _RUNNING)
    accept = moves & good
    fraction = (times - s.time) / h
    if times.shape[0]:
        inside = accept & (fraction > 0) & (fraction <= 1)
        between = jax.vmap(local.point)(taken.between(jnp.clip(fraction, 0.0, 1.0)))
        kept = jnp.where(inside[:, None], between, s.kept)
    else:
        kept = s.kept
    end, time = local.point(taken.end), jnp.where(h < s.step, limits[0], s.time + h)
    mark = jnp.floor(4 * jnp.log10(jnp.maximum(time, 1e-2)) + 8)
    here = accept & (jnp.arange(_MARKS) == mark)
    return Lanes(
        vector=jnp.where(accept, end, s.vector),
        time=jnp.where(accept, time, s.time),
        step=jnp.where(moves, h * jnp.where(good, factor, jnp.minimum(factor, 0.9)), s.step),
        status=jnp.where(running, status, s.status),
        pause=s.pause,
        gradient_norm=jnp.where(running, norm, s.gradient_norm),
        loss=jnp.where(running, loss, s.loss),
        accepted=s.accepted + accept,
        rejected=s.rejected + (moves & ~good),
        kept=kept,
        norms=jnp.where(here[:, None], jnp.stack([time, jnp.linalg.norm(end)])[None], s.norms),
    )


@eqx.filter_jit
def _advance(
    task: Task, lanes: Lanes, times: Array, rtol: Array, atol: Array, stop: Array, limits: Array, chunk: Array
) -> Lanes:
    """Up to `chunk` steps of every lane that is running."""
    one = jax.vmap(_advance_lane, in_axes=(None, 0, None, None, None, None, None))

    def condition(carry: tuple[Array, Lanes]) -> Array:
        return (carry[0] < chunk) & jnp.any(carry[1].status == _RUNNING)

    def body(carry: tuple[Array, Lanes]) -> tuple[Array, Lanes]:
        return carry[0] + 1, one(task, carry[1], times, rtol, atol, stop, limits)

    return jax.lax.while_loop(condition, body, (jnp.asarray(0), lanes))[1]


def lanes_for(size: int, seeds: int) -> int:
    """How many runs are advanced together: many small ones; one by one where factorisations cost most (P > 300)."""
    wide = 16 if size <= 64 else 8 if size <= 160 else 2 if size <= 300 else 1
    return 1 if seeds == 1 else wide  # one of two shapes for a given size, so that compiled programs are found again


def follow(
    task: Task,
    starts: Float[Array, "seeds P"] | Float[np.ndarray, "seeds P"],
    options: FlowOptions | None = None,
    *,
    lanes: int | None = None,
    watch: Callable[[int, int, float], None] | None = None,
) -> Iterator[tuple[int, Trajectory]]:
    """Follow the flow from every start; yields (index of the start, its trajectory) as runs end.

    `watch(running lanes, steps so far, largest time)` is called between chunks.
    """
    options = FlowOptions() if options is None else options
    starts = np.asarray(starts, float)
    seeds, size = starts.shape
    count = lanes_for(size, seeds) if lanes is None else lanes
    with threadpool_limits(limits=1, user_api="blas"):
        yield from _follow(task, starts, options, count, watch)


def _follow(
    task: Task,
    starts: np.ndarray,
    options: FlowOptions,
    count: int,
    watch: Callable[[int, int, float], None] | None,
) -> Iterator[tuple[int, Trajectory]]:
    seeds, size = starts.shape
    times = options.times
    base = softened(task, options.atol)
    moving = base.prepared(jnp.asarray(starts))
    rtol, atol, stop = (jnp.asarray(x, float) for x in (options.rtol, options.atol, options.stop))
    marks = jnp.asarray(times)
    limits = jnp.asarray([options.max_time, options.max_steps], float)
    pause = options.pause if options.polish else 0.0
    now = {
        "vector": np.zeros((count, size)),
        "time": np.zeros(count),
        "step": np.full(count, 1e-2),
        "status": np.full(count, _STATIONARY),
        "pause": np.zeros(count),
        "gradient_norm": np.zeros(count),
        "loss": np.zeros(count),
        "accepted": np.zeros(count, int),
        "rejected": np.zeros(count, int),
        "kept": np.zeros((count, len(times), size)),
        "norms": np.zeros((count, _MARKS, 2)),
    }
    owner = [-1] * count
    waiting = list(range(seeds))[::-1]
    chunk = jnp.asarray(max(4, min(25, 20_000 // size)))

    def load(lane: int) -> None:
        owner[lane] = waiting.pop() if waiting else -1
        now["status"][lane] = _RUNNING if owner[lane] >= 0 else _STATIONARY
        if owner[lane] >= 0:
            now["vector"][lane] = starts[owner[lane]]
            now["time"][lane], now["step"][lane], now["pause"][lane] = 0.0, 1e-2, pause
            now["accepted"][lane] = now["rejected"][lane] = 0
            now["kept"][lane] = np.where((times == 0)[:, None], starts[owner[lane]], np.nan)
            now["norms"][lane] = np.nan

    def advance(to_move: Task) -> dict[str, np.ndarray]:
        lanes = Lanes(**{k: jnp.asarray(v) for k, v in now.items()})
        moved = _advance(to_move, lanes, marks, rtol, atol, stop, limits, chunk)
        return {k: np.array(v) for k, v in moved._asdict().items()}

    for lane in range(count):
        load(lane)
    while any(o >= 0 for o in owner):
        busy = [i for i, o in enumerate(owner) if o >= 0]
        after = advance(moving)
        finer = moving.prepared(jnp.asarray(after["vector"][busy]))
        if finer is not moving:
            moving = finer  # norms have outgrown the quadrature within this chunk: the chunk is taken again
            continue
        now = after
        moving = base.prepared(jnp.asarray(now["vector"][busy]))
        if watch is not None:
            watch(len(busy), int(now["accepted"][busy].sum()), float(now["time"][busy].max()))
        ready = [i for i in busy if now["status"][i] == _PAUSED or (now["status"][i] == _STATIONARY and options.polish)]
        jumps = _jumps(task, now["vector"], ready)
        for lane in busy:
            if now["status"][lane] == _RUNNING:
                continue
            leap = jumps.get(lane)
            if leap is not None or now["status"][lane] != _PAUSED:
                # Copies: the lane's next run is written over these arrays.
                yield owner[lane], _trajectory({k: v[lane].copy() for k, v in now.items()}, times, leap)
                load(lane)
            else:
                # Refused: the flow goes on, and the next attempt waits for a gradient ten times smaller.
                now["pause"][lane] = max(0.1 * now["gradient_norm"][lane], 1e-300)
                now["status"][lane] = _RUNNING


def _jumps(task: Task, vectors: np.ndarray, lanes: list[int]) -> dict[int, jump.Jump]:
    """Justified jumps by lane."""
    if not lanes:
        return {}
    task = task.prepared(jnp.asarray(vectors[lanes]))
    tried = {lane: jump.attempt_from(task, jnp.asarray(vectors[lane])) for lane in lanes}
    return {lane: jax.tree.map(np.asarray, j) for lane, j in tried.items() if bool(j.justified)}


def _trajectory(lane: dict[str, np.ndarray], times: np.ndarray, leap: jump.Jump | None) -> Trajectory:
    reached = times <= lane["time"]
    common = {
        "time": float(lane["time"]),
        "steps": int(lane["accepted"]),
        "rejected": int(lane["rejected"]),
        "times": times[reached],
        "snapshots": lane["kept"][reached],
        "flow_end": lane["vector"],
        "norms": lane["norms"][np.isfinite(lane["norms"][:, 0])],
    }
    if leap is None:
        ending = _ENDINGS[int(lane["status"])]
        return Trajectory(lane["vector"], float(lane["loss"]), float(lane["gradient_norm"]), ending, **common)
    evidence = {
        "gradient_norm": float(lane["gradient_norm"]),
        "decrement": float(leap.decrement),
        "distance": float(leap.distance),
        "ratio": float(leap.ratio),
    }
    return Trajectory(
        np.asarray(leap.end), float(leap.loss), float(leap.gradient_norm), "polished", **common, jump=evidence
    )
