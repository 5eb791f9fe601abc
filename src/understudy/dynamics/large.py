"""Gradient flow of large problems, one run after another, by the multistep method.

Tasks that know blocks of their Hessian (`Task.hessian_blocks`) are followed without ever building it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from understudy.dynamics import jump
from understudy.dynamics.free_run import FIRST_STEP, LATER, FreeRun
from understudy.dynamics.multistep import Multistep
from understudy.dynamics.programs import Kind, put_together, taken_apart
from understudy.dynamics.systems import Systems
from understudy.dynamics.trajectory import MARKS, Ending, FlowOptions, Trajectory
from understudy.tasks.task import Task

LARGE = 500
"""Number of parameters above which a factorisation costs more than what compiled, batched steps save."""

_PRODUCTS = 130
"""The same where exact products with the Hessian cost little more than a gradient."""


def least_size(task: Task) -> int:
    """Number of parameters above which `follow` is faster than batched steps with dense Hessians."""
    return _PRODUCTS if task.hessian_groups is not None and task.closed_form else LARGE


@lru_cache(maxsize=32)
def _compiled(kind: Kind) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Functions (arrays of a task, point) ↦ (gradient, rough Hessian) and ↦ gradient."""
    return (
        jax.jit(lambda arrays, vector: put_together(kind, arrays).evaluate_roughly(vector)[1:]),
        jax.jit(lambda arrays, vector: put_together(kind, arrays).value_and_gradient(vector)[1]),
    )


def _systems(task: Task) -> Systems:
    arrays, kind = taken_apart(task)
    both, slope = _compiled(kind)

    def evaluate(vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, hessian = both(arrays, vector)
        return np.asarray(gradient), np.asarray(hessian)

    return Systems(evaluate, lambda vector: np.asarray(slope(arrays, vector)))


def follow(
    task: Task, starts: np.ndarray, options: FlowOptions, watch: Callable[[int, int, float], None] | None
) -> Iterator[tuple[int, Trajectory]]:
    """The same as `flow.follow`, for large problems."""
    run = _Run if task.hessian_groups is None else FreeRun
    for index, start in enumerate(starts):
        yield index, run(task, start, options).finish(watch)


class _Run:
    """One run, and the points that are kept."""

    def __init__(self, task: Task, start: np.ndarray, options: FlowOptions):
        self.task, self.options = task, options
        systems = self._use(task.prepared(start))
        self.stepper = Multistep(systems, start, options.rtol, options.atol, FIRST_STEP)
        self.times = options.times
        self.kept = np.full((len(self.times), start.size), np.nan)
        self.kept[self.times == 0] = start
        self.norms = np.full((MARKS, 2), np.nan)

    def _use(self, task: Task) -> Systems:
        """Follow the flow of this task from now on. Returns its linear systems."""
        self.moving = task
        # Whether larger norms need another task.
        self.adapts = task.prepared(np.full(task.size, 1e3)) is not task
        return _systems(task)

    def finish(self, watch: Callable[[int, int, float], None] | None) -> Trajectory:
        """Step until the run ends."""
        s, options = self.stepper, self.options
        pause = options.pause if options.polish else 0.0
        later = np.inf
        while True:
            ending = self._ending()
            # Errors of steps in stiff directions keep the gradient from falling further, so time counts as well.
            waited = s.time >= later and s.gradient_norm <= options.pause
            if s.gradient_norm <= pause or waited or (ending == "stationary" and options.polish):
                leap = self._jump()
                if leap is not None:
                    return self._trajectory("polished", leap)
                pause, later = min(pause, s.gradient_norm / 30), LATER * s.time
            if ending is not None:
                return self._trajectory(ending, None)
            self._advance()
            if watch is not None and s.accepted % 10 == 0:
                watch(1, s.accepted, s.time)

    def _jump(self) -> jump.Jump | None:
        return jump.justified(self.task, self.stepper.vector[None], [0]).get(0)

    def _ending(self) -> Ending | None:
        s, options = self.stepper, self.options
        if not np.isfinite(s.gradient_norm):
            return "not finite"
        if s.gradient_norm <= options.stop:
            return "stationary"
        if s.time >= options.max_time:
            return "time limit"
        exhausted = s.accepted + s.rejected >= options.max_steps or s.length < 1e-14 * (1 + s.time)
        return "step limit" if exhausted else None

    def _advance(self) -> None:
        s = self.stepper
        before = s.time
        while True:
            state = s.save()
            accepted = s.step(self.options.max_time)
            finer = self.moving.prepared(s.vector) if self.adapts else self.moving
            if finer is self.moving:
                break
            s.systems = self._use(finer)  # norms became too large for the quadrature within this step: repeat the step
            s.restore(state)
        if not accepted:
            return
        fractions = (self.times - before) / (s.time - before)
        inside = (fractions > 0) & (fractions <= 1)
        if np.any(inside):
            self.kept[inside] = s.between(fractions[inside])
        mark = int(np.floor(4 * np.log10(max(s.time, 1e-2)) + 8))
        if mark < MARKS:
            self.norms[mark] = s.time, np.linalg.norm(s.vector)

    def _trajectory(self, ending: Ending, leap: jump.Jump | None) -> Trajectory:
        s = self.stepper
        reached = self.times <= s.time
        end = s.vector if leap is None else np.asarray(leap.end)
        loss = float(self.task.loss(jnp.asarray(end))) if leap is None else float(leap.loss)
        return Trajectory(
            vector=end.copy(),
            loss=loss,
            gradient_norm=s.gradient_norm if leap is None else float(leap.gradient_norm),
            ending=ending,
            time=s.time,
            steps=s.accepted,
            rejected=s.rejected,
            factorisations=s.systems.factorisations,
            times=self.times[reached],
            snapshots=self.kept[reached],
            flow_end=s.vector.copy(),
            norms=self.norms[np.isfinite(self.norms[:, 0])],
            jump=None if leap is None else leap.evidence(s.gradient_norm),
        )
