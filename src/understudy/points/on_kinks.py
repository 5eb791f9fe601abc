"""Certify a point on kinks of the loss: slopes that balance it, and the curvature along the kinks.

Let the loss be smooth except for |z_j|, and let A be the set of z that are zero at a point. With slopes s_j in [-1, 1]
for them, let G(θ, s) be the loss with |z_j| replaced by s_j z_j, f_j = ∂L/∂|z_j|, J the Jacobian of the z in A and H
the Hessian of G. If

- ∇_θ G(θ, s) = 0,  f_j > 0 and |s_j| < 1 for every j in A, then the one-sided derivative of the loss along d is
  Σ_j f_j (|J_j d| - s_j J_j d) ≥ 0, and zero only if J d = 0;
- dᵀHd > 0 for every d ≠ 0 with J d = 0, except along continuous symmetries of the loss,

then the point is a local minimum, strict up to these symmetries (sufficient conditions of second order with strict
complementarity; in deeper layers the J_j d are those with the slopes s below them, which agree where J d = 0). A
negative curvature dᵀHd < 0 with J d = 0 shows a way down if J has full rank, because then a curve through the point
keeps the z in A at zero.
"""

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.points.surroundings import power_of_two
from understudy.tasks.task import ON_KINK, Task

_ROUNDS = 4
"""Solutions for the slopes: one is enough for one hidden layer, where the gradient is linear in them."""

_INSIDE = 1e-6
"""How far from ±1 every slope must be, and how large every force relative to the largest, to be strictly inside."""

_CURVED = 1e-9
"""Curvature, relative to the largest, above which it counts; the point and its slopes are known to about 1e-13."""


@dataclass(frozen=True)
class OnKinks:
    """The analysis of a point on kinks.

    - `kind`: `"minimum"`, `"strict saddle"`, `"undecided"`, or `"not stationary"`.
    - `gradient`: ∇_θ G(θ, s) with the best slopes s, and `residual` its norm; `margin`: the least 1 - |s_j|; `pinned`:
      how many z are zero.
    - `eigenvalues`: curvatures along directions that keep these z at zero, ascending; `threshold` for them; `flat`: how
      many of them are zero because of a continuous symmetry.
    - `words`: the reasoning.
    """

    kind: Literal["minimum", "strict saddle", "undecided", "not stationary"]
    gradient: np.ndarray
    residual: float
    margin: float
    pinned: int
    eigenvalues: np.ndarray
    threshold: float
    flat: int
    words: str


@eqx.filter_jit
def _gated(task: Task, vector: Array, gates: Array) -> tuple[Array, Array, Array]:
    """∇_θ G, the force ∂G/∂|z| on every kink, and the derivative of ∇_θ G by every slope."""
    zero = jnp.zeros_like(gates)
    slope = jax.grad(task.gated_value)
    force = jax.grad(task.gated_value, argnums=2)(vector, gates, zero)
    return slope(vector, gates, zero), force, jax.jacrev(lambda s: slope(vector, s, zero))(gates)


@eqx.filter_jit
def _second(task: Task, vector: Array, gates: Array) -> tuple[Array, Array]:
    """The Hessian of G, and the Jacobian of the z."""
    slope = jax.grad(task.gated_value)
    hessian = jax.jacfwd(lambda v: slope(v, gates, jnp.zeros_like(gates)))(vector)
    return hessian, jax.jacfwd(lambda v: task.gated_hidden(v, gates))(vector)


