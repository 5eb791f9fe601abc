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


def split_cone(task: Sphere, seeds: int | Sequence[int], least: float) -> TwoLayer:
    """Student i uniform on the part of the sphere where w_i·v_i > `least` ≥ 0, for n ≤ k (Ottlik, Lemma 3.2).

    The cosine u of the angle to the teacher has density ∝ (1 - u²)^((d-3)/2) on (least, 1); it is drawn by inverting
    the distribution function of u², a Beta(½, (d-1)/2) variable.
    """
    if not 0 <= least < 1:
        raise ValueError(f"The least cosine to the own teacher is in [0, 1); received {least!r}.")
    if task.width > task.teacher.width:
        raise ValueError(
            f"Every student needs a teacher of its own: {task.width} students cannot split "
            f"{task.teacher.width} teachers."
        )
    from scipy import stats  # slow to import, and few starts need it

    own = np.asarray(task.teacher.incoming)[: task.width]
    square = stats.beta(0.5, (task.dim - 1) / 2)
    below = square.cdf(least**2)
    rows = []
    for seed in seed_numbers(seeds):
        rng = np.random.default_rng(seed)
        cosine = np.sqrt(square.ppf(below + (1 - below) * rng.uniform(size=(task.width, 1))))
        cosine = np.clip(cosine, np.nextafter(least, 1), 1.0)
        across = rng.normal(size=own.shape)
        across -= np.sum(across * own, axis=1, keepdims=True) * own
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        w = cosine * own + np.sqrt(1 - cosine**2) * across
        rows.append(w / np.linalg.norm(w, axis=1, keepdims=True))
    return TwoLayer(np.stack(rows), np.ones((len(rows), task.width)))


def perturbed(
    task: Task, point: Float[Array, " P"], seeds: int | Sequence[int], size: float
) -> Float[Array, "seeds P"]:
    """A flat point plus Gaussian vectors of length `size` each."""
    rows = []
    for seed in seed_numbers(seeds):
        direction = np.random.default_rng(seed).normal(size=task.size)
        rows.append(np.asarray(point) + size * direction / np.linalg.norm(direction))
    return jnp.asarray(np.stack(rows))
