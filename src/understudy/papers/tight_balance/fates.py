r"""Which students on the sphere reach their own teachers: an explicit flow of many starts, until each is decided.

The question of split-cone starts (Ottlik, Lemmas 3.1 and 3.2) is where runs end, not how they get there, and it is
asked of tens of thousands of starts for dozens of degrees and widths. The field is not stiff, so that an explicit
method in plain arrays does it, without compiling a program for each degree.

A run is decided as soon as every overlap |w_i·v_i| is at least `safe_overlap`: from there none can fall. With t =
w_i·v_i,
s² = 1 - t², repulsion r and every other overlap of a student with its own teacher at least t as well,

d(w_i·v_i)/dt / ρ ≥ t^(ρ-1) s² - t s^ρ - r (n - 1) (2ts)^(ρ-1) (s + 2t²s),

because Σ_{l≠i} (w_i·v_l)^ρ ≤ s^ρ, |w_j·w_i| ≤ 2ts and |w_j·v_i| ≤ s for orthonormal teachers.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from understudy.tasks.sphere import Sphere

_RESTING = 1e-7
"""Gradient norm at which a run that is elsewhere has come to rest: the one at which the stiff flow stops, too."""

# Bogacki and Shampine 1989: three stages, third order, the fourth stage is the first of the next step.
_NODES = ((0.5,), (0.0, 0.75))
_WEIGHTS = (2 / 9, 1 / 3, 4 / 9)
_ERRORS = (2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8)


def safe_overlap(task: Sphere) -> float:
    """The least t on a grid of 1e-3 from which on the bound above is positive for every larger overlap."""
    n, rho, r = task.width, task.degree, float(task.repulsion)
    t = np.arange(0.708, 0.9999, 1e-3)
    s = np.sqrt(1 - t * t)
    least = t ** (rho - 1) * s**2 - t * s**rho - r * (n - 1) * (2 * t * s) ** (rho - 1) * (s + 2 * t * t * s)
    unsafe = np.flatnonzero(least <= 0)
    return float(t[unsafe[-1] + 1]) if len(unsafe) and unsafe[-1] + 1 < len(t) else float(t[-1 if len(unsafe) else 0])


def reach_own_teachers(
    task: Sphere,
    rows: Float[np.ndarray, "m n d"],
    *,
    tolerance: float = 1e-6,
    longest: float = 1e4,
    steps: int = 20_000,
) -> tuple[Bool[np.ndarray, " m"], Bool[np.ndarray, " m"]]:
    """Follow the spherical flow from each start; (reached, undecided).

    **Arguments**

    - `task`: even degree, squared loss, orthonormal teachers e_1 … e_k, at least as many as students.
    - `rows`: starts of unit rows; student i's own teacher is teacher i, up to sign.
    - `tolerance`: of a step, absolute; `longest`, `steps`: time and steps after which a run is given up as undecided.

    `reached`: all overlaps have passed `safe_overlap`. A run that is neither reached nor undecided has come to rest
    elsewhere.
    """
    v = np.asarray(task.teacher.incoming)
    if task.degree % 2 or task.degree < 4 or task.width > len(v) or np.abs(v - np.eye(*v.shape)).max() > 1e-12:
        raise ValueError(
            f"Fates are told for even degrees from 4 on and students of the orthonormal teachers e_1 … e_k; received "
            f"degree {task.degree}, {task.width} students and {len(v)} teachers."
        )
    safe, power, r, k = safe_overlap(task), task.degree, float(task.repulsion), len(v)
    x = np.array(rows, float)
    n = task.width
    index = np.arange(n)

    def field(w: np.ndarray) -> np.ndarray:
        gram = w @ np.swapaxes(w, 1, 2)
        gram[:, index, index] = 0.0
        pull = -r * (_power(gram, power - 1) @ w)
        pull[:, :, :k] += _power(w[:, :, :k], power - 1)
        pull -= np.einsum("mid,mid->mi", pull, w)[:, :, None] * w
        return np.asarray(power * pull)

    reached, resting = np.zeros(len(x), bool), np.zeros(len(x), bool)
    alive = np.arange(len(x))
    time, h = np.zeros(len(x)), np.full(len(x), 0.1 / power)
    slope = field(x)
    for _ in range(steps):
        safely = np.abs(x[:, index, index]).min(axis=1) >= safe
        speed = np.sqrt(np.einsum("mid,mid->m", slope, slope))
        still = speed <= _RESTING
        done = safely | still | (time >= longest)
        if done.any():
            reached[alive[safely]], resting[alive[still & ~safely]] = True, True
            keep = ~done
            alive, x, time, h, slope, speed = (array[keep] for array in (alive, x, time, h, slope, speed))
        if not len(alive):
            break
        stages = [slope]
        for row in _NODES:
            stages.append(field(x + h[:, None, None] * sum(a * s for a, s in zip(row, stages, strict=True) if a)))
        end = x + h[:, None, None] * sum(b * s for b, s in zip(_WEIGHTS, stages, strict=True))
        end /= np.linalg.norm(end, axis=2, keepdims=True)
        stages.append(field(end))
        error = h * np.abs(sum(e * s for e, s in zip(_ERRORS, stages, strict=True))).max(axis=(1, 2))
        # Errors stay small beside the speed: those of steps at the edge of stability would keep a run from coming to
        # rest.
        error /= np.minimum(tolerance, 1e-2 * speed)
        good = error <= 1
        time = np.where(good, time + h, time)
        x = np.where(good[:, None, None], end, x)
        slope = np.where(good[:, None, None], stages[-1], slope)
        h = h * np.clip(0.9 * np.maximum(error, 1e-12) ** (-1 / 3), 0.2, 5.0)
    return reached, ~(reached | resting)


def _power(x: np.ndarray, exponent: int) -> np.ndarray:
    """x to a positive whole power by squaring: ten times faster than the general power."""
    result: np.ndarray | None = None
    while exponent:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        x = x * x if exponent else x
    assert result is not None
    return result
