"""Warm starts for a smaller student, made from its teacher."""

from __future__ import annotations

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.activations import Activation
from understudy.gaussian import self_partials
from understudy.gaussian.quadrature import nodes_needed
from understudy.networks import TwoLayer
from understudy.tasks.pairs import pair_up
from understudy.tasks.population import Population
from understudy.theory.copy_average import copy_average
from understudy.theory.one_neuron import NoCriticalPointError

LOW_COMPRESSION = 0.75
"""γ3 of Simsek et al. 2023: for more students than this times the teachers, copies end in the better minimum."""

_NORMS = np.geomspace(0.02, 2.0, 49)
"""Norms tried for an averaging neuron, as multiples of its teachers' typical one: the optimum lies below 1 for every
activation that the theory covers, and the loss is flat around it."""


def warm_start(task: Population, kind: Literal["auto", "copy-average", "copy"] = "auto") -> TwoLayer:
    """A student made from the teacher's own neurons, as a start of the flow.

    **Arguments**

    - `task`: a population task with trained outgoing weights, one output, and fewer students n than teachers k.
    - `kind`: `"copy"`: copies of the n teachers whose absence would cost most; `"copy-average"`: n-1 copies, and one
      neuron that averages the rest; `"auto"`: `"copy"` if n > 0.75 k, otherwise `"copy-average"`.

    For the unit-orthonormal teacher and erf, `"copy-average"` is the exact (n-1)-copy-1-average point and `"copy"` the
    n-copy point (Simsek et al. 2023, Section 6, advise copies for n > γ3 k and the average below). For any other
    teacher, outgoing weights or input covariance this is a heuristic:

    - The averaged teachers are chosen greedily. The search begins with the pair that one neuron represents best and
      adds the teacher that costs least. Each group is judged by the loss of its best single neuron along Σ_j b_j v_j.
    - The norm of the averaging neuron is searched for. All outgoing weights are then solved for exactly (a
      least-squares problem), which also accounts for interactions between groups.

    >>> from understudy import Population, Teacher
    >>> start = warm_start(Population(Teacher.orthonormal(5), width=3), "copy-average")
    >>> start.outgoing.round(6).tolist()
    [1.0, 1.0, 3.0]
    """
    k, n = task.teacher.width, task.width
    if kind not in ("auto", "copy-average", "copy"):
        raise ValueError(f"kind is 'auto', 'copy-average' or 'copy'; received {kind!r}.")
    if n >= k or task.outputs or not task.trains_outgoing:
        raise ValueError(
            f"A warm start makes a smaller student with one trained output from its teacher; received {n} students, "
            f"{k} teachers, outputs {task.outputs or 1}, outgoing weights "
            f"{'trained' if task.trains_outgoing else 'fixed'}."
        )
    if task.biased:
        raise ValueError(
            "Warm starts are known without biases and for inputs of mean zero; this task has biases or a mean. Start from "
            "task.starts(), or from some of the teacher's neurons with their biases."
        )
    if kind == "auto":
        kind = "copy" if n > LOW_COMPRESSION * k else "copy-average"
    if task.teacher.is_unit_orthonormal and task.root is None and task.activation == task.teacher.activation:
        exact = (1,) * n if kind == "copy" else (*(1,) * (n - 1), k - n + 1)
        try:
            point = copy_average(task.activation, exact, teachers=k)
            return TwoLayer(point.incoming @ task.teacher.incoming, point.outgoing)
        except NoCriticalPointError:
            pass  # the average of such an activation has no best norm, so the heuristic bounds it
    view = _View(task)
    if kind == "copy":
        missed = [view.residual([j for j in range(k) if j != i]) for i in range(k)]
        kept = sorted(np.argsort(missed, kind="stable")[k - n :].tolist())
        return view.solve(np.asarray(task.teacher.incoming)[kept])
    group = view.group(k - n + 1)
    kept = [j for j in range(k) if j not in group]
    average = view.best_average(group, passes=3)[1]
    return view.solve(np.concatenate([np.asarray(task.teacher.incoming)[kept], average[None]]))


