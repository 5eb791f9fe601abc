"""Warm starts of `Population` tasks: exact averages of products of students and teachers."""

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.activations import Activation
from understudy.gaussian import biased_self_partials, self_partials, single_expectations
from understudy.gaussian.quadrature import nodes_needed
from understudy.networks import TwoLayer
from understudy.tasks import biased
from understudy.tasks.biased_pairs import Shifted
from understudy.tasks.biased_pairs import pair_up as pair_up_biased
from understudy.tasks.imitation import NORMS, Imitation, Rows
from understudy.tasks.pairs import pair_up
from understudy.tasks.population_meaning import setting

if TYPE_CHECKING:
    from understudy.tasks.population import Population


def imitate_teacher(task: "Population", teacher: Any, layer: int) -> Imitation:
    """The task's own teacher as the layer to imitate."""
    if teacher is not None or layer != 0:
        raise ValueError("A Population task has one hidden layer and its own teacher: leave out teacher= and layer=.")
    if task.fixed_bias is not None and np.ptp(np.asarray(task.fixed_bias)) > 0:
        raise ValueError(
            "Fixed biases that differ between students have no warm start: which student may copy which teacher would "
            "depend on its bias. Train the biases, or fix one for all."
        )
    averages = _Biased(task) if task.biased else _Unbiased(task)
    own, k = task.teacher, task.teacher.width
    v, b = np.asarray(own.incoming), np.asarray(own.outgoing).reshape(k, -1)
    if task.trains_bias:
        v = np.column_stack([v, np.zeros(k) if own.bias is None else np.asarray(own.bias)])
    fixed = None if task.trains_outgoing else np.asarray(task.fixed_outgoing).reshape(task.width, -1)
    return Imitation(
        rows=v,
        outgoing=b,
        students=task.width,
        overlaps=averages.overlaps,
        between=averages.between,
        squares=averages.squares,
        towards=averages.towards,
        target=averages.target,
        lengths=averages.lengths,
        build=averages.build,
        fixed=fixed,
        setting=setting(task),
    )


