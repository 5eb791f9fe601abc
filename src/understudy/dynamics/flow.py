"""Gradient flow dθ/dt = -∇L(θ) for many seeds at once, from start to critical point.

Large problems are followed one by one (see `large`). For smaller ones a fixed number of lanes is advanced together, by
compiled chunks of Rosenbrock steps. When the run of a lane has ended, the lane takes the next start. Between chunks the
host looks for lanes whose gradient has become small, and tries to change to Newton's method there (see `jump`). Nothing
else decides where a run ends.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from threadpoolctl import threadpool_limits

from understudy.dynamics import jump, large, rosenbrock
from understudy.dynamics.landing import land
from understudy.dynamics.lengthening import Lengthening, find_lengthening, may_lengthen, suspects
from understudy.dynamics.serial import alone
from understudy.dynamics.trajectory import MARKS, Ending, FlowOptions, Trajectory
from understudy.kept_programs import kept
from understudy.tasks.rescaled import rescaled
from understudy.tasks.task import Evaluation, Task
from understudy.tasks.units import Units

_NOISE = 10.0
"""How large, in absolute tolerances, the noise is that smoothes kinks at zero: the error of a step is small relative to
it."""

_ROUNDED = 100.0
"""How large, in absolute tolerances, the width is over which kinks |z| are rounded off. The error of a step, a few
tolerances in z, must be small relative to it: at 10 the gradient is noise, and runs take twenty times as many steps."""

_AT_REST = 0.01
"""Gradient norm of the rounded loss, relative to the width of its kinks, at which a run is at rest. Further slopes are
due to the rounding itself: it breaks the rescaling symmetry of ReLU neurons and would make them grow forever."""

_WINDOW = 16
"""The largest number of snapshots that one step may pass: this many are looked at after each step."""

_RUNNING, _PAUSED, _STATIONARY, _OUT_OF_TIME, _OUT_OF_STEPS, _NOT_FINITE = range(6)
_ENDINGS: dict[int, Ending] = {
    _RUNNING: "lengthening",
    _STATIONARY: "stationary",
    _OUT_OF_TIME: "time limit",
    _OUT_OF_STEPS: "step limit",
    _NOT_FINITE: "not finite",
}


class Lanes(NamedTuple):
    """The state that is carried from step to step, for every lane."""

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


def _advance_lane(task: Task, s: Lanes, times: Array, rtol: Array, atol: Array, stop: Array, limits: Array) -> Lanes:
    """One attempted step of one lane."""
    local, origin = task.chart(s.vector)
    loss, gradient, hessian = local.evaluate(origin)
    norm = jnp.linalg.norm(gradient)
    left = limits[0] - s.time
    h = jnp.where((left > 0) & (left < s.step), left, s.step)
    window, first = min(_WINDOW, times.shape[0]), jnp.searchsorted(times, s.time, side="right")
    if times.shape[0] > window:
        last = first + window - 1
        ahead = times[jnp.minimum(last, times.shape[0] - 1)] - s.time
        h = jnp.where((last < times.shape[0] - 1) & (ahead < h), ahead, h)
    taken = rosenbrock.step(local.slope, origin, gradient, hessian, h)
    scale = atol + rtol * jnp.maximum(jnp.abs(origin), jnp.abs(taken.end))
    error = rosenbrock.ESTIMATE * jnp.sqrt(jnp.mean((taken.error / scale) ** 2))
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
    kept = s.kept
    if times.shape[0]:
        rows = jnp.minimum(first, times.shape[0] - window)
        fraction = (jax.lax.dynamic_slice(times, (rows,), (window,)) - s.time) / h
        inside = accept & (fraction > 0) & (fraction <= 1 + 1e-12)
        between = jax.vmap(local.point)(taken.between(jnp.clip(fraction, 0.0, 1.0)))
        old = jax.lax.dynamic_slice(kept, (rows, jnp.zeros_like(rows)), between.shape)
        kept = jax.lax.dynamic_update_slice(
            kept, jnp.where(inside[:, None], between, old), (rows, jnp.zeros_like(rows))
        )
    end, time = local.point(taken.end), jnp.where(h == left, limits[0], s.time + h)
    mark = jnp.floor(4 * jnp.log10(jnp.maximum(time, 1e-2)) + 8)
    here = accept & (jnp.arange(MARKS) == mark)
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


@kept
def _advance(
    task: Task, lanes: Lanes, times: Array, rtol: Array, atol: Array, stop: Array, limits: Array, chunk: Array
) -> Lanes:
    """Advance every running lane by up to `chunk` steps, fewer if a quarter of the lanes have stopped.

    A stopped lane costs as much as a running one until the host gives it a new start.
    """
    one = jax.vmap(_advance_lane, in_axes=(None, 0, None, None, None, None, None))
    enough = jnp.maximum(jnp.sum(lanes.status == _RUNNING) - max(1, lanes.status.size // 4), 0)

    def condition(carry: tuple[Array, Lanes]) -> Array:
        return (carry[0] < chunk) & (jnp.sum(carry[1].status == _RUNNING) > enough)

    def body(carry: tuple[Array, Lanes]) -> tuple[Array, Lanes]:
        return carry[0] + 1, one(task, carry[1], times, rtol, atol, stop, limits)

    return jax.lax.while_loop(condition, body, (jnp.asarray(0), lanes))[1]


@kept
def _evaluate(task: Task, vector: Array) -> Evaluation:
    return task.evaluate(vector)


def _numbers(task: Task, vector: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss, gradient and Hessian at a point."""
    loss, gradient, hessian = alone(_evaluate, task, vector)
    return float(loss), np.asarray(gradient), np.asarray(hessian)


