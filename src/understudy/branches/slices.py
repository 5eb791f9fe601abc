"""A family of tasks as functions of a point and a parameter: gradient, Hessian, and the gradient's slope.

The family is a function from a real parameter p to a task. `Slices` computes, at a point x of the task at p, the loss
L, ∂L/∂x, ∂²L/∂x² and ∂²L/∂x∂p. There are three ways, tried in this order:

- `"traced"`: the family can be differentiated itself (for example `us.Loss` with p in its function). All derivatives
  are exact.
- `"arrays"`: the tasks differ only in their arrays (for example in the teacher's weights). The arrays are
  differentiated by a five-point formula, and the gradient exactly along them.
- `"differences"`: the tasks differ in more (for example in the name of an activation). Nothing is compiled, and the
  slope of the gradient comes from a five-point formula.

The slope is used in Newton's method only. Its error slows the method down, but does not move the points that it finds.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.tasks import Task
from understudy.tasks.task import checked_task

Family = Callable[[Any], Task]
Mode = Literal["traced", "arrays", "differences"]


class Slice(NamedTuple):
    """The task at one parameter, around one point: loss, gradient g, Hessian H, ∂g/∂p, and orthonormal symmetry
    rows."""

    loss: float
    gradient: np.ndarray
    hessian: np.ndarray
    slope: np.ndarray
    symmetries: np.ndarray

    @property
    def size(self) -> float:
        """The Hessian's norm, at least the smallest positive number."""
        return max(float(np.linalg.norm(self.hessian, 2)), 1e-300)

    @property
    def transversal(self) -> np.ndarray:
        """H + ‖H‖ SᵀS: the Hessian, with the directions of continuous symmetries made stiff."""
        return self.hessian + self.size * self.symmetries.T @ self.symmetries

    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, ascending, and eigenvectors (columns) of the Hessian on the complement of the symmetries."""
        count = len(self.symmetries)
        if not count:
            return np.linalg.eigh(self.hessian)
        space = np.linalg.svd(self.symmetries, full_matrices=True)[2][count:].T
        values, vectors = np.linalg.eigh(space.T @ self.hessian @ space)
        return values, space @ vectors


class Slices:
    """A family on an interval, checked, with one compiled program for all of it where that is possible."""

    def __init__(self, family: Family, low: float, high: float):
        if not callable(family):
            raise TypeError(
                "A family is a function from a number to a task, such as lambda p: us.Population(teacher(p), width=2); "
                f"received {type(family).__name__}."
            )
        self.family, self.low, self.high = family, float(low), float(high)
        self.step = 1e-3 * min(high - low, 1.0)
        first, last = (self._made(p) for p in (low, high))
        if first.size != last.size:
            raise ValueError(
                f"All tasks of a family need the same number of parameters; this one has {first.size} at {low:g} and "
                f"{last.size} at {high:g}."
            )
        self.size = first.size
        self.mode: Mode = self._choose(first, last)
        self.evaluations = 0

    def _made(self, p: float) -> Task:
        task = checked_task(self.family(float(p)), f"what the family returns at {p:g}")
        if not task.is_flat:
            raise ValueError(
                f"Branches are followed in flat parameter spaces; {type(task).__name__} has a curved one. Use "
                "us.Population, us.Empirical or us.Loss."
            )
        return task

    def task(self, p: float, x: np.ndarray | Array | None = None) -> Task:
        """The task at p, prepared for the point x."""
        task = self._made(p)
        return task if x is None else task.prepared(jnp.asarray(x))

    def _choose(self, first: Task, last: Task) -> Mode:
        try:
            jax.eval_shape(self._traced_evaluation, jnp.zeros(self.size), jnp.asarray(self.low))
        except Exception:  # whatever the family does with a traced number, the other ways remain
            pairs = [(first, self._made(self.low + self.step)), (self._made(self.high - self.step), last)]
            return "arrays" if all(_same_program(*pair) for pair in pairs) else "differences"
        self._compiled = jax.jit(self._traced_evaluation)
        return "traced"

    def _traced_evaluation(self, x: Array, p: Array) -> tuple[Array, ...]:
        task = self.family(p)
        loss, gradient, hessian = task.evaluate(x)
        slope = jax.jvp(lambda q: self.family(q).value_and_gradient(x)[1], (p,), (jnp.ones(()),))[1]
        return loss, gradient, hessian, slope, task.symmetry_tangents(x)

    def at(self, x: np.ndarray, p: float) -> Slice:
        """Loss and derivatives at the point x of the task at p."""
        self.evaluations += 1
        vector = jnp.asarray(x)
        if self.mode == "traced":
            found = self._compiled(vector, jnp.asarray(float(p)))
        else:
            task = self.task(p, x)
            if self.mode == "arrays":
                found = self._by_arrays(task, vector, p)
            else:
                found = (*task.evaluate(vector), self._by_differences(vector, p), task.symmetry_tangents(vector))
        loss, gradient, hessian, slope, tangents = (np.asarray(part) for part in found)
        return Slice(float(loss), gradient, (hessian + hessian.T) / 2, slope, _orthonormal(tangents))

    def _by_arrays(self, task: Task, x: Array, p: float) -> tuple[Array, ...]:
        here = jax.tree.leaves(eqx.filter(task, eqx.is_inexact_array))
        nodes, weights = self._stencil(p)
        moved = [jax.tree.leaves(eqx.filter(self._made(q), eqx.is_inexact_array)) for q in nodes]
        rates = [sum(w * leaves[i] for w, leaves in zip(weights, moved, strict=True)) for i in range(len(here))]
        return _evaluate_along(task, tuple(jnp.asarray(r) for r in rates), x)

    def _by_differences(self, x: Array, p: float) -> np.ndarray:
        nodes, weights = self._stencil(p)
        gradients = [np.asarray(self.task(q, x).value_and_gradient(x)[1]) for q in nodes]
        return np.tensordot(weights, np.stack(gradients), 1)

    def _stencil(self, p: float) -> tuple[np.ndarray, np.ndarray]:
        """Five nodes inside the interval, and the weights of the first derivative at p: error O(step⁴)."""
        middle = min(max(p, self.low + 2 * self.step), self.high - 2 * self.step)
        nodes = middle + self.step * np.arange(-2, 3)
        powers = ((nodes - p) / self.step) ** np.arange(5)[:, None]
        return nodes, np.linalg.solve(powers, np.eye(5)[1]) / self.step

    def slope_error(self, x: np.ndarray, p: float) -> float:
        """The relative error of ∂²L/∂x∂p: its distance from plain central differences of the gradient."""
        gradients = [
            np.asarray(self.task(q, x).gradient(x))
            for q in (p - self.step, p + self.step)
            if self.low <= q <= self.high
        ]
        if len(gradients) < 2:
            return float("nan")
        plain = (gradients[1] - gradients[0]) / (2 * self.step)
        return float(np.linalg.norm(plain - self.at(x, p).slope) / max(float(np.linalg.norm(plain)), 1e-300))


def _same_program(first: Task, last: Task) -> bool:
    """Whether the tasks differ only in their arrays."""
    parts = [eqx.partition(task, eqx.is_inexact_array) for task in (first, last)]
    shapes = [jax.tree.map(lambda x: x.shape, arrays) for arrays, _ in parts]
    return bool(eqx.tree_equal(parts[0][1], parts[1][1])) and shapes[0] == shapes[1]


@eqx.filter_jit
def _evaluate_along(task: Task, rates: tuple[Array, ...], x: Array) -> tuple[Array, ...]:
    """The evaluation of a task, and the slope of its gradient where its arrays move at these rates."""
    arrays, rest = eqx.partition(task, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(arrays)

    def gradient_of(*moved: Array) -> Array:
        return eqx.combine(jax.tree.unflatten(tree, moved), rest).value_and_gradient(x)[1]

    slope = jax.jvp(gradient_of, tuple(leaves), rates)[1]
    return (*task.evaluate(x), slope, task.symmetry_tangents(x))


def _orthonormal(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of the rows."""
    if not len(rows):
        return rows
    _, lengths, right = np.linalg.svd(rows, full_matrices=False)
    return right[lengths > 1e-9 * max(float(lengths[0]), 1e-6)]
