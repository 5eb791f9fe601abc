"""A task with its kinks rounded off, for integrators."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from understudy.tasks.task import Task


class Smoothed(Task):
    """`base` with every |z| replaced by √(z² + width²); see `Task.smoothed_value`.

    At a kink an integrator would jump back and forth, with steps of the size of its tolerance. Here the flow reaches a
    stiff equilibrium at a distance of about `width` from the minimum on the kink.
    """

    base: Task
    width: float = eqx.field(static=True)

    @property
    def size(self) -> int:
        return self.base.size

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        return self.base.flatten(parameters)

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Any:
        return self.base.unflatten(vector)

    def prepared(self, vectors: Float[Array, "*batch P"] | Float[np.ndarray, "*batch P"]) -> Task:
        ready = self.base.prepared(vectors)
        return self if ready is self.base else Smoothed(ready, self.width)

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self.base.smoothed_value(vector, self.width)
