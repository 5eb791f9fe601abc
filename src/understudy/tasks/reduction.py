"""A smaller task that is equivalent to a larger one, and the map back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float


@dataclass(frozen=True)
class Reduction:
    """The same problem in fewer parameters.

    - `task`, `vectors`: the smaller task, and the given points as flat vectors of it. Gradient flow there is the
      gradient flow of the large task.
    - `lift(vector, position)`: a flat vector of the small task as one of the large task. `position` says which of a
      batch of points the vector came from; None if there was only one.
    - `outside`: number of directions that the small task leaves out. In each of them the Hessian of the large task has
      the block `task.outside_hessian(vector)`, which does not couple to anything else. None if that block is not known:
      then certificates need the large task.
    """

    task: Any  # a Task, which is defined in a module that imports this one
    vectors: Float[Array, "*batch Q"]
    lift: Callable[[Any, int | None], Any]
    outside: int | None = 0


def unreduced(task: Any, vectors: Float[Array, "*batch P"]) -> Reduction:
    """The task itself, for tasks that cannot be reduced."""
    return Reduction(task, vectors, _same, 0)


def _same(vector: Any, position: int | None = None) -> Any:
    return vector
