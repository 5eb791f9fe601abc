"""A two-layer loss in coordinates in which its valleys are nearly straight.

A neuron with a short incoming vector w is nearly linear: it depends on the product of w and its outgoing weights a. So
the loss has a valley along the hyperbola a w = const, which is strongly curved where a is large. In the coordinates
u = √(1 + |a|²) w and a the valley is nearly straight, and its sides are not steeper than those of other neurons.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.tasks.task import Evaluation, Task


class Straightened(Task):
    """ℓ(u, a) = L(u/√(1 + |a|²), a) for a loss L of rows (w_i, a_i), with `incoming` weights in each w_i."""

    task: Task
    rows: int = eqx.field(static=True)
    incoming: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        return self.task.size

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        if isinstance(parameters, (np.ndarray, jax.Array)):
            return jnp.asarray(parameters, float)
        return self.coordinates(self.task.flatten(parameters))

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Any:
        return self.task.unflatten(self.point(vector))

    def point(self, local: Float[Array, " P"]) -> Float[Array, " P"]:
        return self._scaled(local, -0.5)

    def coordinates(self, vector: Float[Array, " P"]) -> Float[Array, " P"]:
        """The inverse of `point`."""
        return self._scaled(vector, 0.5)

    def _scaled(self, vector: Array, power: float) -> Array:
        rows = vector.reshape(self.rows, -1)
        w, a = rows[:, : self.incoming], rows[:, self.incoming :]
        scale = (1 + jnp.sum(a**2, axis=1, keepdims=True)) ** power
        return jnp.concatenate([scale * w, a], axis=1).ravel()

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self.task.value(self.point(vector))

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        loss, gradient = self.task.value_and_gradient(self.point(vector))
        return loss, self._pulled_back(vector, gradient)

    def _pulled_back(self, vector: Array, gradient: Array) -> Array:
        """Jᵀ gradient, with the derivative J of `point`."""
        rows, g = vector.reshape(self.rows, -1), gradient.reshape(self.rows, -1)
        u, a = rows[:, : self.incoming], rows[:, self.incoming :]
        square = 1 + jnp.sum(a**2, axis=1, keepdims=True)
        along = jnp.sum(u * g[:, : self.incoming], axis=1, keepdims=True) * square**-1.5
        return jnp.concatenate(
            [g[:, : self.incoming] * square**-0.5, g[:, self.incoming :] - along * a], axis=1
        ).ravel()

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        loss, gradient, hessian = self.task.evaluate(self.point(vector))
        half = jax.vmap(lambda row: self._pulled_back(vector, row))(hessian)
        bend = jax.jacfwd(lambda v: self._pulled_back(v, gradient))(vector)
        both = jax.vmap(lambda column: self._pulled_back(vector, column), in_axes=1, out_axes=1)(half)
        return Evaluation(loss, self._pulled_back(vector, gradient), both + bend)

    @property
    def hessian_groups(self) -> np.ndarray | None:
        return self.task.hessian_groups

    def hessian_blocks(self, vector: Float[Array, " P"]) -> Float[Array, "groups b b"]:
        """The blocks at equal u and a, without the change of u's scale with a."""
        groups = self.hessian_groups
        rows = vector.reshape(self.rows, -1)
        scale = (1 + jnp.sum(rows[:, self.incoming :] ** 2, axis=1, keepdims=True)) ** -0.5
        width = rows.shape[1] - self.incoming
        scales = jnp.concatenate([jnp.tile(scale, (1, self.incoming)), jnp.ones((self.rows, width))], axis=1).ravel()
        return scales[groups][:, :, None] * self.task.hessian_blocks(self.point(vector)) * scales[groups][:, None, :]

    def prepared(self, vectors: Float[Array, "*batch P"] | Float[np.ndarray, "*batch P"]) -> Task:
        points = jax.vmap(self.point)(jnp.atleast_2d(jnp.asarray(vectors)))
        ready = self.task.prepared(points)
        return self if ready is self.task else Straightened(ready, self.rows, self.incoming)

    @property
    def closed_form(self) -> bool:
        return self.task.closed_form

    @property
    def lower_bound(self) -> float:
        return self.task.lower_bound

    def symmetry_tangents(self, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
        place = self.point(vector)
        tangents = self.task.symmetry_tangents(place)
        return jax.vmap(lambda v: jax.jvp(self.coordinates, (place,), (v,))[1])(tangents)
