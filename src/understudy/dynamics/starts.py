"""Starts of runs: random students, given parameters, perturbations of a point."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.networks import TwoLayer
from understudy.tasks.starts import seed_numbers as seed_numbers
from understudy.tasks.task import Task


def gaussian(task: Task, seeds: int | Sequence[int], std: float = 0.1) -> TwoLayer:
    """Two-layer students with every weight N(0, std²), one network per seed; see `Task.starts`."""
    return task.unflatten(task.starts(seeds, "gaussian", std))


def glorot(task: Task, seeds: int | Sequence[int]) -> TwoLayer:
    """Two-layer students with Glorot's variances, one network per seed; see `Task.starts`."""
    return task.unflatten(task.starts(seeds, "glorot"))


def uniform_sphere(task: Task, seeds: int | Sequence[int]) -> TwoLayer:
    """Students of a `Sphere` task, independent and uniform on the unit sphere."""
    return task.unflatten(task.starts(seeds))


def perturbed(
    task: Task, point: Float[Array, " P"], seeds: int | Sequence[int], size: float
) -> Float[Array, "seeds P"]:
    """A flat point plus Gaussian vectors of length `size` each."""
    rows = []
    for seed in seed_numbers(seeds):
        direction = np.random.default_rng(seed).normal(size=task.size)
        rows.append(np.asarray(point) + size * direction / np.linalg.norm(direction))
    return jnp.asarray(np.stack(rows))
