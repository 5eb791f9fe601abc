"""Certify points of problems that are too large for a dense Hessian, from the ends of its spectrum."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.dynamics.krylov import Curvature, preconditioned_eigenpairs
from understudy.points.surroundings import (
    EPS,
    SPREAD,
    Rounding,
    lengths_may_be_larger,
    natural_lengths,
    outside_hessian,
    perturbations,
    power_of_two,
)
from understudy.points.verdict import Certificate, Kind, bare
from understudy.points.zero_loss import SUMS
from understudy.tasks.rescaled import rescaled
from understudy.tasks.task import Task
from understudy.tasks.units import Units

_LOWEST = 12
"""Eigenvalues at the lower end that are computed."""

_LANCZOS = 1e-8
"""Accuracy of these eigenvalues by Lanczos, relative to the largest."""

_SOLVED, _ITERATIONS = 1e-3, 300
"""Accuracy of Newton's step, of which only the length matters, and the most iterations for it."""

_RESIDUAL = 1e-7
"""Norms of residuals Hv - λv of LOBPCG that are accepted, in addition to a hundredth of λ."""


@eqx.filter_jit
def hessian_product(task: Task, vector: Float[Array, " P"], direction: Float[Array, " P"]) -> Float[Array, " P"]:
    """H(θ) v, compiled; see `Task.hessian_product`."""
    return task.hessian_product(vector, direction)


@eqx.filter_jit
def _slope(task: Task, vector: Array) -> tuple[Array, Array]:
    return task.value_and_gradient(vector)


def lowest_eigenpairs(
    task: Task, vector: Float[Array, " P"], count: int = 6, *, tolerance: float = 1e-10
) -> tuple[np.ndarray, np.ndarray]:
    """The `count` lowest eigenvalues (ascending) and eigenvectors (columns), from Hessian products alone.

    By LOBPCG if the task knows blocks of its Hessian (`Task.hessian_blocks`), which precondition it, and by Lanczos
    (ARPACK) if it does not or LOBPCG is not accurate enough. Where automatic differentiation of a kinked loss gives
    NaN, products are central differences of the gradient.
    """
    values, vectors, _ = _lowest(task, vector, count, tolerance)
    return values, vectors


def _lowest(
    task: Task, vector: Float[Array, " P"], count: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray, float | None]:
    """`lowest_eigenpairs`, and the largest norm of a residual Hv - λv if it is from LOBPCG.

    Within the norm of its residual of each value, the Hessian has an eigenvalue.
    """
    from scipy.sparse.linalg import eigsh  # slow to import, and needed only for large tasks

    fine = task.prepared(np.asarray(vector))
    if fine.hessian_groups is not None and 4 * count < fine.size:
        curvature, point = Curvature(fine), np.asarray(vector, float)
        inverse = curvature.inverse(point, 0.0)
        values, rows, errors = preconditioned_eigenpairs(curvature, point, inverse, count, tolerance, _ITERATIONS)
        if np.all(errors <= np.maximum(_RESIDUAL, 1e-2 * np.abs(values))):
            return values, rows.T, float(errors.max())
    theta = jnp.asarray(vector, float)
    operator = _operator(task.prepared(theta), theta)
    size = theta.shape[0]
    basis = min(size, max(4 * count + 1, 60))
    values, vectors = eigsh(operator, k=min(count, size - 1), which="SA", v0=_wave(size), ncv=basis, tol=tolerance)
    order = np.argsort(values)
    return values[order], vectors[:, order], None


def _wave(size: int) -> np.ndarray:
    return np.cos(np.arange(size) * 1.7 + 0.3)


