"""One run of the flow without Hessians: compiled chunks of steps, and jumps to Newton's method between them."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from understudy.dynamics import far_jump, jump, newton_krylov
from understudy.dynamics.jump import Jump
from understudy.dynamics.newton_krylov import (
    NOT_FINITE,
    OUT_OF_STEPS,
    OUT_OF_TIME,
    PAUSED,
    RUNNING,
    STATIONARY,
    State,
)
from understudy.dynamics.programs import taken_apart
from understudy.dynamics.serial import alone
from understudy.dynamics.trajectory import Ending, FlowOptions, Trajectory
from understudy.tasks.task import Task

FIRST_STEP = 1e-2

LATER = 4.0
"""A jump that was not justified is tried again after this many times the time, if the gradient is still small."""

_DENSE = 500
"""Number of parameters up to which jumps are checked with dense Hessians."""

_ENDINGS: dict[int, Ending] = {
    STATIONARY: "stationary",
    OUT_OF_TIME: "time limit",
    OUT_OF_STEPS: "step limit",
    NOT_FINITE: "not finite",
}


class FreeRun:
    """One run of a task that knows blocks of its Hessian (`Task.hessian_blocks`)."""

    def __init__(self, task: Task, start: np.ndarray, options: FlowOptions):
        self.task, self.options, self.times = task, options, options.times
        self._use(task.prepared(start))
        self.state: State = alone(self._begin, self.arrays, start, np.asarray(FIRST_STEP), self.times)
        self.steps = np.asarray(min(400, max(4, 200_000 // start.size)))

    def _use(self, task: Task) -> None:
        """Follow the flow of this task from now on."""
        self.moving = task
        self.arrays, kind = taken_apart(task)
        self._begin, self._advance = newton_krylov.compiled(kind)

    def finish(self, watch: Callable[[int, int, float], None] | None) -> Trajectory:
        """Step until the run ends."""
        options = self.options
        pause, later = options.pause if options.polish else 0.0, np.inf
        while True:
            status = self._advance_chunk(pause, later)
            s = self.state
            if watch is not None:
                watch(1, int(s.accepted), float(s.time))
            if status == PAUSED or (status == STATIONARY and options.polish):
                leap = self._jump(np.asarray(s.differences[0]))
                if leap is not None:
                    return self._trajectory("polished", leap)
                pause, later = min(pause, float(s.gradient_norm) / 30), LATER * float(s.time)
            if status not in (PAUSED, RUNNING):
                return self._trajectory(_ENDINGS[status], None)

    def _jump(self, departure: np.ndarray) -> Jump | None:
        if departure.size > _DENSE:
            return far_jump.attempt(self.task, departure, float(self.state.time))
        return jump.justified(self.task, departure[None], [0]).get(0)

    def _advance_chunk(self, pause: float, later: float) -> int:
        options = self.options
        ends = (options.stop, pause, later, options.pause, options.max_time, options.max_steps)
        limits = np.asarray((options.rtol, options.atol, *ends), float)
        while True:
            after, status = alone(self._advance, self.arrays, self.state, self.times, limits, self.steps)
            finer = self.moving.prepared(np.asarray(after.differences[0]))
            if finer is self.moving:
                self.state = after
                return int(status)
            self._use(finer)  # norms became too large for the quadrature within this chunk: repeat the chunk

    def _trajectory(self, ending: Ending, leap: Jump | None) -> Trajectory:
        s = self.state
        time, flow_end = float(s.time), np.asarray(s.differences[0])
        end = flow_end if leap is None else np.asarray(leap.end)
        reached = self.times <= time
        norms = np.asarray(s.norms)
        return Trajectory(
            vector=end.copy(),
            loss=float(self.task.loss(jnp.asarray(end))) if leap is None else float(leap.loss),
            gradient_norm=float(s.gradient_norm if leap is None else leap.gradient_norm),
            ending=ending,
            time=time,
            steps=int(s.accepted),
            rejected=int(s.rejected),
            factorisations=int(s.blocks.renewals),
            times=self.times[reached],
            snapshots=np.asarray(s.kept)[reached],
            flow_end=flow_end.copy(),
            norms=norms[np.isfinite(norms[:, 0])],
            jump=None if leap is None else leap.evidence(float(s.gradient_norm)),
        )
