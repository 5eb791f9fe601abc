"""Natural units of a task: the sizes of its parameters and of its loss.

In natural units θ = D φ and L = U ℓ(φ), parameters and losses are of order one. The flow and its tolerances, and random
starts, are those of ℓ(φ): the same problem with targets or inputs in other units has the same runs. Sizes are powers of
two, so that a change of units loses no digits, and they are exactly 1 for ordinary problems.
"""

from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

ORDINARY_LENGTH = 128.0
"""Parameters of sizes between 1/128 and 128 are in natural units as they are."""

ORDINARY_LOSS = ORDINARY_LENGTH**2
"""Losses grow with the square of outputs, so this is the range for losses."""

_PLAUSIBLE = 1e4
"""Largest ratio of loss and (gradient × length) at a start at which this length is believed to be that of the
problem."""


@dataclass(frozen=True)
class Units:
    """`lengths` (P,): the unit of each parameter; `loss`: that of the loss; `hidden`: that of pre-activations."""

    lengths: np.ndarray = field(repr=False)
    loss: float
    hidden: float = 1.0

    def scale(self, vectors: Any) -> Any:
        """Points (batch, P) in natural units in the units of the task."""
        return vectors if np.all(self.lengths == 1) else jnp.asarray(np.asarray(vectors) * self.lengths)

    @property
    def ordinary(self) -> bool:
        """Whether all units are 1."""
        return self.loss == self.hidden == 1 and bool(np.all(self.lengths == 1))


def natural_size(size: float, ordinary: float = ORDINARY_LENGTH) -> float:
    """The power of two nearest to a size; 1 for sizes between 1/ordinary and ordinary, and for 0, inf and NaN.

    >>> natural_size(3.0), natural_size(1000.0), natural_size(0.0)
    (1.0, 1024.0, 1.0)
    """
    if not np.isfinite(size) or size <= 0 or 1 / ordinary <= size <= ordinary:
        return 1.0
    return float(2.0 ** np.round(np.log2(size)))


def natural_units(lengths: np.ndarray, loss: float, hidden: float = 1.0) -> Units:
    """Units from the sizes of parameters (P,), of the loss and of pre-activations, rounded to powers of two."""
    sizes, place = np.unique(lengths, return_inverse=True)
    rounded = np.array([natural_size(float(x)) for x in sizes])
    return Units(rounded[place], natural_size(loss, ORDINARY_LOSS), natural_size(hidden))


def units_from_starts(task: Any, vectors: Any, height: float | None = None) -> Units:
    """Units of a task that knows none, from starts (batch, P), or one start or end (P,).

    The loss is measured by its `height` (by default |L - lower bound|, or |L| without a bound) and by its fall over the
    size of the start, from the gradient, whichever is larger. The size of a start is the unit of parameters only if
    both agree: a small start for a problem of order one has a loss of order one, but a much smaller gradient times its
    size. At a critical point the curvature takes the gradient's place.
    """
    points = jnp.atleast_2d(jnp.asarray(vectors, float))
    bound = task.lower_bound
    if height is None:
        losses = np.asarray(task.loss(points)) - (bound if np.isfinite(bound) else 0.0)
        height = float(np.max(np.abs(losses)))
    slopes = float(np.max(np.linalg.norm(np.asarray(task.gradient(points)), axis=1)))
    size = natural_size(float(np.sqrt(np.mean(np.asarray(points) ** 2))))
    fall = slopes * size
    if size != 1:
        fall = max(fall, float(np.max(np.abs(np.asarray(_bends(task, points))))))
    if not fall > 0 or not 1 / _PLAUSIBLE <= height / fall <= _PLAUSIBLE:
        size, fall = 1.0, slopes
    return natural_units(np.full(points.shape[1], size), max(height, fall))


@eqx.filter_jit
def _bends(task: Any, points: Float[Array, "batch P"]) -> Float[Array, " batch"]:
    """θᵀHθ at each point θ."""

    def one(point: Array) -> Array:
        return jnp.dot(point, jax.jvp(lambda v: task.value_and_gradient(v)[1], (point,), (point,))[1])

    return jax.lax.map(one, points)
