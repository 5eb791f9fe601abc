"""Your own loss as a task."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy.tasks.starts import seed_numbers
from understudy.tasks.task import Task


class Loss(Task):
    """Any twice differentiable function of a flat vector of parameters.

    **Arguments**

    - `function`: takes an array of shape (size,) and returns a number. It must be written with `jax.numpy`, because
      derivatives come from automatic differentiation. Certificates assume that it has no kinks.
    - `size`: number of parameters.
    - `lower_bound`: a number that the loss cannot fall below, if you know one. A point that reaches it is certified as
      a global minimum.
    - `starts`: a function from a seed to a start of shape (size,). Default: N(0, init_std²) for each parameter.

    >>> valley = Loss(lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, 2, lower_bound=0.0)
    >>> float(valley.loss([0.0, 0.0])), valley.gradient([1.0, 1.0]).tolist()
    (1.0, [0.0, 0.0])
    """

    function: Callable[[Array], Any] = eqx.field(static=True)
    length: int = eqx.field(static=True)
    bound: float = eqx.field(static=True)
    draw: Callable[[int], ArrayLike] | None = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[[Array], Any],
        size: int,
        *,
        lower_bound: float = -np.inf,
        starts: Callable[[int], ArrayLike] | None = None,
    ):
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
            raise ValueError(f"A loss needs a positive whole number of parameters; received size={size!r}.")
        if np.isnan(lower_bound) or lower_bound == np.inf:
            raise ValueError(f"A lower bound is a number, or -inf if none is known; received {lower_bound!r}.")
        self.function, self.length, self.bound, self.draw = function, int(size), float(lower_bound), starts
        _check_scalar(function, self.length)

    @property
    def size(self) -> int:
        return self.length

    @property
    def lower_bound(self) -> float:
        return self.bound

    def flatten(self, parameters: ArrayLike) -> Float[Array, "*batch P"]:
        vector = jnp.asarray(parameters, float)
        if vector.ndim not in (1, 2) or vector.shape[-1] != self.length:
            raise ValueError(f"This loss has {self.length} parameters; received an array of shape {vector.shape}.")
        if not isinstance(vector, jax.core.Tracer) and not np.all(np.isfinite(np.asarray(vector))):
            raise ValueError("Parameters must be finite; received NaN or infinite entries.")
        return vector

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Float[Array, "*batch P"]:
        return vector

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return jnp.asarray(self.function(vector), float)

    def starts(
        self, seeds: int | Sequence[int], init: str = "gaussian", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        """The result of the function `starts` for each seed, or N(0, init_std²) for each parameter."""
        if self.draw is None:
            return super().starts(seeds, init, init_std)
        return self.flatten(np.stack([np.asarray(self.draw(seed), float) for seed in seed_numbers(seeds)]))


def _check_scalar(function: Callable[[Array], Any], size: int) -> None:
    try:
        found = jax.eval_shape(lambda x: jnp.asarray(function(x)), jax.ShapeDtypeStruct((size,), float))
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        raise ValueError(
            "The loss must be a function that JAX can trace: use jax.numpy instead of numpy, and jnp.where instead of "
            "`if` on numbers."
        ) from error
    except Exception as error:
        raise ValueError(f"The loss cannot be computed for an array of shape ({size},): {error}") from error
    if found.shape != () or not jnp.issubdtype(found.dtype, jnp.floating):
        raise ValueError(f"A loss returns one real number; this function returns {found.dtype} of shape {found.shape}.")
