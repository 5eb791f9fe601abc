"""A loss around a point, in natural units, with its rounding measured there.

In natural units θ = θ_0 + D φ, with one length for each array of parameters (its own size at the point, or a length
from the task), and the loss is divided by a unit. Both are powers of two, so that changing units loses no digits. They
are 1 where sizes are ordinary.
"""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.kept_programs import kept
from understudy.tasks.task import Evaluation, Task

EPS = float(np.finfo(float).eps)

DENSE = 3_000
"""Up to this many parameters the whole spectrum is computed; beyond, its lower end."""

BATCH = 32
"""Points whose gradients are computed at once. Shorter batches are filled up: one compiled program is enough."""

ORDINARY = 128.0
"""Sizes between 1/128 and 128 are left as they are."""

_TOGETHER = 400
"""Up to this many parameters, a point and its perturbations are evaluated by one call: calls cost more than numbers."""

_PERTURBED = 2
SPREAD = 6.0
"""How much larger than the larger of two changes under perturbations by rounding the rounding error may be."""


_SMALL = 1e-10
"""Gradient relative to the Hessian, in units of small parameters, up to which these units are trusted."""

_JUMP = 1e-9
"""Change of the gradient within rounding of a point, relative to the Hessian, that only a kink can make."""


@kept
def _evaluate(task: Task, vector: Array) -> Evaluation:
    return task.evaluate(vector)


@kept
def _evaluate_some(task: Task, vectors: Any, count: Any) -> Evaluation:
    """`task.evaluate` at the first `count` rows; what the others hold has no meaning."""
    shapes = jax.eval_shape(task.evaluate, vectors[0])
    empty = jax.tree.map(lambda x: jnp.zeros((len(vectors), *x.shape), x.dtype), shapes)

    def one(i: Array, found: Evaluation) -> Evaluation:
        return jax.tree.map(lambda rows, row: rows.at[i].set(row), found, task.evaluate(vectors[i]))

    return jax.lax.fori_loop(0, count, one, empty)


def evaluate_at(task: Task, places: Float[np.ndarray, "m P"]) -> list[Evaluation]:
    """`task.evaluate` at up to three points, by a program that every certificate of this task uses."""
    if task.size > _TOGETHER:
        return [_evaluate(task, place) for place in places]
    filled = np.concatenate([places, np.zeros((1 + _PERTURBED - len(places), task.size))])
    rows = [np.asarray(x) for x in _evaluate_some(task, filled, np.asarray(len(places)))]
    return [Evaluation(*(x[i] for x in rows)) for i in range(len(places))]


@eqx.filter_jit
def outside_hessian(task: Task, vector: Array) -> Float[Array, "n n"]:
    """`Task.outside_hessian`, compiled."""
    return task.outside_hessian(vector)


@kept
def _slopes(task: Task, vectors: Array) -> tuple[Array, Array]:
    return jax.lax.map(task.value_and_gradient, vectors, batch_size=16)


@dataclass(frozen=True)
class Rounding:
    """Rounding errors at a point, estimated from what perturbations by rounding change: of the loss, of the gradient's
    norm and of the Hessian's eigenvalues, in the units of the task."""

    loss: float
    gradient: float
    hessian: float


