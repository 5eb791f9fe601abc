"""Tangent coordinates on products of spheres, in which flow, Newton's method and certificates of `Sphere` work."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy.tasks.symmetry import rotation_tangents
from understudy.tasks.task import Evaluation, Task


class SphereChart(Task):
    """A sphere task in central projection from the tangent spaces at W: x_i = (w_i + B_i y_i)/|w_i + B_i y_i|.

    The columns of B_i are an orthonormal basis of w_i's tangent space. The projection agrees with the exponential map
    to second order, so gradient and Hessian at y = 0 are the Riemannian ones.
    """

    sphere: Any  # a Sphere, whose module imports this one
    base: Float[Array, "n d"]
    basis: Float[Array, "n d d-1"]

    def __init__(self, sphere: Any, base: Float[Array, "n d"]):
        self.sphere, self.base, self.basis = sphere, base, jax.vmap(tangent_basis)(base)

    @property
    def size(self) -> int:
        return self.sphere.width * (self.sphere.dim - 1)

    def flatten(self, parameters: ArrayLike) -> Float[Array, "*batch Q"]:
        return jnp.asarray(parameters, float)

    def unflatten(self, vector: Float[Array, "*batch Q"]) -> Float[Array, "*batch Q"]:
        return vector

    @property
    def lower_bound(self) -> float:
        return self.sphere.lower_bound

    def _ambient(self, local: Array) -> Array:
        y = local.reshape(self.sphere.width, -1)
        return self.base + jnp.einsum("idt,it->id", self.basis, y)

    def point(self, local: Float[Array, " Q"]) -> Float[Array, " P"]:
        """The unit rows at coordinates y. They are normalised twice, so that norms are exact to the last digit."""
        z = self._ambient(local)
        z = z / jnp.linalg.norm(z, axis=1, keepdims=True)
        return (z / jnp.linalg.norm(z, axis=1, keepdims=True)).ravel()

    def slope(self, local: Float[Array, " Q"]) -> Float[Array, " Q"]:
        """-dy/dt of the spherical flow: with x = z/|z|, ẋ tangential and w·x = 1/|z|, ẏ = |z| (Bᵀẋ - y (w·ẋ))."""
        y = local.reshape(self.sphere.width, -1)
        z = self._ambient(local)
        norms = jnp.linalg.norm(z, axis=1)
        x = z / norms[:, None]
        _, tangential = split_radial(x, self.sphere._pull(self.sphere._overlaps(x), x))
        along = jnp.sum(self.base * tangential, axis=1)
        return (norms[:, None] * (jnp.einsum("idt,id->it", self.basis, tangential) - along[:, None] * y)).ravel()

    def value(self, vector: Float[Array, " Q"]) -> Float[Array, ""]:
        return self.sphere.value(self._ambient(vector).ravel())

    def value_and_gradient(self, vector: Float[Array, " Q"]) -> tuple[Float[Array, ""], Float[Array, " Q"]]:
        loss, gradient = self.sphere.value_and_gradient(self._ambient(vector).ravel())
        return loss, jnp.einsum("idt,id->it", self.basis, gradient.reshape(self.base.shape)).ravel()

    def evaluate(self, vector: Float[Array, " Q"]) -> Evaluation:
        n, d = self.base.shape
        loss, gradient, hessian = self.sphere.evaluate(self._ambient(vector).ravel())
        inside = jnp.einsum("iat,iajb,jbu->itju", self.basis, hessian.reshape(n, d, n, d), self.basis)
        own = jnp.einsum("idt,id->it", self.basis, gradient.reshape(n, d)).ravel()
        return Evaluation(loss, own, inside.reshape(self.size, self.size))

    def symmetry_tangents(self, vector: Float[Array, " Q"]) -> Float[Array, "q Q"]:
        """Rotations of directions that no teacher uses."""
        n, d = self.base.shape
        z = self._ambient(vector)
        teacher = self.sphere.teacher
        if d < teacher.width + 2:
            return jnp.zeros((0, self.size))
        norms = jnp.linalg.norm(z, axis=1)
        x = z / norms[:, None]
        moves = rotation_tangents(x, teacher.incoming, 0).reshape(-1, n, d)
        y = vector.reshape(n, -1)
        along = jnp.sum(self.base[None] * moves, axis=2)
        local = jnp.einsum("idt,qid->qit", self.basis, moves) - along[:, :, None] * y[None]
        return (norms[None, :, None] * local).reshape(moves.shape[0], self.size)


def tangent_basis(unit: Float[Array, " d"]) -> Float[Array, "d d-1"]:
    """Orthonormal columns orthogonal to a unit vector, from the Householder reflection that maps it to ±e_1."""
    sign = jnp.where(unit[0] >= 0, 1.0, -1.0)
    mirror = unit.at[0].add(sign)
    reflection = jnp.eye(unit.shape[0]) - mirror[:, None] * mirror[None, :] / (1 + jnp.abs(unit[0]))
    return reflection[:, 1:]


def split_radial(x: Array, gradient: Array) -> tuple[Array, Array]:
    """The part of each gradient row along x, as a number, and the rest, as a vector."""
    radial = jnp.sum(x * gradient, axis=1)
    return radial, gradient - radial[:, None] * x
