"""A task in which some parameters are held fixed."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy.tasks.task import Evaluation, Task
from understudy.tasks.units import Units


class Frozen(Task):
    """`task` with gradient and Hessian zero for parameters whose `free` is 0 (1 on the Hessian's diagonal there, in
    natural units).

    `free` is an array and not part of the compiled program. So growing a network neuron by neuron, in the parameter
    space of the widest one, compiles once.
    """

    task: Task
    free: Float[Array, " P"]
    held: Float[Array, " P"]

    def __init__(self, task: Task, free: ArrayLike):
        self.task, self.free = task, jnp.asarray(free, float)
        units = task.units(jnp.zeros(task.size))
        self.held = (1 - self.free) * units.loss / units.lengths**2

    @property
    def size(self) -> int:
        return self.task.size

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        return self.task.flatten(parameters)

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Any:
        return self.task.unflatten(vector)

    def starts(
        self, seeds: int | Sequence[int], init: str = "gaussian", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        return self.task.starts(seeds, init, init_std)

    @property
    def closed_form(self) -> bool:
        return self.task.closed_form

    @property
    def lower_bound(self) -> float:
        return self.task.lower_bound

    @property
    def target_scale(self) -> float:
        return self.task.target_scale

    def units(self, vectors: Float[Array, "*batch P"] | np.ndarray) -> Units:
        return self.task.units(vectors)

    def kinks(self, parameters: Any) -> list[str]:
        return self.task.kinks(parameters)

    def prepared(self, vectors: Float[Array, "*batch P"] | Float[np.ndarray, "*batch P"]) -> "Frozen":
        finer = self.task.prepared(vectors)
        return self if finer is self.task else Frozen(finer, self.free)

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self.task.value(vector)

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        loss, gradient = self.task.value_and_gradient(vector)
        return loss, self.free * gradient

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        loss, gradient, hessian = self.task.evaluate(vector)
        kept = self.free[:, None] * hessian * self.free[None, :]
        return Evaluation(loss, self.free * gradient, kept + jnp.diag(self.held))