class _Unbiased:
    """No biases, inputs of mean zero."""

    def __init__(self, task: "Population"):
        self.task = task
        self.root = None if task.root is None else np.asarray(task.root)
        self.b = np.asarray(task.teacher.outgoing).reshape(task.teacher.width, -1)
        self.teachers = self._seen(np.asarray(task.teacher.incoming))
        self.resolution = _resolution(task, np.linalg.norm(self.teachers, axis=1))
        sigma = task.teacher.activation
        self.overlaps = self._products(sigma, sigma, self.teachers, self.teachers, same=True)

    def _seen(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.root is None else rows @ self.root

    def _products(
        self, first: Activation, second: Activation, p: np.ndarray, q: np.ndarray, *, same: bool = False
    ) -> np.ndarray:
        found = np.array(_interactions(first, second, jnp.asarray(p), jnp.asarray(q), self.resolution))
        if same:  # the pair of a neuron with itself is exact only by its own formula
            np.fill_diagonal(found, self._squares(first, p))
        return found

    def _squares(self, sigma: Activation, p: np.ndarray) -> np.ndarray:
        squares = jnp.asarray(np.sum(p**2, axis=1))
        return np.asarray(self_partials(sigma, squares, nodes_needed(self.resolution)).value)

    def between(self, p: Rows) -> np.ndarray:
        sigma, seen = self.task.activation, self._seen(p)
        return self._products(sigma, sigma, seen, seen, same=True)

    def squares(self, p: Rows) -> np.ndarray:
        return self._squares(self.task.activation, self._seen(p))

    def towards(self, p: Rows) -> np.ndarray:
        return self._products(self.task.activation, self.task.teacher.activation, self._seen(p), self.teachers)

    def target(self, p: Rows) -> np.ndarray:
        return self.towards(p) @ self.b

    def lengths(self, p: Rows) -> np.ndarray:
        return np.linalg.norm(self._seen(p), axis=1)

    def build(self, rows: Rows, outgoing: np.ndarray) -> TwoLayer:
        return TwoLayer(rows, outgoing.reshape(len(rows), *self.task.outputs))


class _Biased:
    """Biases, or inputs with a mean; products are centred if the student trains its offset."""

    def __init__(self, task: "Population"):
        self.task = task
        own = task.teacher
        self.b = np.asarray(own.outgoing).reshape(own.width, -1)
        self.offset = np.zeros(self.b.shape[1]) if own.offset is None else np.asarray(own.offset).reshape(-1)
        self.teachers = biased.shifted(task, own.incoming, own.bias)
        self.resolution = _resolution(task, np.linalg.norm(np.asarray(self.teachers.vectors), axis=1))
        self.teacher_means = self._means(own.activation, self.teachers)
        self.overlaps = self._products(own.activation, own.activation, self.teachers, self.teachers, same=True)

    def _seen(self, rows: np.ndarray) -> Shifted:
        w, c = (rows[:, :-1], rows[:, -1]) if self.task.trains_bias else (rows, None)
        if self.task.fixed_bias is not None:
            c = np.full(len(rows), float(self.task.fixed_bias[0]))
        return biased.shifted(self.task, jnp.asarray(w), None if c is None else jnp.asarray(c))

    def _means(self, sigma: Activation, p: Shifted) -> np.ndarray:
        squares = jnp.sum(p.vectors**2, axis=1)
        return np.asarray(single_expectations(sigma, squares, p.means, nodes_needed(self.resolution))[0])

    def _products(
        self, first: Activation, second: Activation, p: Shifted, q: Shifted, *, same: bool = False
    ) -> np.ndarray:
        found = np.array(_biased_interactions(first, second, p, q, self.resolution))
        if same:
            np.fill_diagonal(found, self._squares(first, p))
        centre = np.outer(self._means(first, p), self._means(second, q)) if self.task.trains_bias else 0.0
        return found - centre

    def _squares(self, sigma: Activation, p: Shifted) -> np.ndarray:
        squares, nodes = jnp.sum(p.vectors**2, axis=1), nodes_needed(self.resolution)
        return np.asarray(biased_self_partials(sigma, squares, p.means, nodes).value)

    def between(self, p: Rows) -> np.ndarray:
        sigma, seen = self.task.activation, self._seen(p)
        return self._products(sigma, sigma, seen, seen, same=True)

    def squares(self, p: Rows) -> np.ndarray:
        sigma, seen = self.task.activation, self._seen(p)
        return self._squares(sigma, seen) - (self._means(sigma, seen) ** 2 if self.task.trains_bias else 0.0)

    def towards(self, p: Rows) -> np.ndarray:
        return self._products(self.task.activation, self.task.teacher.activation, self._seen(p), self.teachers)

    def target(self, p: Rows) -> np.ndarray:
        constant = (
            0.0 if self.task.trains_bias else np.outer(self._means(self.task.activation, self._seen(p)), self.offset)
        )
        return self.towards(p) @ self.b + constant

    def lengths(self, p: Rows) -> np.ndarray:
        return np.linalg.norm(np.asarray(self._seen(p).vectors), axis=1)

    def build(self, rows: Rows, outgoing: np.ndarray) -> TwoLayer:
        a = outgoing.reshape(len(rows), *self.task.outputs)
        if not self.task.trains_bias:
            return TwoLayer(rows, a, self.task.fixed_bias)
        means = self._means(self.task.activation, self._seen(rows))
        offset = self.offset + self.teacher_means @ self.b - means @ outgoing
        return TwoLayer(rows[:, :-1], a, rows[:, -1], offset.reshape(self.task.outputs))


def _resolution(task: "Population", lengths: np.ndarray) -> float:
    """Steepness times the largest norm that a warm start looks at."""
    steepest = max(task.teacher.activation.steepness, task.activation.steepness)
    return steepest * float(NORMS[-1]) * float(lengths.max())


@partial(jax.jit, static_argnames=("first", "second", "resolution"))
def _interactions(first: Activation, second: Activation, p: Array, q: Array, resolution: float) -> Array:
    return pair_up(first, second, p, q, resolution).partials.value


@partial(jax.jit, static_argnames=("first", "second", "resolution"))
def _biased_interactions(first: Activation, second: Activation, p: Shifted, q: Shifted, resolution: float) -> Array:
    return pair_up_biased(first, second, p, q, resolution).partials.value