def _operator(task: Task, theta: Array) -> Any:
    """v ↦ H(θ) v, as a linear operator of SciPy."""
    from scipy.sparse.linalg import LinearOperator

    probe = np.asarray(hessian_product(task, theta, jnp.ones_like(theta)))
    exact = bool(np.all(np.isfinite(probe)))

    def product(direction: np.ndarray) -> np.ndarray:
        v = jnp.asarray(np.ravel(direction))
        if exact:
            return np.asarray(hessian_product(task, theta, v))
        step = 1e-5 * (1 + float(jnp.abs(theta).max())) / float(jnp.linalg.norm(v))
        return np.asarray(task.gradient(theta + step * v) - task.gradient(theta - step * v)) / (2 * step)

    return LinearOperator((theta.shape[0], theta.shape[0]), matvec=product, dtype=float)


@dataclass(frozen=True)
class _Numbers:
    """Loss, gradient and the ends of the spectrum of `task` at `point`, in natural units, with their rounding.

    `size`: the largest eigenvalue in absolute value; `unit`: of the loss; `error`: that of the eigenvalues.
    """

    task: Task
    point: Array
    lengths: np.ndarray
    unit: float
    loss: float
    gradient: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    size: float
    rounding: Rounding
    error: float


def _numbers(task: Task, vector: np.ndarray, lengths: np.ndarray) -> _Numbers:
    from scipy.sparse.linalg import eigsh

    plain = rescaled(task, Units(lengths, 1.0))
    point = jnp.asarray(vector / lengths)
    operator = _operator(plain, point)
    size = float(np.abs(eigsh(operator, k=1, which="LM", v0=_wave(len(vector)), tol=1e-3)[0][0]))
    loss, gradient = (np.asarray(x) for x in _slope(plain, point))
    if lengths_may_be_larger(task, vector, lengths, gradient, size):
        return _numbers(task, vector, np.maximum(lengths, 1.0))
    unit = power_of_two(size)
    values, vectors, error = _lowest(plain, point, _LOWEST, 1e-10)
    moved = [point + jnp.asarray(offset) for offset in perturbations(vector, lengths)]
    others = [[np.asarray(x) for x in _slope(plain, place)] for place in moved]
    probe = jnp.asarray(vectors[:, 0])
    here = np.asarray(hessian_product(plain, point, probe))
    turns = [np.linalg.norm(np.asarray(hessian_product(plain, place, probe)) - here) for place in moved]
    rounding = Rounding(
        loss=SPREAD * max(abs(float(x[0] - loss)) for x in others) / unit + 16 * EPS * abs(float(loss)) / unit,
        gradient=SPREAD * max(float(np.linalg.norm(x[1] - gradient)) for x in others) / unit
        + EPS * float(np.linalg.norm(gradient)) / unit,
        hessian=SPREAD * float(np.max(turns)) * float(np.sqrt(len(vector))) / unit
        + 4 * EPS * float(np.sqrt(len(vector))) * size / unit,
    )
    return _Numbers(
        plain, point, lengths, unit, float(loss) / unit, gradient / unit, values / unit, vectors, size / unit, rounding,
        _LANCZOS * size / unit if error is None else 2 * error / unit,
    )  # fmt: skip


