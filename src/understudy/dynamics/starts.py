"""Where runs begin: random students, given parameters, perturbations of a point."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.networks import TwoLayer
from understudy.tasks.population import Population
from understudy.tasks.sphere import Sphere
from understudy.tasks.task import Task


def seed_numbers(seeds: int | Sequence[int]) -> list[int]:
    """0 … seeds - 1, or the given numbers."""
    if isinstance(seeds, (int, np.integer)):
        if seeds < 1:
            raise ValueError(f"At least one seed is needed; received seeds={seeds}.")
        return list(range(int(seeds)))
    numbers = [int(s) for s in seeds]
    if not numbers or len(set(numbers)) != len(numbers) or min(numbers) < 0:
        raise ValueError(f"Seeds are distinct non-negative whole numbers; received {list(seeds)!r}.")
    return numbers


def gaussian(task: Population, seeds: int | Sequence[int], std: float = 0.1) -> TwoLayer:
    """Every weight N(0, std²), one network a seed; a seed gives the same student whatever the others are."""
    if not (np.isfinite(std) and std > 0):
        raise ValueError(f"The standard deviation of a random start must be positive; received {std!r}.")
    return _draw(task, seeds, std, std)


def glorot(task: Population, seeds: int | Sequence[int]) -> TwoLayer:
    """Glorot-normal: variance 2/(fan in + fan out) for each of the two layers (Glorot and Bengio 2010)."""
    outputs = int(np.prod(task.outputs, dtype=int))
    return _draw(task, seeds, np.sqrt(2 / (task.dim + task.width)), np.sqrt(2 / (task.width + outputs)))


def _draw(task: Population, seeds: int | Sequence[int], incoming: float, outgoing: float) -> TwoLayer:
    numbers = seed_numbers(seeds)
    w = np.empty((len(numbers), task.width, task.dim))
    a = np.empty((len(numbers), task.width, *task.outputs))
    for i, seed in enumerate(numbers):
        rng = np.random.default_rng(seed)
        rng.standard_normal(out=w[i])
        rng.standard_normal(out=a[i])
        w[i] *= incoming
        a[i] *= outgoing
    return TwoLayer(w, a if task.fixed_outgoing is None else np.broadcast_to(task.fixed_outgoing, a.shape))


def uniform_sphere(task: Sphere, seeds: int | Sequence[int]) -> TwoLayer:
    """Students uniform on the unit sphere, independent; a seed gives the same students whatever the others are."""
    rows = np.stack([np.random.default_rng(s).normal(size=(task.width, task.dim)) for s in seed_numbers(seeds)])
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    return TwoLayer(rows, np.ones(rows.shape[:-1]))


def perturbed(
    task: Task, point: Float[Array, " P"], seeds: int | Sequence[int], size: float
) -> Float[Array, "seeds P"]:
    """A flat point plus Gaussian vectors of length `size` each."""
    rows = []
    for seed in seed_numbers(seeds):
        direction = np.random.default_rng(seed).normal(size=task.size)
        rows.append(np.asarray(point) + size * direction / np.linalg.norm(direction))
    return jnp.asarray(np.stack(rows))