def examine_kinks(
    task: Task, vector: np.ndarray, tolerance: float, left_out: tuple[np.ndarray, np.ndarray] | None = None
) -> OnKinks:
    """Slopes, forces and curvatures at a point where some z are zero, and the verdict that follows from them.

    `left_out`: masks of parameters that are held, and of z that are zero with them (see `zero_neurons`).
    """
    point = jnp.asarray(vector)
    held, apart = left_out or (np.zeros(len(vector), bool), False)
    hidden = np.asarray(task.hidden_values(point))
    pinned = (np.abs(hidden) <= ON_KINK * max(float(np.abs(hidden).max(initial=0.0)), 1e-300)) & ~np.asarray(apart)
    gates, gradient, force = _balance(task, point, np.where(pinned, 0.0, np.sign(hidden)), pinned)
    hessian, jacobian = (np.asarray(x) for x in _second(task, point, jnp.asarray(gates)))
    residual, size = float(np.linalg.norm(gradient)), float(np.abs(hessian).max(initial=0.0))
    rounding = 1e3 * np.finfo(float).eps * size * (1 + float(np.abs(vector).max(initial=0.0)))
    rows = jacobian[pinned]
    fixed = np.concatenate([rows, np.eye(len(vector))[held]])
    _, singular, right = np.linalg.svd(fixed, full_matrices=True)
    rank = int(np.sum(singular > 1e-10 * singular.max(initial=1e-300)))
    null = right[rank:].T
    values = np.linalg.eigvalsh(null.T @ ((hessian + hessian.T) / 2) @ null) if null.shape[1] else np.zeros(0)
    threshold = _CURVED * max(size, 1e-300)
    tangents = np.asarray(task.symmetry_tangents(point)) @ null
    flat = int(np.linalg.matrix_rank(tangents, tol=1e-8 * max(float(np.abs(vector).max(initial=0.0)), 1e-300)))
    margin = float(np.min(1 - np.abs(gates[pinned]), initial=1.0))
    weakest = float(np.min(force[pinned], initial=np.inf))
    forced = weakest > _INSIDE * float(np.abs(force).max(initial=0.0))
    told = (
        f"{int(pinned.sum())} hidden pre-activations are zero; with the best slopes there the gradient norm is "
        f"{residual:.1e}"
    )
    if residual > max(tolerance * power_of_two(size), rounding):
        kind, words = "not stationary", f"{told}: not stationary"
    elif (fall := _one_sided(rows, force[pinned], gates[pinned])) < -_INSIDE * float(np.abs(force).max(initial=0.0)):
        kind, words = "not stationary", f"{told}, but the loss falls to one side of a kink, with slope {fall:.1e}"
    elif not forced:
        kind, words = (
            "undecided",
            f"{told}; some kinks carry no force (least {weakest:.1e}), as around dead neurons: undecided",
        )
    elif margin < _INSIDE:
        kind, words = "undecided", f"{told}; a slope is at the end of its range (margin {margin:.1e}): undecided"
    elif np.any(values < -threshold):
        full = rank == len(fixed)
        kind = "strict saddle" if full else "undecided"
        words = f"{told}; along the kinks the least curvature is {values[0]:.3e}"
    elif int(np.sum(values <= threshold)) > flat:
        kind, words = (
            "undecided",
            f"{told}; along the kinks the least curvature is {values[0]:.1e}, zero to rounding: undecided",
        )
    else:
        above = values[values > threshold]
        least = f"{above[0]:.3e}" if len(above) else "none left"
        kind = "minimum"
        words = f"{told}; all slopes inside by {margin:.2g}; least curvature along the kinks: {least}"
    count = int(pinned.sum())
    return OnKinks(kind, gradient, residual, margin, count, values, threshold, flat, words)  # type: ignore[arg-type]


def _one_sided(rows: np.ndarray, force: np.ndarray, slopes: np.ndarray) -> float:
    """The steepest slope found across one concave kink, f_j < 0, with all others held: f_j (1 + |s_j|) J_j·d, or 0."""
    steepest = 0.0
    for j in np.flatnonzero(force < 0):
        others = np.delete(rows, j, axis=0)
        free = rows[j] - rows[j] @ np.linalg.pinv(others) @ others
        length = float(np.linalg.norm(free))
        if length > 1e-6 * float(np.linalg.norm(rows[j])):
            steepest = min(steepest, float(force[j]) * (1 + abs(float(slopes[j]))) * length)
    return steepest


def _balance(
    task: Task, point: Array, gates: np.ndarray, pinned: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes of the pinned z that minimise ∇_θ G and lie as far inside [-1, 1] as possible, with ∇_θ G and forces."""
    from scipy.optimize import lsq_linear  # slow to import, and needed only on kinks

    gates = gates.copy()
    for _ in range(_ROUNDS):
        gradient, force, rates = (np.asarray(x) for x in _gated(task, point, jnp.asarray(gates)))
        columns = rates[:, pinned]
        used = np.linalg.norm(columns, axis=0) > 1e-12 * max(float(np.abs(rates).max(initial=0.0)), 1e-300)
        if not used.any():
            break
        columns, place = columns[:, used], np.flatnonzero(pinned)[used]
        before = gates[place]
        found = lsq_linear(columns, columns @ before - gradient, bounds=(-1.0, 1.0), tol=1e-14, lsq_solver="exact").x
        gates[place] = _centred(columns, found)
        if np.abs(gates[place] - before).max() <= 1e-14:
            break
    gradient, force, _ = (np.asarray(x) for x in _gated(task, point, jnp.asarray(gates)))
    return gates, gradient, force


def _centred(columns: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Of all slopes that give the same gradient, those farthest inside [-1, 1]; refined without bounds where inside."""
    _, singular, right = np.linalg.svd(columns, full_matrices=True)
    free = right[int(np.sum(singular > 1e-10 * singular.max())) :].T
    if free.shape[1] == 0:
        return slopes
    from scipy.optimize import linprog

    count = free.shape[1]
    bounds = np.concatenate(
        [np.hstack([free, np.ones((len(slopes), 1))]), np.hstack([-free, np.ones((len(slopes), 1))])]
    )
    limits = np.concatenate([1 - slopes, 1 + slopes])
    solved = linprog(
        np.append(np.zeros(count), -1.0), A_ub=bounds, b_ub=limits, bounds=[(None, None)] * count + [(None, 1)]
    )
    return slopes + free @ solved.x[:count] if solved.status == 0 else slopes
