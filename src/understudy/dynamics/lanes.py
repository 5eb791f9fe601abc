"""Several runs advanced together by compiled chunks of Rosenbrock steps: small problems."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from understudy.dynamics import rosenbrock
from understudy.tasks.task import Task

RUNNING, PAUSED, STATIONARY, OUT_OF_TIME, OUT_OF_STEPS, NOT_FINITE = range(6)

MARKS = 80
"""Quarters of a decade of time, from 10⁻² on, in which the norm of the parameters is kept."""

ESTIMATE = 0.25
"""The embedded error is that of the solution of order four; that of the solution of order five, with which the flow goes
on, is a sixth to a third of it where steps are as long as tolerances of 1e-6 allow (see tests/dynamics/test_flow.py)."""


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


def _advance_lane(task: Task, s: Lanes, times: Array, rtol: Array, atol: Array, stop: Array, limits: Array) -> Lanes:
    """One attempted step of one lane."""
    local, origin = task.chart(s.vector)
    loss, gradient, hessian = local.evaluate(origin)
    norm = jnp.linalg.norm(gradient)
    left = limits[0] - s.time
    h = jnp.where((left > 0) & (left < s.step), left, s.step)
    taken = rosenbrock.step(local.slope, origin, gradient, hessian, h)
    scale = atol + rtol * jnp.maximum(jnp.abs(origin), jnp.abs(taken.end))
    error = ESTIMATE * jnp.sqrt(jnp.mean((taken.error / scale) ** 2))
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
        [NOT_FINITE, STATIONARY, PAUSED, OUT_OF_TIME, OUT_OF_STEPS, OUT_OF_STEPS],
        RUNNING,
    )
    running = s.status == RUNNING
    moves = running & (status == RUNNING)
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


@eqx.filter_jit
def advance(
    task: Task, lanes: Lanes, times: Array, rtol: Array, atol: Array, stop: Array, limits: Array, chunk: Array
) -> Lanes:
    """Up to `chunk` steps of every lane that is running."""
    one = jax.vmap(_advance_lane, in_axes=(None, 0, None, None, None, None, None))

    def condition(carry: tuple[Array, Lanes]) -> Array:
        return (carry[0] < chunk) & jnp.any(carry[1].status == RUNNING)

    def body(carry: tuple[Array, Lanes]) -> tuple[Array, Lanes]:
        return carry[0] + 1, one(task, carry[1], times, rtol, atol, stop, limits)

    return jax.lax.while_loop(condition, body, (jnp.asarray(0), lanes))[1]
