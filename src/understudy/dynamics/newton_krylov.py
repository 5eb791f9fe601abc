"""The multistep method of `multistep` without Hessians: many steps in one compiled program, for one run.

The equation of a step is solved by Newton's method, and its linear systems by conjugate gradients with exact products.
The preconditioner is the inverse of blocks of H + 1/c (see `krylov`), taken at an earlier step while it serves. Tables
of differences have a fixed shape; rows beyond the order are masked.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from understudy.dynamics.krylov import conjugate_gradients, inverse_blocks, precondition
from understudy.dynamics.multistep import ALPHA, ERROR, GAMMA, MAX_ORDER, SAFETY, WORTH
from understudy.dynamics.programs import Kind, put_together
from understudy.dynamics.trajectory import MARKS
from understudy.tasks.task import Task

RUNNING, PAUSED, STATIONARY, OUT_OF_TIME, OUT_OF_STEPS, NOT_FINITE = range(6)

_ROWS = MAX_ORDER + 3
_INDEX = np.arange(_ROWS)
_RENEWAL = np.stack(
    [
        np.triu(np.ones((_ROWS, _ROWS))) * (k >= _INDEX) * (k >= _INDEX)[:, None]
        - (_INDEX[:, None] == k + 2) * (k + 1 == _INDEX)
        for k in range(MAX_ORDER + 1)
    ]
)
_ENDS = np.stack([(k + 2 >= _INDEX).astype(float) for k in range(MAX_ORDER + 1)])
"""By order: after a step with correction d the differences D are `_RENEWAL @ D + _ENDS ⊗ d`."""

_WEIGHTS = np.pad(GAMMA, (0, _ROWS - len(GAMMA)))

_NEWTON, _NEWTON_STEPS = 1e-2, 4
"""Remaining error of a step's equation, in units of the tolerance, and the most steps of Newton's method for it. At
3e-2 solves take an eighth fewer products and errors of runs are the same to three digits, but at large times most steps
of large problems fail: a run at (256, 64) does not come to its end. At 1e-1 a tenth more steps fail at all sizes. Using
the search directions of earlier solves again (Morales and Nocedal 2000) saves 15 % of the products, and costs as
much."""
_SOLVE = 0.3 * _NEWTON
_SLOWER, _MORE, _CHANGE = 1.5, 8, 2.0
"""Blocks are renewed when solves take this many times as many iterations as right after the last renewal, and so many
more; and when c has changed by the last factor. Renewing costs as much as three to ten products."""


class Blocks(NamedTuple):
    """A preconditioner: inverse blocks, the c they were made for (0: none yet), iterations then and
    last, and how often they were renewed."""

    inverse: Float[Array, "groups b b"]
    c: Float[Array, ""]
    first: Int[Array, ""]
    last: Int[Array, ""]
    renewals: Int[Array, ""]


class State(NamedTuple):
    """One run between two steps.

    `differences` belong to points `spacing` apart and, after an accepted step, to a polynomial of order `degree`. The
    next step has the given `order` and `length`. `snapshot`: the index of the next time at which the point is kept.
    """

    differences: Float[Array, "rows P"]
    spacing: Float[Array, ""]
    degree: Int[Array, ""]
    order: Int[Array, ""]
    length: Float[Array, ""]
    time: Float[Array, ""]
    equal: Int[Array, ""]
    gradient_norm: Float[Array, ""]
    accepted: Int[Array, ""]
    rejected: Int[Array, ""]
    blocks: Blocks
    snapshot: Int[Array, ""]
    kept: Float[Array, "times P"]
    norms: Float[Array, "marks 2"]


class Limits(NamedTuple):
    """When a run pauses or ends: gradient norms, times and the number of steps; and tolerances of steps."""

    rtol: Any
    atol: Any
    stop: Any
    pause: Any
    later: Any
    small: Any
    max_time: Any
    max_steps: Any


class _Solved(NamedTuple):
    """A step's correction (or garbage), whether it was found, the gradient norm there, and the preconditioner."""

    correction: Array
    found: Array
    norm: Array
    blocks: Blocks


