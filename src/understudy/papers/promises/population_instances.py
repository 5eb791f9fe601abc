"""Random tasks with Gaussian inputs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.papers.promises import plain_losses as plain
from understudy.papers.promises.instances import Instance
from understudy.tasks.task import Task


def population(
    rng: np.random.Generator,
    *,
    activation: str,
    width: int,
    teachers: int,
    dim: int,
    outputs: int = 0,
    fixed: bool = False,
    tilted: bool = False,
    teacher_activation: str | None = None,
    orthonormal: bool = False,
) -> Instance:
    """A student of random unit teachers; `tilted` inputs have a random covariance; `orthonormal` teachers half of the
    time."""
    import understudy as us

    v = rng.normal(size=(teachers, dim))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    b = rng.uniform(0.5, 1.5, size=(teachers, max(outputs, 1))) * rng.choice([-1.0, 1.0], size=(teachers, 1))
    straight = orthonormal and rng.random() < 0.5
    if straight:
        v, b = np.linalg.qr(rng.normal(size=(dim, dim)))[0][:teachers], np.ones((teachers, 1))
    mixing = rng.normal(size=(dim, dim)) / np.sqrt(dim)
    covariance = 0.5 * np.eye(dim) + mixing @ mixing.T if tilted else None
    teacher = us.Teacher(v, b if outputs else b[:, 0], teacher_activation or activation)
    weights = np.ones(width) if fixed else None
    on_grid = activation not in plain.PAIRS or teacher_activation is not None

    def made(n: int) -> us.Population:
        outgoing: Any = "trained" if weights is None else weights[:n]
        task = us.Population(teacher, n, activation=activation, outgoing=outgoing, covariance=covariance)
        # One resolution for all points, so that nothing is compiled again as norms grow.
        return task.prepared(jnp.full(task.size, 2.5 / np.sqrt(dim))) if on_grid else task

    loss: plain.PlainSamples | plain.PlainPopulation
    if on_grid:
        loss = _on_grid(v, b, activation, teacher_activation or activation, width)
    else:
        loss = plain.PlainPopulation(
            jnp.asarray(v),
            jnp.asarray(b),
            jnp.eye(dim) if covariance is None else jnp.asarray(covariance),
            None if weights is None else jnp.asarray(weights)[:, None],
            plain.PAIRS[activation],
            width,
        )
    task = made(width)
    extras = [_copy_average(task, v, width, rng) for _ in range(2)] if straight and not fixed else ()
    narrow = made(width - 1) if not fixed and width > 1 else None
    kinked = activation == "relu"
    shortest = 1e-3 if kinked else 0.0
    proxy, narrow_proxy = (_proxy(v, b, teacher, activation, n) if on_grid else None for n in (width, width - 1))
    longest = 2.2 if on_grid else np.inf
    return Instance(
        task, loss, narrow, proxy, narrow_proxy, extras, analytic=not kinked, shortest=shortest, longest=longest
    )


def _on_grid(v: np.ndarray, b: np.ndarray, student: str, teacher: str, width: int) -> plain.PlainSamples:
    points, weights = plain.plane_grid()
    targets = np.asarray(plain.SIGMAS[teacher](jnp.asarray(points @ v.T))) @ b
    arrays = (jnp.asarray(points), jnp.asarray(targets), jnp.asarray(weights))
    return plain.PlainSamples(*arrays, 0.0, plain.SIGMAS[student], (2, width, 1), "neurons", plain.square_cost)


def _proxy(v: np.ndarray, b: np.ndarray, teacher: Any, activation: str, width: int) -> Task:
    """The task on a coarse grid, wrong by 1e-7, with samples instead of quadratures."""
    from understudy.networks import TwoLayer
    from understudy.tasks.empirical import Empirical

    points, weights = plain.plane_grid(step=0.6, reach=6.0)
    targets = (np.asarray(teacher.activation(points @ v.T)) @ b)[:, 0]
    example = TwoLayer(np.zeros((width, 2)), np.zeros(width))
    return Empirical(example, points, targets, activation=activation, weights=weights)


def _copy_average(task: Any, v: np.ndarray, width: int, rng: np.random.Generator) -> np.ndarray:
    """A copy-average point: a random partition of the teachers, students in random order and with random signs."""
    from understudy.networks import TwoLayer
    from understudy.theory import copy_average

    cuts = np.sort(rng.choice(np.arange(1, len(v)), size=width - 1, replace=False))
    sizes = [int(s) for s in np.diff(np.concatenate([[0], cuts, [len(v)]]))]
    point = copy_average("erf", partition=sizes)
    order, signs = rng.permutation(width), rng.choice([-1.0, 1.0], size=width)
    w = np.asarray(point.incoming)[order] @ v[rng.permutation(len(v))]
    return np.asarray(task.flatten(TwoLayer(signs[:, None] * w, signs * np.asarray(point.outgoing)[order])))