class Surroundings:
    """`task` around `vector`: `evaluate` and `slopes` at offsets φ, and the numbers at the point itself.

    `lengths` D and `unit`: see above; `loss`, `gradient`, `hessian`: at the point, in natural units, `finite` if they
    are; `size`: of the Hessian here or, where it is small, a little aside; `jitter`: two offsets of the size of
    rounding, `losses`, `gradients`, `hessians`: what they change; `kinked`: whether the gradient jumps within them.
    """

    def __init__(self, task: Task, vector: np.ndarray):
        self.task, self.vector = task, np.asarray(vector, float)
        self.lengths = natural_lengths(task, self.vector)
        self.unit = 1.0
        self.kinked = False
        here, *moved = self._here_and_aside()
        loss, gradient, hessian = here
        if lengths_may_be_larger(task, self.vector, self.lengths, gradient, float(np.linalg.norm(hessian))):
            self.lengths = np.maximum(self.lengths, 1.0)
            here, *moved = self._here_and_aside()
            loss, gradient, hessian = here
        self.finite = bool(np.isfinite(loss) and np.all(np.isfinite(gradient)) and np.all(np.isfinite(hessian)))
        size = float(np.linalg.norm(hessian)) if self.finite else 1.0
        if self.finite and size < 1 / ORDINARY:  # where terms cancel, the Hessian is small and the problem is not
            wave = np.cos(np.arange(len(self.vector)) * 1.7 + 0.3)
            aside = self.evaluate(0.1 * (1 + np.abs(self.vector / self.lengths)) * wave)[2]
            size = max(size, float(np.linalg.norm(aside))) if np.all(np.isfinite(aside)) else size
        self.unit = power_of_two(size)
        self.size = size / self.unit
        self.loss, self.gradient, self.hessian = loss / self.unit, gradient / self.unit, hessian / self.unit
        if self.finite:
            self._compare(moved)

    def _here_and_aside(self) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Numbers at the point and at the offsets `jitter`."""
        self.jitter = perturbations(self.vector, self.lengths)
        return self.evaluate_all(np.concatenate([np.zeros((1, len(self.vector))), self.jitter]))

    def _compare(self, moved: list[tuple[float, np.ndarray, np.ndarray]]) -> None:
        self.losses = np.array([x[0] for x in moved]) / self.unit - self.loss
        self.gradients = np.stack([x[1] for x in moved]) / self.unit - self.gradient
        self.hessians = np.stack([x[2] for x in moved]) / self.unit - self.hessian
        jumps = np.linalg.norm(self.gradients - self.jitter @ self.hessian, axis=1)
        self.kinked = bool(np.any(~(jumps <= _JUMP * (self.size + np.linalg.norm(self.gradient)))))

    @cached_property
    def rounding(self) -> Rounding:
        """The rounding of the loss, the gradient and the Hessian here, in natural units; NaN if they do not exist."""
        if not self.finite:
            return Rounding(16 * EPS * abs(self.loss), float("nan"), float("nan"))
        return Rounding(
            loss=SPREAD * float(np.abs(self.losses).max()) + 16 * EPS * abs(self.loss),
            gradient=SPREAD * float(np.linalg.norm(self.gradients, axis=1).max())
            + EPS * float(np.linalg.norm(self.gradient)),
            hessian=SPREAD * float(np.linalg.norm(self.hessians, axis=(1, 2)).max())
            + 4 * EPS * float(np.sqrt(len(self.vector)) * np.linalg.norm(self.hessian)),
        )

    def along(self, directions: np.ndarray) -> np.ndarray:
        """Rounding of the gradient along each of these directions (columns)."""
        own = EPS * np.abs(directions.T @ self.gradient)
        return SPREAD * np.abs(self.gradients @ directions).max(axis=0) + own

    def along_by_many(self, directions: np.ndarray) -> np.ndarray:
        """`along`, from as many perturbations as one call takes: two can cancel along a direction by chance."""
        here, moved = np.zeros((1, len(self.vector))), perturbations(self.vector, self.lengths, BATCH - 1)
        gradients = self.slopes(np.concatenate([here, moved]))[1]
        return SPREAD * np.abs((gradients[1:] - gradients[0]) @ directions).max(axis=0)

    def incoming_lengths(self, count: int) -> np.ndarray:
        """Natural lengths of the first incoming weight of each of `count` neurons."""
        neurons = self.task.neurons(self.vector)
        return np.ones(count) if neurons is None else self.lengths[neurons.layout[:, 0]]

    def prepared(self, reach: float) -> "Surroundings":
        """The same surroundings, with a task that is accurate up to this distance (in natural units)."""
        task = self.task.prepared(jnp.asarray(self.vector + reach * self.lengths * np.sign(self.vector)))
        if task is self.task:
            return self
        other = copy.copy(self)
        other.task = task
        return other

    def place(self, offset: np.ndarray) -> np.ndarray:
        """θ_0 + D φ."""
        return self.vector + self.lengths * offset

    def evaluate(self, offset: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, gradient and Hessian at an offset, in natural units."""
        return self.evaluate_all(offset[None])[0]

    def evaluate_all(self, offsets: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """`evaluate` at up to three offsets (rows)."""
        found = evaluate_at(self.task, self.vector + self.lengths * offsets)
        return [self._in_units(*numbers) for numbers in found]

    def _in_units(self, loss: Any, gradient: Any, hessian: Any) -> tuple[float, np.ndarray, np.ndarray]:
        matrix, d = np.asarray(hessian), self.lengths
        matrix = (matrix + matrix.T) / 2
        return float(loss) / self.unit, d * np.asarray(gradient) / self.unit, d[:, None] * matrix * d / self.unit

    def slopes(self, offsets: Float[np.ndarray, "m P"]) -> tuple[np.ndarray, np.ndarray]:
        """Losses and gradients at many offsets, in natural units."""
        places = self.vector + self.lengths * offsets
        losses, gradients = [], []
        for start in range(0, len(places), BATCH):
            part = places[start : start + BATCH]
            filled = np.concatenate([part, np.repeat(part[:1], BATCH - len(part), axis=0)])
            loss, gradient = _slopes(self.task, jnp.asarray(filled))
            losses.append(np.asarray(loss)[: len(part)])
            gradients.append(np.asarray(gradient)[: len(part)])
        return np.concatenate(losses) / self.unit, self.lengths * np.concatenate(gradients) / self.unit


def lengths_may_be_larger(
    task: Task, vector: np.ndarray, lengths: np.ndarray, gradient: np.ndarray, hessian: float
) -> bool:
    """Whether parameters are small and the slope is not, so that the point is near zero but the units need not be.

    A task that knows its lengths is believed.
    """
    small = np.any(lengths < 1) and np.linalg.norm(gradient) > _SMALL * hessian
    return bool(small) and task.natural_lengths(vector) is None


def perturbations(vector: np.ndarray, lengths: np.ndarray, count: int = _PERTURBED) -> np.ndarray:
    """Offsets of the size of rounding, in natural units: two, or `count` random ones of one to three roundings."""
    size = np.maximum(2 * np.spacing(np.abs(vector)) / lengths, EPS)
    if count > _PERTURBED:
        return np.random.default_rng(0).integers(-3, 4, size=(count, len(vector))) / 2 * size
    return np.sign(np.cos(np.arange(count * len(vector)).reshape(count, -1) * 2.3 + 0.7)) * size


def power_of_two(size: float) -> float:
    """The power of two nearest to a size; 1 for ordinary sizes and for zero.

    >>> power_of_two(3.0), power_of_two(1000.0), power_of_two(0.0)
    (1.0, 1024.0, 1.0)
    """
    if not np.isfinite(size) or size == 0 or 1 / ORDINARY <= size <= ORDINARY:
        return 1.0
    return float(2.0 ** np.round(np.log2(size)))


def natural_lengths(task: Task, vector: np.ndarray) -> np.ndarray:
    """One length for each parameter: from the task if it knows one, otherwise the size of the parameter's array.

    An array smaller than √eps times the task's unit (see `Task.units`) counts as zero. At critical points such arrays
    are what Newton's method leaves of zeros, and in units of their size every curvature would vanish.
    """
    known = task.natural_lengths(vector)
    if known is not None:
        if np.all((known >= 1 / ORDINARY) & (known <= ORDINARY)):
            return np.ones(len(known))
        sizes, place = np.unique(known, return_inverse=True)
        return np.array([power_of_two(float(x)) for x in sizes])[place]
    lengths, units = np.ones(len(vector)), task.units(vector).lengths
    first, second = (
        jax.tree.leaves(eqx.filter(task.unflatten(jnp.arange(len(vector), dtype=float) + shift), eqx.is_inexact_array))
        for shift in (0.0, 1.0)
    )
    for a, b in zip(first, second, strict=True):
        own = np.asarray(a)[np.asarray(b) - np.asarray(a) == 1].astype(int).ravel()
        if len(own) and own.min() >= 0 and own.max() < len(vector):
            size, unit = float(np.abs(vector[own]).max()), float(units[own].max())
            lengths[own] = power_of_two(size if size > np.sqrt(EPS) * unit else unit)
    return lengths