class _View:
    """Interactions of candidate neurons with the teachers of one task."""

    def __init__(self, task: Population):
        self.task = task
        self.v = np.asarray(task.teacher.incoming)
        self.b = np.asarray(task.teacher.outgoing)
        self.root = None if task.root is None else np.asarray(task.root)
        seen = self._seen(self.v)
        self.lengths = np.linalg.norm(seen, axis=1)
        scale = task.teacher.activation.steepness, task.activation.steepness
        self.resolution = max(scale) * float(_NORMS[-1]) * float(self.lengths.max())
        self.nodes = nodes_needed(self.resolution)
        sigma = task.teacher.activation
        pairs = self._value(sigma, sigma, seen, seen)
        np.fill_diagonal(pairs, np.asarray(self_partials(sigma, jnp.asarray(self.lengths**2), self.nodes).value))
        self.gram = np.outer(self.b, self.b) * pairs

    def _value(self, first: Activation, second: Activation, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return np.array(_interactions(first, second, jnp.asarray(p), jnp.asarray(q), self.resolution))

    def _seen(self, w: np.ndarray) -> np.ndarray:
        return w if self.root is None else w @ self.root

    def residual(self, kept: list[int]) -> float:
        """Loss of the best combination of these teachers' own functions."""
        total, cross = self.gram.sum(), self.gram[kept].sum(axis=1)
        return float(total - cross @ np.linalg.lstsq(self.gram[np.ix_(kept, kept)], cross, rcond=1e-12)[0])

    def best_average(self, group: list[int], passes: int = 1) -> tuple[float, np.ndarray]:
        """Loss of the best single neuron along Σ b_j v_j for this group alone, and its incoming vector.

        Teachers outside the group have weight 0 instead of being left out, so that all groups share one compiled shape.
        """
        weights = np.zeros(len(self.b))
        weights[group] = self.b[group]
        direction = weights @ self.v
        size = float(np.linalg.norm(self._seen(direction[None])))
        total = float(self.gram[np.ix_(group, group)].sum())
        if size == 0:
            return total, direction
        unit = direction / size * float(np.mean(self.lengths[group]))
        student, teacher = self.task.activation, self.task.teacher.activation
        norms = _NORMS
        for turn in range(passes):
            seen = self._seen(norms[:, None] * unit[None, :])
            with_teachers = self._value(student, teacher, seen, self._seen(self.v))
            own = np.asarray(self_partials(student, jnp.asarray(np.sum(seen**2, axis=1)), self.nodes).value)
            losses = total - (with_teachers @ weights) ** 2 / own
            best = int(np.argmin(losses))
            found = float(losses[best]), norms[best] * unit
            if turn + 1 < passes:
                norms = np.geomspace(norms[max(best - 1, 0)], norms[min(best + 1, len(norms) - 1)], len(_NORMS))
        return found

    def group(self, size: int) -> list[int]:
        """Teachers to be averaged, chosen greedily."""
        k = len(self.b)
        pairs = [[i, j] for i in range(k) for j in range(i)]
        # One neuron represents two teachers better if they overlap more, relative to their strength.
        overlap = [self.gram[i, j] - 0.5 * (self.gram[i, i] + self.gram[j, j]) for i, j in pairs]
        first = sorted(range(len(pairs)), key=lambda p: -overlap[p])[: 4 * k]
        chosen = min((pairs[p] for p in first), key=lambda pair: self.best_average(pair)[0])
        while len(chosen) < size:
            rest = [j for j in range(k) if j not in chosen]
            base = {j: self.best_average([*chosen, j])[0] for j in rest}
            chosen = [*chosen, min(rest, key=lambda j: base[j])]
        return sorted(chosen)

    def solve(self, incoming: np.ndarray) -> TwoLayer:
        """The student with these incoming vectors and the best outgoing weights."""
        seen = self._seen(incoming)
        student, teacher = self.task.activation, self.task.teacher.activation
        own = self._value(student, student, seen, seen)
        squares = self_partials(student, jnp.asarray(np.sum(seen**2, axis=1)), self.nodes).value
        np.fill_diagonal(own, np.asarray(squares))
        cross = self._value(student, teacher, seen, self._seen(self.v))
        outgoing = np.linalg.lstsq(own, cross @ self.b, rcond=1e-12)[0]
        return TwoLayer(jnp.asarray(incoming), jnp.asarray(outgoing))


@partial(jax.jit, static_argnames=("first", "second", "resolution"))
def _interactions(first: Activation, second: Activation, p: Array, q: Array, resolution: float) -> Array:
    return pair_up(first, second, p, q, resolution).partials.value