@lru_cache(maxsize=32)
def compiled(kind: Kind) -> tuple[Callable[..., State], Callable[..., tuple[State, Array]]]:
    """The programs for one kind of task: (arrays, start, first length, times) ↦ state; (arrays, state, times, limits,
    number of steps) ↦ (state, status). The limits are one array with the entries of `Limits`: every argument costs
    time."""

    def begin(arrays: list[Any], start: Array, length: Array, times: Array) -> State:
        return _begin(put_together(kind, arrays), start, length, times)

    def advance(arrays: list[Any], state: State, times: Array, numbers: Array, steps: Array) -> tuple[State, Array]:
        task, limits = put_together(kind, arrays), Limits(*numbers)

        def runs(carry: tuple[Array, State, Array]) -> Array:
            return (carry[0] < steps) & (carry[2] == RUNNING)

        def step(carry: tuple[Array, State, Array]) -> tuple[Array, State, Array]:
            after = _step(task, carry[1], limits)
            return carry[0] + 1, after, _status(after, limits)

        # The points that are kept change in the outer loop only: a loop copies the arrays that it changes.
        def body(carry: tuple[Array, State, Array]) -> tuple[Array, State, Array]:
            count, after, status = jax.lax.while_loop(lambda c: runs(c) & ~_passed(c[1], times), step, carry)
            return count, _keep(after, times), status

        _, last, status = jax.lax.while_loop(runs, body, (jnp.asarray(0), state, _status(state, limits)))
        return last, status

    return jax.jit(begin), jax.jit(advance)


def _begin(task: Task, start: Array, length: Array, times: Array) -> State:
    slope = task.value_and_gradient(start)[1]
    groups = task.hessian_groups
    assert groups is not None
    zero = jnp.asarray(0)
    kept = jnp.where((times == 0)[:, None], start[None], jnp.nan)
    return State(
        differences=jnp.zeros((_ROWS, start.shape[0])).at[0].set(start).at[1].set(-length * slope),
        spacing=length,
        degree=zero + 1,
        order=zero + 1,
        length=length,
        time=jnp.asarray(0.0),
        equal=zero,
        gradient_norm=jnp.linalg.norm(slope),
        accepted=zero,
        rejected=zero,
        blocks=Blocks(jnp.zeros((*groups.shape, groups.shape[1])), jnp.asarray(0.0), zero, zero, zero),
        snapshot=jnp.sum(times <= 0),
        kept=kept,
        norms=jnp.full((MARKS, 2), jnp.nan),
    )


def _status(s: State, limits: Limits) -> Array:
    ready = (s.gradient_norm <= limits.pause) | ((s.time >= limits.later) & (s.gradient_norm <= limits.small))
    return jnp.select(
        [
            ~jnp.isfinite(s.gradient_norm),
            s.gradient_norm <= limits.stop,
            ready,
            s.time >= limits.max_time,
            (s.accepted + s.rejected >= limits.max_steps) | (s.length < 1e-14 * (1 + s.time)),
        ],
        [NOT_FINITE, STATIONARY, PAUSED, OUT_OF_TIME, OUT_OF_STEPS],
        RUNNING,
    )


