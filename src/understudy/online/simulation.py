"""Simulate one-pass SGD in finite dimension, many seeds at once, to compare with the equations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.dynamics.starts import seed_numbers
from understudy.online.overlaps import Overlaps, pack, weights_of
from understudy.tasks.order_problem import OrderProblem

if TYPE_CHECKING:
    from understudy.online.run import Online

_MOST = 5e11
"""Largest steps × dimension × seeds; more would take longer than a day on one core."""


@dataclass(frozen=True)
class Simulation:
    """Order parameters along simulations. Arrays are as in `OnlineResult`, with the seeds as a further first axis.

    `times` are the multiples of 1/dim that are nearest to the requested times.
    """

    dim: int
    seeds: tuple[int, ...]
    times: np.ndarray
    loss: np.ndarray
    student_overlaps: np.ndarray
    teacher_overlaps: np.ndarray
    outgoing: np.ndarray


def simulate(online: "Online", start: Overlaps, times: np.ndarray, dim: int, seeds: int | Sequence[int]) -> Simulation:
    """Follow every seed; see `Online.simulate`."""
    problem, numbers = online.problem, seed_numbers(seeds)
    steps = np.rint(times * dim).astype(int)
    cost = float(steps[-1]) * dim * len(numbers)
    if cost > _MOST:
        raise ValueError(
            f"{steps[-1]} steps of {len(numbers)} seeds in dimension {dim} would take more than a day. Lower the last "
            "time, dim or seeds."
        )
    w, v = weights_of(problem, start, dim)
    a = np.asarray(start.outgoing).reshape(problem.width, -1)
    rates = np.stack([[float(x) for x in online.rates(t)] for t in _rate_times(online, steps, dim)])
    keys = jnp.stack([jax.random.key(seed) for seed in numbers])
    begin = tuple(jnp.asarray(x) for x in (w, v, a))
    found = _follow(problem, begin, keys, jnp.asarray(steps), jnp.asarray(rates))
    q, r, outgoing = (np.asarray(x) for x in found)
    trained = problem.fixed_outgoing is None
    rows = [pack(*state, trained) for seed in zip(q, r, outgoing, strict=True) for state in zip(*seed, strict=True)]
    flat = np.stack(rows)
    finite = np.all(np.isfinite(flat), axis=1)
    losses = np.full(len(flat), np.inf)
    losses[finite] = online.losses(flat[finite])
    shape = (*outgoing.shape[:3], *problem.outputs)
    return Simulation(dim, tuple(numbers), steps / dim, losses.reshape(q.shape[:2]), q, r, outgoing.reshape(shape))


_RATE_STEPS = 1000


def _rate_times(online: "Online", steps: np.ndarray, dim: int) -> np.ndarray:
    """Times at which a schedule is evaluated: one for a constant rate, otherwise a thousand, with interpolation."""
    return np.linspace(0.0, steps[-1] / dim, _RATE_STEPS if callable(online.learning_rate) else 1)


@eqx.filter_jit
def _follow(
    problem: OrderProblem, begin: tuple[Array, ...], keys: Array, steps: Array, rates: Array
) -> tuple[Array, Array, Array]:
    """Overlaps and outgoing weights of every seed after the given numbers of steps."""
    w, v, a = begin
    dim, trained = w.shape[1], problem.fixed_outgoing is None
    last = jnp.maximum(steps[-1], 1)

    def step(key: Array, index: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        w, a = state
        place = index / last * (len(rates) - 1)
        below = jnp.minimum(place.astype(int), max(len(rates) - 2, 0))
        above = jnp.minimum(below + 1, len(rates) - 1)
        eta, eta_outgoing, noise, decay = rates[below] + (place - below) * (rates[above] - rates[below])
        sample = jax.random.normal(jax.random.fold_in(key, index), (dim + problem.output_count,))
        x, label_noise = sample[:dim], sample[dim:]
        value, first = problem.student.derivatives(w @ x, 1)
        wanted = problem.teacher.derivatives(v @ x, 0)[0] @ problem.teacher_outgoing + noise * label_noise
        e = value @ a - wanted
        moved = w - eta / dim * ((first * (a @ e))[:, None] * x[None, :] + decay * w)
        outgoing = a - eta_outgoing / dim * (value[:, None] * e[None, :] + decay * a) if trained else a
        return moved, outgoing

    def one(key: Array) -> tuple[Array, Array, Array]:
        def until(state: tuple[Array, Array], bounds: tuple[Array, Array]) -> tuple:
            state = jax.lax.fori_loop(bounds[0], bounds[1], lambda index, s: step(key, index, s), state)
            return state, (state[0] @ state[0].T, state[0] @ v.T, state[1])

        begins = jnp.concatenate([jnp.zeros(1, steps.dtype), steps[:-1]])
        return jax.lax.scan(until, (w, a), (begins, steps))[1]

    return jax.vmap(one)(keys)
