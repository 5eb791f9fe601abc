"""A population loss with the kinks of ReLU students at zero incoming vectors rounded off, for integrators.

With positively homogeneous kinked activations the loss grows like ‖w_i‖ around w_i = 0. A neuron whose outgoing weight
has the wrong sign and |a_i| > ‖w_i‖ is driven there in finite time (a_i² - ‖w_i‖² is conserved), stays there as long as
every direction increases the loss, and leaves when another neuron has changed that. An integrator would jump back and
forth over the kink, with steps of the size of its tolerance. Here neuron i gets w_i·x plus independent noise of
standard deviation ε, as long as ‖w_i‖ < 32 ε. Then the loss is smooth, and the stay at zero is a stiff equilibrium.
Farther away the loss is exact. The change at ‖w_i‖ = 32 ε is 1/2000 of that neuron's contribution.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.networks import Teacher
from understudy.tasks.population import Population
from understudy.tasks.task import Evaluation, Task

_REACH = 32.0


class Softened(Task):
    """`base` with noise of standard deviation `noise` in neurons whose incoming vectors are shorter than 32 times that.

    The noise is a further input for each neuron, with a fixed incoming weight: `wide` is the same task in dimension d
    + n.
    """

    base: Population
    wide: Population
    noise: float = eqx.field(static=True)

    @property
    def size(self) -> int:
        return self.base.size

    def flatten(self, parameters: object) -> Float[Array, "*batch P"]:
        return self.base.flatten(parameters)  # type: ignore[arg-type]

    def unflatten(self, vector: Float[Array, "*batch P"]) -> object:
        return self.base.unflatten(vector)

    def prepared(self, vectors: Float[Array, "*batch P"] | Float[np.ndarray, "*batch P"]) -> Task:
        ready = self.base.prepared(vectors)
        return self if ready is self.base else soften(ready, self.noise)

    def chart(self, vector: Float[Array, " P"]) -> tuple[Task, Float[Array, " P"]]:
        """The loss around a point, with noise in the neurons that need it there."""
        incoming = vector.reshape(self.base.width, -1)[:, : self.base.dim]
        if self.base.root is not None:
            incoming = incoming @ self.base.root
        short = jnp.linalg.norm(incoming, axis=1) < _REACH * self.noise
        return _Noisy(self.wide, jnp.where(short, self.noise, 0.0), self.base.dim), vector

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self.base.value(vector)

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        return self.base.value_and_gradient(vector)

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        return self.base.evaluate(vector)

    def symmetry_tangents(self, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
        return self.base.symmetry_tangents(vector)


class _Noisy(Task):
    """The wide task with the weights on its noise inputs held at `noise`."""

    wide: Population
    noise: Float[Array, " n"]
    dim: int = eqx.field(static=True)

    def _embed(self, vector: Array) -> Array:
        rows = vector.reshape(self.wide.width, -1)
        return jnp.concatenate([rows[:, : self.dim], jnp.diag(self.noise), rows[:, self.dim :]], axis=1).ravel()

    def _kept(self) -> np.ndarray:
        """Positions of the trained parameters in the wide task's flat vector."""
        positions = np.arange(self.wide.size).reshape(self.wide.width, -1)
        return np.concatenate([positions[:, : self.dim], positions[:, self.wide.dim :]], axis=1).ravel()

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self.wide.value(self._embed(vector))

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        loss, gradient = self.wide.value_and_gradient(self._embed(vector))
        return loss, gradient[self._kept()]

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        loss, gradient, hessian = self.wide.evaluate(self._embed(vector))
        kept = self._kept()
        return Evaluation(loss, gradient[kept], hessian[kept][:, kept])


def soften(task: Population, noise: float) -> Softened:
    """`task` with its kinks at zero incoming vectors rounded off."""
    teacher = Teacher(
        np.pad(np.asarray(task.teacher.incoming), ((0, 0), (0, task.width))),
        task.teacher.outgoing,
        task.teacher.activation,
    )
    wide = eqx.tree_at(lambda t: t.teacher, task, teacher)
    if task.root is not None:
        root = np.eye(task.dim + task.width)
        root[: task.dim, : task.dim] = task.root
        wide = eqx.tree_at(lambda t: t.root, wide, jnp.asarray(root))
    return Softened(task, wide, noise)