def _step(task: Task, s: State, limits: Limits) -> State:
    """One attempted step."""
    k = s.order
    over = s.time + s.length > limits.max_time
    fit = jnp.where(over, jnp.maximum((limits.max_time - s.time) / s.length, 1e-12), 1.0)
    h, equal = s.length * fit, jnp.where(over, 0, s.equal)
    same = h == s.spacing
    d = jax.lax.cond(same, lambda: s.differences, lambda: _rescaling(k, h / s.spacing) @ s.differences)
    alpha = jnp.asarray(ALPHA)[k]
    predicted, psi = (jnp.stack([jnp.ones(_ROWS), _WEIGHTS / alpha]) * jnp.where(k >= _INDEX, 1.0, 0.0)[None]) @ d
    # The last correction of a step of this length is a first guess.
    guess = jnp.where(equal > 0, d[k + 1], 0.0)
    found = _solve(task, predicted, psi, guess, h / alpha, limits.atol + limits.rtol * jnp.abs(predicted), s.blocks)
    end = predicted + found.correction
    scale = limits.atol + limits.rtol * jnp.maximum(jnp.abs(end), jnp.abs(d[0]))
    error = _rms(jnp.asarray(ERROR)[k] * found.correction / scale)
    solved = found.found & jnp.isfinite(error)
    accept = solved & (error <= 1)
    correction = jnp.where(accept, found.correction, 0.0)
    shorter = jnp.where(solved, jnp.clip(SAFETY * error ** (-1 / (k + 1)), 0.2, 1.0), 0.5)
    # After an accepted step: differences `renewal @ d + ends ⊗ correction`.
    renewal, ends = jnp.asarray(_RENEWAL)[k], jnp.asarray(_ENDS)[k]
    gains = _gains(k, jnp.stack([d[k] + correction, correction, correction - d[k + 1]]) / scale[None])
    best = jnp.argmax(gains)
    changes = accept & (equal + 1 > k) & (gains[best] >= WORTH)
    order = jnp.where(changes, k - 1 + best, k)
    factor = jnp.where(accept, jnp.where(changes, jnp.minimum(gains[best], 10.0), 1.0), shorter)
    renewed = jax.lax.cond(accept, lambda: renewal @ d + ends[:, None] * correction[None], lambda: d)
    time = jnp.where(s.time + h >= limits.max_time, limits.max_time, s.time + h)
    mark = jnp.floor(4 * jnp.log10(jnp.maximum(time, 1e-2)) + 8)
    here = accept & (jnp.arange(MARKS) == mark)
    return State(
        differences=renewed,
        spacing=h,
        degree=k,
        order=order,
        length=h * factor,
        time=jnp.where(accept, time, s.time),
        equal=jnp.where(accept & ~changes, equal + 1, 0),
        gradient_norm=jnp.where(accept, found.norm, s.gradient_norm),
        accepted=s.accepted + accept,
        rejected=s.rejected + ~accept,
        blocks=found.blocks,
        snapshot=s.snapshot,
        kept=s.kept,
        norms=jnp.where(here[:, None], jnp.stack([time, _norm(end)])[None], s.norms),
    )


def _gains(k: Array, differences: Float[Array, "3 P"]) -> Float[Array, "3"]:
    """How much longer the next step may be at orders k - 1, k, k + 1; 0 for orders that do not exist."""
    orders = k + jnp.arange(-1, 2)
    sizes = jnp.stack([_rms(difference) for difference in differences]) * jnp.abs(
        jnp.asarray(ERROR)[jnp.clip(orders, 0, MAX_ORDER)]
    )
    gains = SAFETY * jnp.maximum(sizes, 1e-12) ** (-1 / (orders + 1))
    return jnp.where((orders >= 1) & (orders <= MAX_ORDER), gains, 0.0)


def _passed(s: State, times: Array) -> Array:
    """Whether the run has passed a time at which its point is to be kept."""
    count = times.shape[0]
    if count == 0:
        return jnp.asarray(False)
    return (s.snapshot < count) & (times[jnp.minimum(s.snapshot, count - 1)] <= s.time)


def _keep(s: State, times: Array) -> State:
    """Keep the points at the times that the last step has passed; see `Multistep.between`."""
    if times.shape[0] == 0:
        return s
    row = jnp.arange(_ROWS)

    def body(s: State) -> State:
        back = (times[s.snapshot] - s.time) / s.spacing
        ratios = jnp.concatenate([jnp.ones(1), (back + jnp.arange(_ROWS - 1)) / jnp.arange(1, _ROWS)])
        point = jnp.where(row <= s.degree, jnp.cumprod(ratios), 0.0) @ s.differences
        return s._replace(snapshot=s.snapshot + 1, kept=s.kept.at[s.snapshot].set(point))

    return jax.lax.while_loop(lambda s: _passed(s, times), body, s)


