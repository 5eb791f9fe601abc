"""The one contract of every task: a smooth loss of a flat vector of trained parameters.

Dynamics and certificates see nothing else than `evaluate`: loss, gradient and Hessian at a flat vector. A task that
knows closed forms gives them; the others get automatic differentiation from `value`.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Evaluation(NamedTuple):
    """Loss, gradient and Hessian at one point."""

    loss: Float[Array, ""]
    gradient: Float[Array, " P"]
    hessian: Float[Array, "P P"]


class Task(eqx.Module):
    """Something to minimise. Subclasses give `flatten`, `unflatten`, `size` and `value`, and closed forms if known."""

    @property
    def size(self) -> int:
        """Number P of trained parameters."""
        raise NotImplementedError

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        """Trained parameters as a flat vector; a flat vector passes through."""
        raise NotImplementedError

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Any:
        """The inverse of `flatten`."""
        raise NotImplementedError

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        """The loss at a flat vector, traceable."""
        raise NotImplementedError

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        """Loss and gradient at a flat vector, traceable."""
        return jax.value_and_grad(self.value)(vector)

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        """Loss, gradient and Hessian at a flat vector, traceable."""
        loss, gradient = self.value_and_gradient(vector)
        return Evaluation(loss, gradient, jax.jacfwd(lambda v: self.value_and_gradient(v)[1])(vector))

    def evaluate_roughly(self, vector: Float[Array, " P"]) -> Evaluation:
        """`evaluate` with the Hessian in single precision, for methods that look at the gradient for what is left."""
        loss, gradient, hessian = self.evaluate(vector)
        return Evaluation(loss, gradient, hessian.astype(jnp.float32))

    @property
    def is_flat(self) -> bool:
        """Whether the parameter space is flat, so that the task is its own chart everywhere."""
        return type(self).chart is Task.chart

    def chart(self, vector: Float[Array, " P"]) -> 'tuple[Task, Float[Array, " Q"]]':
        """The task in coordinates around a point, and the point in them, traceable: itself in a flat parameter space.

        Flow, Newton's method and certificates work in these coordinates. On a curved space they are tangent coordinates
        (see `Sphere`), `point` is the way back and `slope` differs from the gradient.
        """
        return self, vector

    def point(self, local: Float[Array, " Q"]) -> Float[Array, " P"]:
        """The parameters that coordinates of a chart stand for."""
        return local

    def slope(self, local: Float[Array, " Q"]) -> Float[Array, " Q"]:
        """-dq/dt along the gradient flow, in the coordinates q of a chart."""
        return self.value_and_gradient(local)[1]

    def symmetry_tangents(self, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
        """Directions in which a continuous symmetry moves the parameters without changing the loss, traceable."""
        return jnp.zeros((0, self.size))

    def prepared(self, vectors: Float[Array, "*batch P"]) -> "Task":
        """The same task, made ready to be accurate at and around these points (quadrature picks its nodes here)."""
        return self

    def loss(self, parameters: Any) -> Float[Array, "*batch"]:
        """The loss at `parameters`; a batch of parameters gives a batch of losses."""
        vector = self.flatten(parameters)
        return _batched(_loss, self.prepared(vector), vector)

    def gradient(self, parameters: Any) -> Float[Array, "*batch P"]:
        """The gradient with respect to the flat vector of trained parameters; see `unflatten`."""
        vector = self.flatten(parameters)
        return _batched(_gradient, self.prepared(vector), vector)

    def hessian(self, parameters: Any) -> Float[Array, "*batch P P"]:
        """The Hessian, symmetric P × P, in the order of `flatten`."""
        vector = self.flatten(parameters)
        _check_dense(self.size)
        return _batched(_hessian, self.prepared(vector), vector)


DENSE_LIMIT = 12_000
"""Largest P for which a dense Hessian is built (1.2 GB); beyond it, reduce the task or go matrix-free."""


def _check_dense(size: int) -> None:
    if size > DENSE_LIMIT:
        raise ValueError(
            f"A dense Hessian of {size} parameters would take {size**2 * 8 / 1e9:.0f} GB. Population tasks reduce to "
            f"dimension width + teacher width without loss: use task.reduce(parameters)."
        )


def _batched(function: Any, task: Task, vector: Array) -> Array:
    return function(task, vector) if vector.ndim == 1 else jax.vmap(function, in_axes=(None, 0))(task, vector)


@eqx.filter_jit
def _loss(task: Task, vector: Array) -> Array:
    return task.value(vector)


@eqx.filter_jit
def _gradient(task: Task, vector: Array) -> Array:
    return task.value_and_gradient(vector)[1]


@eqx.filter_jit
def _hessian(task: Task, vector: Array) -> Array:
    return task.evaluate(vector).hessian