def certify_large(task: Task, vector: np.ndarray, outside: int, tolerance: float, diverging: str | None) -> Certificate:
    """The verdict from the lower end of the spectrum, by the rules of a dense certificate.

    It distinguishes a strict saddle from a minimum whose lowest eigenvalue is above rounding and above the accuracy of
    Lanczos. Zero modes leave the point undecided, unless the loss is at its lower bound.
    """
    norm = float(np.linalg.norm(np.asarray(_slope(task, jnp.asarray(vector))[1])))
    kinks = task.kinks(vector)
    if kinks or not np.isfinite(norm):
        reasons = (*([diverging] if diverging else []), *(kinks or ["the gradient is not finite here"]))
        return bare("diverging" if diverging else "unconverged", float(task.loss(vector)), norm, reasons, "matrix-free")
    found = _numbers(task, vector, natural_lengths(task, vector))
    values, multiplicities, total = found.values, np.ones(len(found.values), int), task.size
    if outside:
        block = np.asarray(outside_hessian(task, jnp.asarray(vector)))
        neurons = task.neurons(vector)
        lengths = np.ones(len(block)) if neurons is None else found.lengths[neurons.layout[:, 0]]
        extra = np.linalg.eigvalsh(lengths[:, None] * block * lengths / found.unit)
        order = np.argsort(np.concatenate([values, extra]), kind="stable")
        values = np.concatenate([values, extra])[order]
        multiplicities = np.concatenate([multiplicities, np.full(len(extra), outside)])[order]
        total += outside * len(extra)
    step, threshold = _step(found)
    index = int(multiplicities[values < -threshold].sum())
    zeros = int(multiplicities[np.abs(values) <= threshold].sum())
    kind, words, drop = _judged(found, index, zeros, step, threshold, tolerance)
    if diverging:
        kind, words = "diverging", diverging
    about = f"the {_LOWEST} lowest eigenvalues of {task.size}, from products, to {threshold * found.unit:.0e}"
    unit, down = found.unit, found.vectors[:, found.values < -threshold].T * found.lengths
    return Certificate(
        kind=kind,
        loss=found.loss * unit,
        gradient_norm=norm,
        newton_decrement=float("nan"),
        least_eigenvalue=float(values[0]) * unit,
        index=index,
        zeros=zeros,
        positives=total - index - zeros,
        threshold=threshold * unit,
        explained=0,
        unexplained=zeros,
        flat_dimension=0,
        method="matrix-free",
        evidence=(words, f"{about}; index and zeros are lower bounds"),
        eigenvalues=values * unit,
        multiplicities=multiplicities,
        distance=step,
        drop=drop * unit,
        rounding=Rounding(*(x * unit for x in (found.rounding.loss, found.rounding.gradient, found.rounding.hessian))),
        directions=down / np.linalg.norm(down, axis=1, keepdims=True),
    )


def _step(found: _Numbers) -> tuple[float, float]:
    """The length of Newton's step, and the size of eigenvalues that may be zero at the critical point it leads to.

    As in `criticality.spectrum`: four times the change of the Hessian over the step counts, here along the lowest
    eigenvectors.
    """
    from scipy.sparse.linalg import minres

    operator = _operator(found.task, found.point)
    threshold = max(found.rounding.hessian, found.error)
    step, _ = minres(operator, found.gradient * found.unit, rtol=_SOLVED, maxiter=_ITERATIONS)
    there = found.point - jnp.asarray(step)
    for column in found.vectors.T[:2]:
        probe = jnp.asarray(column)
        change = hessian_product(found.task, there, probe) - hessian_product(found.task, found.point, probe)
        threshold = max(threshold, 4 * float(jnp.linalg.norm(change)) / found.unit)
    return float(np.linalg.norm(step)), threshold


def _judged(
    found: _Numbers, index: int, zeros: int, step: float, threshold: float, tolerance: float
) -> tuple[Kind, str, float]:
    """Kind, reason, and the smallest fall of the loss that would have been seen."""
    norm = float(np.linalg.norm(found.gradient))
    largest = float(jnp.abs(found.point).max())
    limit = max(tolerance, 1e3 * EPS * found.size * (1 + largest))
    bound, noise = found.task.lower_bound / found.unit, found.rounding.loss
    noise += SUMS * EPS * abs(found.task.target_scale) / found.unit
    if np.isfinite(bound) and found.loss <= bound + noise and not index:
        words = f"the loss is at its lower bound, to rounding ({noise * found.unit:.0e}): a global minimum"
        return "minimum", words, noise
    if norm > limit:
        return "unconverged", f"gradient norm {norm * found.unit:.2e} is above {limit * found.unit:.0e}", noise
    if step > 0.1 * (1 + float(jnp.linalg.norm(found.point))):
        return "unconverged", f"Newton's step is {step:.2g} long, so that no critical point is near", noise
    if index:
        return "strict saddle", f"eigenvalues below -{threshold * found.unit:.1e}", noise
    if zeros:
        return "undecided", f"{zeros} eigenvalues are zero to {threshold * found.unit:.1e}: no verdict", noise
    return "minimum", f"least eigenvalue {found.values[0] * found.unit:.3e} > {threshold * found.unit:.1e}", noise
