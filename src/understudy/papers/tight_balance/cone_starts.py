"""Starts with every student in the cone of its own teacher, and the search for those that do not end there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import beta

from understudy.dynamics import starts
from understudy.networks import TwoLayer
from understudy.papers.tight_balance.cone_geometry import ROOT_HALF, bound, leaving_threshold, worst_start
from understudy.papers.tight_balance.fates import reach_own_teachers
from understudy.tasks.sphere import Sphere


def uniform_in_cones(task: Sphere, seeds: int | Sequence[int], least: float) -> TwoLayer:
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
    own = np.asarray(task.teacher.incoming)[: task.width]
    square = beta(0.5, (task.dim - 1) / 2)
    below = square.cdf(least**2)
    rows = []
    for seed in starts.seed_numbers(seeds):
        rng = np.random.default_rng(seed)
        cosine = np.sqrt(square.ppf(below + (1 - below) * rng.uniform(size=(task.width, 1))))
        cosine = np.clip(cosine, np.nextafter(least, 1), 1.0)
        across = rng.normal(size=own.shape)
        across -= np.sum(across * own, axis=1, keepdims=True) * own
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        w = cosine * own + np.sqrt(1 - cosine**2) * across
        rows.append(w / np.linalg.norm(w, axis=1, keepdims=True))
    return TwoLayer(np.stack(rows), np.ones((len(rows), task.width)))


def failures(task: Sphere, rows: Float[np.ndarray, "m n d"], tolerance: float = 1e-6) -> Bool[np.ndarray, " m"]:
    """Which starts do not end with every student at its own teacher, up to sign; undecided ones count."""
    return ~reach_own_teachers(task, rows, tolerance=tolerance)[0]


def failing_epsilon(task: Sphere, rounds: int, batch: int, seed: int = 0) -> float:
    """The largest ε at which a start that fails was found: an adversarial search, so a lower bound of the threshold.

    It begins with the starts that are pushed out hardest and goes on with random changes of the ones that failed at the
    largest ε so far, pulled into the cones of a slightly larger ε.
    """
    n, degree = task.width, task.degree
    rng = np.random.default_rng([seed, degree, n])
    # Two students do not push each other out: there the search covers what the lemma leaves open.
    top = leaving_threshold(degree, (n - 2) / n) if n > 2 else bound(degree)
    best, champion = 0.0, worst_start(degree, n, n, 1e-9)
    scale = 0.5
    for turn in range(rounds):
        if turn == 0:
            epsilons = np.linspace(0.02, 1.0, batch) * top
            leans = rng.uniform(0.5, 1.5, size=batch)
            rows = np.stack([worst_start(degree, n, n, e, c) for e, c in zip(epsilons, leans, strict=True)])
        else:
            epsilons = best + (top - best) * np.linspace(0.0, 1.0, batch) ** 2 * 0.5 + 1e-9
            changed = (
                champion + scale * ROOT_HALF * rng.normal(size=(batch, n, n)) * rng.uniform(size=(batch, 1, 1)) ** 2
            )
            rows = into_cones(changed, ROOT_HALF + epsilons)
        failed = np.flatnonzero(failures(task, rows) & (epsilons > best))
        # A run beside the edge of a basin may go either way: only what fails at a hundredth of the tolerance, too,
        # counts.
        failed = failed[failures(task, rows[failed], tolerance=1e-8)] if len(failed) else failed
        if len(failed):
            chosen = failed[int(np.argmax(epsilons[failed]))]
            best, champion = float(epsilons[chosen]), rows[chosen]
        else:
            scale /= 2
    return best


def into_cones(rows: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Unit rows with w_i·v_i ≥ least (one a configuration), the directions across kept."""
    unit = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    n = rows.shape[-2]
    own = np.maximum(unit[:, np.arange(n), np.arange(n)], least[:, None])
    across = unit.copy()
    across[:, np.arange(n), np.arange(n)] = 0.0
    lengths = np.maximum(np.linalg.norm(across, axis=-1, keepdims=True), 1e-300)
    turned = across / lengths * np.sqrt(1 - own**2)[:, :, None]
    turned[:, np.arange(n), np.arange(n)] = own
    return turned
