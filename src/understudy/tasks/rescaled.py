"""A task in its natural units."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.tasks.task import Evaluation, Task
from understudy.tasks.units import Units


class Rescaled(Task):
    """ℓ(φ) = L(D φ)/U for a task with loss L, lengths D and unit U; see `Task.units`.

    `hidden_unit`: the unit of pre-activations, at whose zeros a loss may have kinks; `curved`: whether this is a chart
    of a curved parameter space, on which all lengths are 1.
    """

    task: Task
    lengths: Float[Array, " P"]
    unit: Float[Array, ""]
    hidden_unit: Float[Array, ""]
    curved: bool = eqx.field(static=True, default=False)

    @property
    def size(self) -> int:
        return self.task.size

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        if isinstance(parameters, (np.ndarray, jax.Array)):
            return jnp.asarray(parameters, float)
        vector = self.task.flatten(parameters)
        return vector / jnp.broadcast_to(self.lengths, vector.shape)

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Any:
        return self.task.unflatten(vector * jnp.broadcast_to(self.lengths, vector.shape))

    def units(self, vectors: Any) -> Units:
        return Units(np.ones(self.size), 1.0)

    def _with(self, task: Task) -> "Rescaled":
        return Rescaled(task, self.lengths, self.unit, self.hidden_unit)

    # -- loss and derivatives -----------------------------------------------------------------------------------------

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self.task.value(vector * self.lengths) / self.unit

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        loss, gradient = self.task.value_and_gradient(vector * self.lengths)
        return loss / self.unit, gradient * self.lengths / self.unit

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        loss, gradient, hessian = self.task.evaluate(vector * self.lengths)
        return Evaluation(
            loss / self.unit,
            gradient * self.lengths / self.unit,
            self.lengths[:, None] * hessian * self.lengths[None, :] / self.unit,
        )

    def evaluate_roughly(self, vector: Float[Array, " P"]) -> Evaluation:
        loss, gradient, hessian = self.task.evaluate_roughly(vector * self.lengths)
        scaled = self.lengths[:, None] * hessian * self.lengths[None, :] / self.unit
        return Evaluation(loss / self.unit, gradient * self.lengths / self.unit, scaled.astype(jnp.float32))

    @property
    def hessian_groups(self) -> np.ndarray | None:
        return self.task.hessian_groups

    def hessian_blocks(self, vector: Float[Array, " P"]) -> Float[Array, "groups b b"]:
        lengths = self.lengths[self.hessian_groups]
        blocks = self.task.hessian_blocks(vector * self.lengths)
        return lengths[:, :, None] * blocks * lengths[:, None, :] / self.unit

    def prepared(self, vectors: Float[Array, "*batch P"] | Float[np.ndarray, "*batch P"]) -> Task:
        ready = self.task.prepared(np.asarray(vectors) * np.asarray(self.lengths))
        return self if ready is self.task else self._with(ready)

    @property
    def closed_form(self) -> bool:
        return self.task.closed_form

    @property
    def lower_bound(self) -> float:
        return self.task.lower_bound / float(self.unit)

    @property
    def target_scale(self) -> float:
        return self.task.target_scale / float(self.unit)

    # -- coordinates and symmetry -------------------------------------------------------------------------------------

    @property
    def is_flat(self) -> bool:
        return self.task.is_flat

    def chart(self, vector: Float[Array, " P"]) -> 'tuple[Task, Float[Array, " Q"]]':
        """The chart of the task, in the same units."""
        local, origin = self.task.chart(vector * self.lengths)
        curved = origin.shape != vector.shape
        lengths = jnp.ones_like(origin) if curved else self.lengths
        return Rescaled(local, lengths, self.unit, self.hidden_unit, curved), origin / lengths

    def point(self, local: Float[Array, " Q"]) -> Float[Array, " P"]:
        return self.task.point(local) if self.curved else self.task.point(local * self.lengths) / self.lengths

    def slope(self, local: Float[Array, " Q"]) -> Float[Array, " Q"]:
        return self.task.slope(local * self.lengths) * self.lengths / self.unit

    def symmetry_tangents(self, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
        return self.task.symmetry_tangents(vector * self.lengths) / self.lengths[None, :]

    # -- kinks --------------------------------------------------------------------------------------------------------

    @property
    def kinked(self) -> bool:
        return self.task.kinked

    def hidden_values(self, vector: Float[Array, " P"]) -> Float[Array, " H"]:
        return self.task.hidden_values(vector * self.lengths) / self.hidden_unit

    def gated_value(
        self, vector: Float[Array, " P"], gates: Float[Array, " H"], offsets: Float[Array, " H"]
    ) -> Float[Array, ""]:
        return self.task.gated_value(vector * self.lengths, gates, offsets * self.hidden_unit) / self.unit

    def gated_hidden(self, vector: Float[Array, " P"], gates: Float[Array, " H"]) -> Float[Array, " H"]:
        return self.task.gated_hidden(vector * self.lengths, gates) / self.hidden_unit

    def smoothed_value(self, vector: Float[Array, " P"], width: float | Float[Array, ""]) -> Float[Array, ""]:
        return self.task.smoothed_value(vector * self.lengths, width * self.hidden_unit) / self.unit

    def dead(self, vector: Float[Array, " P"]) -> tuple[np.ndarray, np.ndarray]:
        return self.task.dead(vector * self.lengths)

    def kinks(self, parameters: Any) -> list[str]:
        return self.task.kinks(self.flatten(parameters) * self.lengths)

    def softened(self, noise: float) -> Task:
        if self.kinked:
            return super().softened(noise)
        softer = self.task.softened(noise * float(self.hidden_unit))
        return self if softer is self.task else self._with(softer)


def rescaled(task: Task, units: Units) -> Rescaled:
    """The task in these units."""
    return Rescaled(task, jnp.asarray(units.lengths), jnp.asarray(units.loss), jnp.asarray(units.hidden))