class Glimpse(NamedTuple):
    """A run between two chunks of steps: its current point, and the snapshots since its start.

    `loss` and `gradient_norm` are those at the beginning of the last step.
    """

    time: float
    loss: float
    gradient_norm: float
    vector: Float[np.ndarray, " P"]
    times: Float[np.ndarray, " reached"]
    snapshots: Float[np.ndarray, "reached P"]


def lanes_for(size: int, seeds: int, closed_form: bool = True) -> int:
    """How many runs are advanced together: many small ones, but only one where factorisations dominate (P > 300).

    There are only two shapes for a given size, so that compiled programs are reused. Without closed forms an empty lane
    costs more than compiling: there is a shape for each power of two.
    """
    wide = 16 if size <= 64 else 4 if size <= 160 else 2 if size <= 300 else 1
    if seeds == 1:
        return 1
    return wide if closed_form else min(wide, 1 << (seeds - 1).bit_length())


def follow(
    task: Task,
    starts: Float[Array, "seeds P"] | Float[np.ndarray, "seeds P"],
    options: FlowOptions | None = None,
    *,
    lanes: int | None = None,
    watch: Callable[[int, int, float], None] | None = None,
    observe: Callable[[int, Glimpse], None] | None = None,
) -> Iterator[tuple[int, Trajectory]]:
    """Follow the flow from every start. Yield (index of the start, its trajectory) as runs end.

    If the loss has kinks (`task.kinked`), the flow of the smoothed loss is followed, and its end is moved onto the
    kinks; see `land`.

    **Arguments**

    - `watch(running lanes, steps so far, largest time)` is called between chunks of steps.
    - `observe(index of the start, glimpse)` is called after every step of every run. This is slower: chunks then have
      one step, and large problems are followed like small ones.
    """
    options = FlowOptions() if options is None else options
    starts = np.asarray(starts, float)
    units = task.units(starts)
    if not units.ordinary:
        yield from _follow_rescaled(task, starts, units, options, lanes, watch, observe)
        return
    seeds, size = starts.shape
    count = lanes_for(size, seeds, task.closed_form) if lanes is None else lanes
    if task.kinked:
        width = _ROUNDED * options.atol
        rounded = replace(options, stop=max(options.stop, _AT_REST * width))
        for index, run in follow(task.softened(width), starts, rounded, lanes=lanes, watch=watch, observe=observe):
            yield index, land(task, run, width)
        return
    with threadpool_limits(limits=1, user_api="blas"):
        flat = lanes is None and observe is None and task.softened(_NOISE * options.atol).is_flat
        if flat and size > large.least_size(task):
            yield from large.follow(task, starts, options, watch)
        else:
            yield from _follow(task, starts, options, count, watch, observe)


