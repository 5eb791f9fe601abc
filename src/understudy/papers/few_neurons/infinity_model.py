r"""A model in two dimensions of a minimum at infinity beside a line of critical points ("few neurons", App. D.2.3).

L(w, μ) = -u (w⁴/4 - (c1 + c2) u w³/3 + c1 c2 u² w²/2),   u(μ) = μ(1-μ)/(μ² + (1-μ)²).

∂L/∂w = -u w (w - u c1)(w - u c2): the line w = 0 is critical, with ∂²L/∂w² = -c1 c2 u³ on it. At its other zeros w = u
c the loss is -u⁵ c³ (2c' - c)/12, c' being the other constant. u is ½ at μ = ½, 0 at 0 and 1, and -½ at ±∞, so minima
in w are carried along: for c1 c2 < 0 and μ outside [0, 1] to w = -c/2 at μ = ±∞; for c1, c2 > 0 and μ in (0, 1) to w =
min(c1, c2)/2 at μ = ½.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.tasks.task import Task


class InfinityModel(Task):
    """The model as a task in the parameters (w, μ), with constants c1 and c2.

    >>> abs(float(InfinityModel(-2.0, 1.0).loss(jnp.array([0.0, 0.3]))))
    0.0
    """

    c1: Float[Array, ""]
    c2: Float[Array, ""]

    def __init__(self, c1: float, c2: float):
        self.c1, self.c2 = jnp.asarray(c1, float), jnp.asarray(c2, float)

    @property
    def size(self) -> int:
        return 2

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        return jnp.asarray(parameters, float)

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Float[Array, "*batch P"]:
        return vector

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        w, mu = vector
        u = 0.5 / (2 * mu**2 - 2 * mu + 1) - 0.5
        return -u * w**2 * (w**2 / 4 - w / 3 * u * (self.c1 + self.c2) + u**2 * self.c1 * self.c2 / 2)


def curvature_on_the_line(c1: float, c2: float, u: Any) -> Any:
    """∂²L/∂w² at w = 0: -c1 c2 u³."""
    return -c1 * c2 * u**3