def _rescaling(order: Array, factor: Array) -> Float[Array, "rows rows"]:
    """The matrix that takes differences to those of the same polynomial for steps `factor` times as long."""
    inside = (_INDEX[:, None] <= order) & (_INDEX[None, :] <= order)

    def table(f: Array) -> Array:
        rows = [jnp.ones(_ROWS)]
        for i in range(1, _ROWS):
            rows.append(rows[-1] * jnp.where(_INDEX > 0, (i - 1 - f * _INDEX) / i, 0.0))
        return jnp.where(inside, jnp.stack(rows), 0.0)

    change = (table(factor) @ table(jnp.asarray(1.0))).T
    return jnp.where(inside, change, jnp.eye(_ROWS))


def _solve(task: Task, predicted: Array, psi: Array, guess: Array, c: Array, scale: Array, blocks: Blocks) -> _Solved:
    """Solve d = -c ∇L(predicted + d) - ψ by Newton's method with the Hessian at predicted + guess."""
    place = predicted + guess
    slope, product = task.linearised(place)
    groups = task.hessian_groups
    assert groups is not None

    def condition(carry: tuple) -> Array:
        count, _, _, _, _, found, failed, _ = carry
        return (count < _NEWTON_STEPS) & ~found & ~failed

    def body(carry: tuple) -> tuple:
        count, total, slope, before, _, _, _, blocks = carry
        residual = -c * slope - psi - total
        change, positive, blocks = _newton_step(task, place, product, c, residual, scale, blocks)
        total, size = total + change, _rms(change / scale)
        slope = task.value_and_gradient(predicted + total)[1]
        last = precondition(groups, blocks.inverse, -c * slope - psi - total) / blocks.c
        found = positive & (_rms(last / scale) <= _NEWTON)
        failed = ~positive | ~(size < 0.5 * before)
        total = jnp.where(found, total + last, total)
        return count + 1, total, slope, size, _norm(slope), found, failed & ~found, blocks

    no, infinite = jnp.asarray(False), jnp.asarray(jnp.inf)
    start = (jnp.asarray(0), guess, slope, infinite, infinite, no, no, blocks)
    _, total, _, _, norm, found, _, blocks = jax.lax.while_loop(condition, body, start)
    return _Solved(total, found, norm, blocks)


def _newton_step(
    task: Task, place: Array, product: Callable[[Array], Array], c: Array, residual: Array, scale: Array, blocks: Blocks
) -> tuple[Array, Array, Blocks]:
    """(1 + cH)⁻¹ residual, whether it was found, and the preconditioner; a second try has a new one."""
    groups = task.hessian_groups
    assert groups is not None
    slow = blocks.last > _SLOWER * blocks.first + _MORE
    changed = (c > _CHANGE * blocks.c) | (blocks.c > _CHANGE * c)
    fresh = slow | changed

    def condition(carry: tuple) -> Array:
        tries, _, converged, _ = carry
        return (tries == 0) | ((tries == 1) & ~converged & ~fresh)

    def body(carry: tuple) -> tuple:
        tries, _, _, b = carry
        renews = fresh | (tries > 0)
        inverse = jax.lax.cond(renews, lambda: inverse_blocks(task.hessian_blocks(place), 1 / c), lambda: b.inverse)
        x, count, converged, _ = conjugate_gradients(
            lambda v: v / c + product(v),
            lambda r: precondition(groups, inverse, r),
            residual / c,
            1 / scale,
            jnp.asarray(_SOLVE),
            jnp.asarray(False),
        )
        made = Blocks(inverse, jnp.where(renews, c, b.c), jnp.where(renews, count, b.first), count, b.renewals + renews)
        return tries + 1, x, converged, made

    start = (jnp.asarray(0), jnp.zeros_like(residual), jnp.asarray(False), blocks)
    _, x, converged, blocks = jax.lax.while_loop(condition, body, start)
    # After a failure nothing of it is used again.
    return x, converged, blocks._replace(c=jnp.where(converged, blocks.c, 0.0))


def _norm(x: Array) -> Array:
    return jnp.sqrt(x @ x)  # a product: XLA computes long sums in several passes


def _rms(x: Array) -> Array:
    return jnp.sqrt(x @ x / x.size)
