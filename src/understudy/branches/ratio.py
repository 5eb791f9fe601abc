r"""Copies or an average? Where each wins and where each is stable, as the ratio of teachers to students moves (erf).

n students learn k unit-orthonormal teachers. Two symmetric critical points compete:

- perturbed copies: each student leans on one teacher, all alike (coordinates of `CopyGroups([n], [k - n])`);
- copy-average: n - 1 students copy a teacher each, and one averages the other ℓ = k - n + 1. Its loss is
  ℓ/3 - (2/π) ℓ² asin(1/2ℓ).

Both depend on n and k as on real numbers, so that thresholds are exact numbers instead of brackets between whole k.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import brentq, minimize

from understudy.branches.copy_groups import CopyGroups
from understudy.branches.families import Family
from understudy.tasks.task import Evaluation, Task

OVERTAKING_LIMIT = 1 + (math.pi - 3) / (2 * math.sqrt(3) - 3)
"""k/n at which both have the same loss as n → ∞: 1.30509.

Perturbed copies add Z/n to the argument of each student, with Z the sum of the k - n inputs that no student copies. The
mean of Σ_i σ'(z_i) Z/n is the linear part of these teachers. What is left of their loss is (k - n)(1/3 - 1/π), as for
the average, and the fluctuation of Σ_i σ'(z_i)/n costs (k/n - 1) Var σ'(z) = (k/n - 1)(2/(π√3) - 1/π). The average
leaves one more teacher: 1/3 - 1/π. Both are equal at k/n - 1 = (π - 3)/(2√3 - 3). """


def teachers_per_student(students: int) -> Family:
    """Perturbed copies as k/n moves through the real numbers above 1: a family for `us.continuation`.

    The coordinates are those of `CopyGroups([n], [k - n])`: all n students stay alike, so the index counts symmetric
    perturbations only. `CopyGroups.network_eigenvalues` has those of the whole network.

    >>> import understudy as us
    >>> family = teachers_per_student(8)
    >>> us.continuation(family, perturbed_copies(8, 1.2), (1.2, 2.4)).branches[0].ending
    'end of interval'
    """
    _check_students(students)

    def make(ratio: float) -> Task:
        return CopyGroups([float(students)], [students * (ratio - 1)])

    return Family(make, "teachers per student k/n")


def perturbed_copies(students: int, ratio: float) -> np.ndarray:
    """The point of perturbed copies (own, peer, cross, outgoing) at k/n = `ratio`, which need not make k whole."""
    _check_students(students)
    if not 1 < ratio < 100:
        raise ValueError(f"The ratio k/n lies above 1; received {ratio!r}.")
    if ratio <= FIRST:
        return _minimised(students, ratio)
    steps = math.ceil((ratio - FIRST) / STEP) - 1
    return _newton(_copies(students, ratio), _walked(students, steps))


FIRST, STEP = 1.1, 0.05
"""Perturbed copies are found at the first ratio by descent, and at larger ones by Newton's method from the step
before."""


@lru_cache(maxsize=10_000)
def _walked(students: int, steps: int) -> np.ndarray:
    """The point after this many steps."""
    if steps == 0:
        return _minimised(students, FIRST)
    return _newton(_copies(students, FIRST + steps * STEP), _walked(students, steps - 1))


def _minimised(students: int, ratio: float) -> np.ndarray:
    task = _copies(students, ratio)
    found = minimize(
        lambda x: float(_evaluate(task, jnp.asarray(x)).loss),
        task.copies(),
        jac=lambda x: np.asarray(_evaluate(task, jnp.asarray(x)).gradient),
    )
    return _newton(task, found.x)


def copies_minus_average(students: int, ratio: float) -> float:
    """Loss of the perturbed copies minus loss of copy-average; negative where the copies are better."""
    task = _copies(students, ratio)
    copies = float(_evaluate(task, jnp.asarray(perturbed_copies(students, ratio))).loss)
    return copies - _average_loss(students * (ratio - 1) + 1)


def overtaking_ratio(students: int) -> float:
    """The k/n below which perturbed copies have a lower loss than copy-average; n/k there is γ3.

    >>> round(1 / overtaking_ratio(16), 6)
    0.749284
    """
    return _crossing(lambda ratio: copies_minus_average(students, ratio), 1.12, 1.5)


def copies_lose_stability(students: int, highest: float = 4.0) -> float:
    """The k/n above which the perturbed copies are no longer a minimum; infinite if they are one up to `highest`."""

    def least(ratio: float) -> float:
        return float(_copies(students, ratio).network_eigenvalues(perturbed_copies(students, ratio))[0])

    return _crossing(least, 1.5, highest) if least(highest) < 0 else math.inf


def average_gains_stability(students: int) -> float:
    """The k/n above which copy-average is a minimum (and below which it is a saddle)."""

    def least(ratio: float) -> float:
        task, point = average_point(students, ratio)
        return float(task.network_eigenvalues(point)[0])

    return _crossing(least, 1 + 0.5 / students, 1.6)


def average_point(students: int, ratio: float) -> tuple[CopyGroups, np.ndarray]:
    """Copy-average at k/n = `ratio`, as groups of n - 1 copies and of one student, and the teachers it averages too."""
    if students < 5:
        raise ValueError(f"Stability by symmetry needs at least 5 students; received {students}.")
    rest = students * (ratio - 1)
    size = rest + 1
    step = 1 / math.sqrt(size * (2 * size - 1))
    task = CopyGroups([float(students - 1), 1.0], [rest])
    return task, np.array([1.0, 0.0, 0.0, 0.0, 1.0, step, 0.0, step, size])


def _average_loss(size: float) -> float:
    return size / 3 - 2 / math.pi * size**2 * math.asin(1 / (2 * size))


def _copies(students: int, ratio: float) -> CopyGroups:
    return CopyGroups([float(students)], [students * (ratio - 1)])


def _newton(task: CopyGroups, point: np.ndarray) -> np.ndarray:
    before = np.inf
    for _ in range(30):
        here = _evaluate(task, jnp.asarray(point))
        move = np.linalg.solve(np.asarray(here.hessian), np.asarray(here.gradient))
        size = float(np.linalg.norm(move))
        if not size <= max(1.0, float(np.linalg.norm(point))):
            break
        point = point - move
        if size <= 1e-14 or (size <= 1e-9 and size > 0.5 * before):
            return point
        before = size
    raise ValueError("Newton's method does not follow the perturbed copies to this ratio; they may have ended before.")


def _crossing(function: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(function, low, high, xtol=1e-14, rtol=1e-14))


def _check_students(students: int) -> None:
    if isinstance(students, bool) or not isinstance(students, (int, np.integer)) or students < 2:
        raise ValueError(f"students is a whole number of at least 2; received {students!r}.")


@eqx.filter_jit
def _evaluate(task: CopyGroups, vector: Array) -> Evaluation:
    return task.evaluate(vector)
