"""How near runs come to tight balance: the probability of meeting it, and what they linger at."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from scipy.stats import binomtest

from understudy.dynamics import FlowOptions, follow, starts
from understudy.papers.tight_balance import tight_pairs as theory
from understudy.tasks.sphere import Sphere

RADII = (0.05, 0.1, 0.2)
"""Distances at which meeting is counted; the middle one is the definition, the others tell how much it matters."""


@dataclass(frozen=True)
class Meeting:
    """Of `runs` uniform starts in dimension `dim`, how many came within each radius of a tight-balance point.

    `caught` counts runs that had not left by the end (time 10⁸): within 10⁻³ of it there. `elsewhere` counts runs that
    ended neither there nor at two different teachers.
    """

    dim: int
    runs: int
    met: tuple[int, ...]
    caught: int
    elsewhere: int

    def interval(self, which: int = 1) -> tuple[float, float]:
        """The exact (Clopper-Pearson) 95 % interval of the probability at that radius."""
        found = binomtest(self.met[which], self.runs).proportion_ci(0.95, method="exact")
        return float(found.low), float(found.high)


def distance_to_tight_balance(rows: np.ndarray, degree: int) -> np.ndarray:
    """Least distance of two students (…, 2, d) to a tight-balance pair of the teachers e_1, e_2, over all symmetries.

    With unit vectors, |w - a|² = 2 - 2 w·a; signs of students are free, so the overlaps count by their size.
    """
    theta = theory.angle(degree)
    cos, sin = np.cos(theta), np.sin(theta)
    best = np.full(rows.shape[:-2], -np.inf)
    for shared, other in ((0, 1), (1, 0)):
        for sign in (1.0, -1.0):
            first = cos * rows[..., 0, shared] + sign * sin * rows[..., 0, other]
            second = cos * rows[..., 1, shared] - sign * sin * rows[..., 1, other]
            best = np.maximum(best, np.abs(first) + np.abs(second))
    return np.asarray(np.sqrt(np.maximum(4 - 2 * best, 0.0)))


def meet(dim: int, seeds: int, degree: int = 4, snapshots: int = 270) -> Meeting:
    """Follow `seeds` uniform starts to time 10⁸ and count meetings.

    A run *meets* tight balance if at some kept time it is within 0.1 of a tight-balance point, as a vector in ℝ^(2d),
    up to order and signs of students and order and signs of teachers. Within that distance the speed is below 0.4, so a
    passage takes longer than the spacing of the snapshots (30 a decade) at the times when it happens.
    """
    task = Sphere(np.eye(2, dim), 2, activation=f"hermite:{degree}")
    vectors = task.flatten(starts.uniform_sphere(task, seeds))
    if dim > 4:
        reduction = task.reduce(vectors)
        task, vectors = reduction.task, reduction.vectors
    # A pair that splits far from the teachers' plane moves at 0.5 α³: the flow must not stop before α is tiny.
    options = FlowOptions(polish=False, stop=1e-13, max_time=1e8, snapshots=np.logspace(-1, 8, snapshots).tolist())
    nearest, last, losses = np.full(seeds, np.inf), np.full(seeds, np.inf), np.zeros(seeds)
    for i, run in follow(task, jnp.asarray(vectors), options):
        points = np.concatenate([run.snapshots, run.vector[None]]).reshape(-1, 2, task.dim)
        distances = distance_to_tight_balance(points, degree)
        nearest[i], last[i], losses[i] = distances.min(), distances[-1], run.loss
    met = tuple(int(np.sum(nearest < radius)) for radius in RADII)
    caught = last < 1e-3
    return Meeting(dim, seeds, met, int(caught.sum()), int(np.sum(~caught & (losses > 1e-9))))
