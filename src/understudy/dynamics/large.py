"""One run advanced by Rosenbrock steps outside compiled code: large problems, where LAPACK's work is most of all.

XLA surrounds each factorisation with transposed copies and has no triangular solve for one vector; for 800 parameters a
step takes two thirds of the time here. Below some 250 parameters the overhead of leaving compiled code is larger.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from understudy.dynamics import rosenbrock
from understudy.dynamics.lanes import (
    ESTIMATE,
    MARKS,
    NOT_FINITE,
    OUT_OF_STEPS,
    OUT_OF_TIME,
    PAUSED,
    RUNNING,
    STATIONARY,
)
from understudy.tasks.evaluation import evaluate_at, slope_at
from understudy.tasks.task import Task

LARGE = 256
"""Number of parameters above which runs are advanced one by one, here."""


def advance_large(
    task: Task,
    now: dict[str, np.ndarray],
    times: np.ndarray,
    tolerances: tuple[float, float, float],
    limits: tuple[float, float],
    chunk: int,
) -> dict[str, np.ndarray]:
    """Up to `chunk` steps of a single lane; the same as `lanes.advance` does."""
    s: dict[str, Any] = {k: np.array(v[0]) for k, v in now.items()}
    rtol, atol, stop = tolerances
    fresh = True
    for _ in range(chunk):
        if fresh:
            local, origin = task.chart(jnp.asarray(s["vector"]))
            start = np.asarray(origin)
            loss, gradient, hessian = (np.asarray(x) for x in evaluate_at(local, origin))
            s["loss"], s["gradient_norm"] = loss, np.linalg.norm(gradient)
        s["status"] = _status(s, stop, limits)
        if s["status"] != RUNNING:
            break
        left = limits[0] - s["time"]
        last = left < s["step"]
        h = float(left if last else s["step"])
        slope = partial(_slope, local)
        taken = rosenbrock.host_step(slope, start, gradient, hessian, h)
        if taken is None:
            s["rejected"], s["step"], fresh = s["rejected"] + 1, 0.25 * h, False
            continue
        scale = atol + rtol * np.maximum(np.abs(start), np.abs(taken.end))
        error = ESTIMATE * float(np.sqrt(np.mean((taken.error / scale) ** 2)))
        fresh = error <= 1
        factor = min(max(0.9 * max(error, 1e-12) ** (-1 / rosenbrock.ORDER), 0.2), 6.0) if np.isfinite(error) else 0.25
        s["step"] = h * (factor if fresh else min(factor, 0.9))
        if not fresh:
            s["rejected"] = s["rejected"] + 1
            continue
        fractions = (times - s["time"]) / h
        inside = (fractions > 0) & (fractions <= 1)
        if np.any(inside):
            between = jnp.asarray(taken.between(fractions[inside]))
            s["kept"][inside] = np.asarray(jax.vmap(local.point)(between))
        s["time"] = limits[0] if last else s["time"] + h
        s["vector"], s["accepted"] = np.asarray(local.point(jnp.asarray(taken.end))), s["accepted"] + 1
        mark = int(np.floor(4 * np.log10(max(s["time"], 1e-2)) + 8))
        if mark < MARKS:
            s["norms"][mark] = s["time"], np.linalg.norm(s["vector"])
    return {k: np.array(v, now[k].dtype)[None] for k, v in s.items()}


def _status(s: dict[str, Any], stop: float, limits: tuple[float, float]) -> int:
    if not (np.isfinite(s["gradient_norm"]) and np.isfinite(s["loss"])):
        return NOT_FINITE
    if s["gradient_norm"] <= stop:
        return STATIONARY
    if s["gradient_norm"] <= s["pause"]:
        return PAUSED
    if s["time"] >= limits[0]:
        return OUT_OF_TIME
    exhausted = s["accepted"] + s["rejected"] >= limits[1] or s["step"] < 1e-14 * (1 + s["time"])
    return OUT_OF_STEPS if exhausted else RUNNING


def _slope(task: Task, vector: np.ndarray) -> np.ndarray:
    return np.asarray(slope_at(task, jnp.asarray(vector)))
