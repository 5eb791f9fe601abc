"""Gradient flow dθ/dt = -∇L(θ) for many seeds at once, from start to critical point.

Lanes of a fixed number are advanced together by compiled chunks of Rosenbrock steps; a lane whose run has ended takes
the next start. Between chunks the host looks at lanes whose gradient has become small and tries to leave the flow for
Newton's method (see `jump`). Nothing else decides where a run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from threadpoolctl import threadpool_limits

from understudy.dynamics import jump, lanes, large
from understudy.dynamics.lanes import MARKS, NOT_FINITE, OUT_OF_STEPS, OUT_OF_TIME, PAUSED, RUNNING, STATIONARY
from understudy.tasks.softened import softened
from understudy.tasks.task import Task

Ending = Literal["polished", "stationary", "time limit", "step limit", "not finite"]
"""Why a run ended: Newton took over; the gradient is at rounding with no justified jump; limits; numbers overflowed."""

_ENDINGS: dict[int, Ending] = {
    STATIONARY: "stationary",
    OUT_OF_TIME: "time limit",
    OUT_OF_STEPS: "step limit",
    NOT_FINITE: "not finite",
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


def lanes_for(size: int, seeds: int) -> int:
    """How many runs are advanced together: many small ones; one by one where factorisations cost most."""
    wide = 16 if size <= 64 else 8 if size <= 160 else 2 if size <= large.LARGE else 1
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
    tolerances = (float(options.rtol), float(options.atol), float(options.stop))
    limits = (float(options.max_time), float(options.max_steps))
    pause = options.pause if options.polish else 0.0
    now = {
        "vector": np.zeros((count, size)),
        "time": np.zeros(count),
        "step": np.full(count, 1e-2),
        "status": np.full(count, STATIONARY),
        "pause": np.zeros(count),
        "gradient_norm": np.zeros(count),
        "loss": np.zeros(count),
        "accepted": np.zeros(count, int),
        "rejected": np.zeros(count, int),
        "kept": np.zeros((count, len(times), size)),
        "norms": np.zeros((count, MARKS, 2)),
    }
    owner = [-1] * count
    waiting = list(range(seeds))[::-1]
    chunk = max(4, min(25, 20_000 // size))

    def load(lane: int) -> None:
        owner[lane] = waiting.pop() if waiting else -1
        now["status"][lane] = RUNNING if owner[lane] >= 0 else STATIONARY
        if owner[lane] >= 0:
            now["vector"][lane] = starts[owner[lane]]
            now["time"][lane], now["step"][lane], now["pause"][lane] = 0.0, 1e-2, pause
            now["accepted"][lane] = now["rejected"][lane] = 0
            now["kept"][lane] = np.where((times == 0)[:, None], starts[owner[lane]], np.nan)
            now["norms"][lane] = np.nan

    def advance(to_move: Task) -> dict[str, np.ndarray]:
        if count == 1 and size > large.LARGE:
            return large.advance_large(to_move, now, times, tolerances, limits, chunk)
        state = lanes.Lanes(**{k: jnp.asarray(v) for k, v in now.items()})
        rtol, atol, stop = (jnp.asarray(x, float) for x in tolerances)
        bounds = jnp.asarray(limits, float)
        after = lanes.advance(to_move, state, jnp.asarray(times), rtol, atol, stop, bounds, jnp.asarray(chunk))
        return {k: np.array(v) for k, v in after._asdict().items()}

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
        ready = [i for i in busy if now["status"][i] == PAUSED or (now["status"][i] == STATIONARY and options.polish)]
        jumps = _jumps(task, now["vector"], ready)
        for lane in busy:
            if now["status"][lane] == RUNNING:
                continue
            leap = jumps.get(lane)
            if leap is not None or now["status"][lane] != PAUSED:
                # Copies: the lane's next run is written over these arrays.
                yield owner[lane], _trajectory({k: v[lane].copy() for k, v in now.items()}, times, leap)
                load(lane)
            else:
                # Refused: the flow goes on, and the next attempt waits for a gradient ten times smaller.
                now["pause"][lane] = max(0.1 * now["gradient_norm"][lane], 1e-300)
                now["status"][lane] = RUNNING


def _jumps(task: Task, vectors: np.ndarray, lanes: list[int]) -> dict[int, jump.Jump]:
    """Justified jumps by lane."""
    if not lanes:
        return {}
    task = task.prepared(jnp.asarray(vectors[lanes]))
    tried = {lane: jump.attempt_from(task, vectors[lane]) for lane in lanes}
    return {lane: found for lane, found in tried.items() if found.justified}


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
        "decrement": leap.decrement,
        "distance": leap.distance,
        "ratio": leap.ratio,
    }
    return Trajectory(leap.end, leap.loss, leap.gradient_norm, "polished", **common, jump=evidence)
