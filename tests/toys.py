"""Small tasks of which everything is known, for tests of dynamics and certificates."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from understudy.tasks.task import Task


class Toy(Task):
    """Any function of a flat vector."""

    function: Callable[[Any], Any] = eqx.field(static=True)
    length: int = eqx.field(static=True)

    @property
    def size(self):
        return self.length

    def flatten(self, parameters):
        return jnp.asarray(parameters, float)

    def unflatten(self, vector):
        return vector

    def value(self, vector):
        return self.function(vector)