def _follow_rescaled(
    task: Task,
    starts: np.ndarray,
    units: Units,
    options: FlowOptions,
    lanes: int | None,
    watch: Callable[[int, int, float], None] | None,
    observe: Callable[[int, Glimpse], None] | None,
) -> Iterator[tuple[int, Trajectory]]:
    """`follow` for a task that is not in natural units: follow the rescaled task, and change units back."""
    natural = rescaled(task, units)

    def glimpse(index: int, seen: Glimpse) -> None:
        assert observe is not None
        vector, snapshots = seen.vector * units.lengths, seen.snapshots * units.lengths
        norm = float(jnp.linalg.norm(task.gradient(vector)))
        observe(index, Glimpse(seen.time, seen.loss * units.loss, norm, vector, seen.times, snapshots))

    looking = None if observe is None else glimpse
    for index, run in follow(natural, starts / units.lengths, options, lanes=lanes, watch=watch, observe=looking):
        norm = run.gradient_norm * float(np.max(units.loss / units.lengths))
        if run.ending != "settled":  # on kinks there is no gradient, only the bound above
            norm = float(jnp.linalg.norm(task.gradient(jnp.asarray(run.vector * units.lengths))))
        yield index, run.in_units(units.lengths, units.loss, norm)


def _follow(
    task: Task,
    starts: np.ndarray,
    options: FlowOptions,
    count: int,
    watch: Callable[[int, int, float], None] | None,
    observe: Callable[[int, Glimpse], None] | None,
) -> Iterator[tuple[int, Trajectory]]:
    seeds, size = starts.shape
    times = options.times
    base = task.softened(_NOISE * options.atol)
    moving = base.prepared(starts)
    # NumPy arrays, which compiled code takes as they are: every conversion by JAX would be a program of its own.
    rtol, atol, stop = (np.asarray(x, float) for x in (options.rtol, options.atol, options.stop))
    marks, limits = np.asarray(times), np.asarray([options.max_time, options.max_steps], float)
    pause = options.pause if options.polish else 0.0
    now = _idle(count, size, len(times))
    owner, scales, waiting = [-1] * count, np.zeros(count), list(range(seeds))[::-1]
    watched = options.polish and may_lengthen(task.neurons(starts[0]))
    chunk = np.asarray(1 if observe is not None else max(4, min(25, 20_000 // size)))

    def load(lane: int) -> None:
        owner[lane] = waiting.pop() if waiting else -1
        now["status"][lane] = _RUNNING if owner[lane] >= 0 else _STATIONARY
        if owner[lane] >= 0:
            now["vector"][lane] = starts[owner[lane]]
            now["time"][lane], now["step"][lane], now["pause"][lane] = 0.0, 1e-2, pause
            now["accepted"][lane] = now["rejected"][lane] = 0
            now["kept"][lane] = np.where((times == 0)[:, None], starts[owner[lane]], np.nan)
            now["norms"][lane], scales[lane] = np.nan, 0.0

    def advance(to_move: Task) -> dict[str, np.ndarray]:
        lanes = Lanes(**now)  # type: ignore[arg-type]  # NumPy arrays, which jit takes as they are
        moved = alone(_advance, to_move, lanes, marks, rtol, atol, stop, limits, chunk)
        return {k: np.array(v) for k, v in moved._asdict().items()}

    for lane in range(count):
        load(lane)
    while any(o >= 0 for o in owner):
        busy = [i for i, o in enumerate(owner) if o >= 0]
        after = advance(moving)
        finer = moving.prepared(after["vector"][busy])
        if finer is not moving:
            moving = finer  # norms became too large for the quadrature within this chunk: repeat the chunk
            continue
        now = after
        moving = base.prepared(now["vector"][busy])
        if watch is not None:
            watch(len(busy), int(now["accepted"][busy].sum()), float(now["time"][busy].max()))
        if observe is not None:
            for lane in busy:
                observe(owner[lane], _glimpse(now, lane, times))
        ready = [i for i in busy if now["status"][i] == _PAUSED or (now["status"][i] == _STATIONARY and options.polish)]
        jumps = jump.justified(task, now["vector"], ready)
        for lane in busy:
            if now["status"][lane] == _RUNNING:
                if watched and (far := _lengthening(task, now["vector"][lane], scales, lane)):
                    yield owner[lane], _far_out(_trajectory(_copied(now, lane), times, None), far)
                    load(lane)
                continue
            leap = jumps.get(lane)
            if leap is not None or now["status"][lane] != _PAUSED:
                yield owner[lane], _trajectory(_copied(now, lane), times, leap)
                load(lane)
            else:
                # Not justified: the flow continues, and the next attempt waits for a gradient thirty times smaller.
                now["pause"][lane] = max(now["gradient_norm"][lane] / 30, 1e-300)
                now["status"][lane] = _RUNNING


def _lengthening(task: Task, vector: np.ndarray, scales: np.ndarray, lane: int) -> Lengthening | None:
    """Whether neurons of this run change their scale forever; asked again when the norm has grown by a half."""
    if np.linalg.norm(vector) < 1.5 * scales[lane] or not any(suspects(task.neurons(vector))):
        return None
    scales[lane] = np.linalg.norm(vector)
    return find_lengthening(task, vector, _numbers)


def _far_out(run: Trajectory, far: Lengthening) -> Trajectory:
    """A run that ends where its neurons lengthen forever."""
    return replace(run, vector=far.end, loss=far.loss, gradient_norm=far.gradient_norm, lengthening=far)


def _copied(now: dict[str, np.ndarray], lane: int) -> dict[str, np.ndarray]:
    """What a lane holds; its next run overwrites the arrays."""
    return {name: values[lane].copy() for name, values in now.items()}


def _idle(count: int, size: int, times: int) -> dict[str, np.ndarray]:
    """Lanes that wait for their first start, as NumPy arrays with the fields of `Lanes`."""
    return {
        "vector": np.zeros((count, size)),
        "time": np.zeros(count),
        "step": np.full(count, 1e-2),
        "status": np.full(count, _STATIONARY),
        "pause": np.zeros(count),
        "gradient_norm": np.zeros(count),
        "loss": np.zeros(count),
        "accepted": np.zeros(count, int),
        "rejected": np.zeros(count, int),
        "kept": np.zeros((count, times, size)),
        "norms": np.zeros((count, MARKS, 2)),
    }


def _glimpse(now: dict[str, np.ndarray], lane: int, times: np.ndarray) -> Glimpse:
    time, reached = float(now["time"][lane]), times <= now["time"][lane]
    loss, norm = float(now["loss"][lane]), float(now["gradient_norm"][lane])
    return Glimpse(time, loss, norm, now["vector"][lane].copy(), times[reached], now["kept"][lane][reached])


def _trajectory(lane: dict[str, np.ndarray], times: np.ndarray, leap: jump.Jump | None) -> Trajectory:
    reached = times <= lane["time"]
    common = {
        "time": float(lane["time"]),
        "steps": int(lane["accepted"]),
        "rejected": int(lane["rejected"]),
        "factorisations": int(lane["accepted"] + lane["rejected"]),
        "times": times[reached],
        "snapshots": lane["kept"][reached],
        "flow_end": lane["vector"],
        "norms": lane["norms"][np.isfinite(lane["norms"][:, 0])],
    }
    if leap is None:
        ending = _ENDINGS[int(lane["status"])]
        return Trajectory(lane["vector"], float(lane["loss"]), float(lane["gradient_norm"]), ending, **common)
    return Trajectory(
        np.asarray(leap.end),
        float(leap.loss),
        float(leap.gradient_norm),
        "polished",
        **common,
        jump=leap.evidence(float(lane["gradient_norm"])),
    )
