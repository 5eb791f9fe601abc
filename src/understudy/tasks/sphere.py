"""Students and teachers on the unit sphere with one Hermite polynomial as activation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation, Polynomial
from understudy.networks import Teacher, TwoLayer
from understudy.tasks import starts as drawing
from understudy.tasks.exact_form import ExactForm, name_of
from understudy.tasks.neurons import Described, Neurons, describe_neurons, describe_teacher
from understudy.tasks.population import Population
from understudy.tasks.reduction import Reduction, unreduced
from understudy.tasks.sphere_structure import read_sphere
from understudy.tasks.structure import Structure
from understudy.tasks.symmetries import Symmetries, of_students, turns_of_teacher
from understudy.tasks.symmetry import rotation_tangents
from understudy.tasks.task import Evaluation, Task
from understudy.tasks.units import Units, natural_units

Loss = Literal["squared", "correlation"]

_UNIT = 1e-12
"""How far from 1 the norm of a given vector may be; it is then scaled to 1."""


class Sphere(Task):
    r"""Unit-norm students learn unit-norm teachers. The activation is the normalised Hermite polynomial H_ρ.

    By Mehler's formula E[H_ρ(w·x)H_ρ(v·x)] = (w·v)^ρ for unit w, v and x ~ N(0, I), so half the mean squared error is

        L(W) = ½ r Σ_ii' (w_i·w_i')^ρ - Σ_ij (w_i·v_j)^ρ + ½ Σ_jj' (v_j·v_j')^ρ        with r = 1

    (Ottlik, Section 1.2). The loss of any matrix W is that of its rows scaled to norm 1. So its gradient at unit rows
    is the Riemannian gradient, and rows keep their norm along the flow. `chart` returns the n(d-1) coordinates in which
    the flow, Newton's method and certificates work.

    **Arguments**

    - `teacher`: a `Teacher` with a Hermite activation and outgoing weights 1, or its unit vectors, shape (k, d).
    - `width`: number n of students.
    - `activation`: `"hermite:ρ"`; only if the teacher is given as vectors.
    - `loss`: `"squared"`, or `"correlation"` for -E[f(x)f*(x)], which has no student-student term.
    - `repulsion`: the factor r on the student-student term (1/n in Ottlik's Lemma 3.2).

    >>> task = Sphere(np.eye(2), width=2)
    >>> float(task.loss(np.eye(2)))
    0.0
    """

    teacher: Teacher
    repulsion: Float[Array, ""]
    constant: Float[Array, ""]
    width: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    kind: Loss = eqx.field(static=True)

    def __init__(
        self,
        teacher: Teacher | ArrayLike,
        width: int,
        *,
        activation: str | Activation | None = None,
        loss: Loss = "squared",
        repulsion: float = 1.0,
    ):
        if not isinstance(width, (int, np.integer)) or isinstance(width, bool) or width < 1:
            raise ValueError(f"A student needs a positive whole number of neurons; received width={width!r}.")
        if loss not in ("squared", "correlation"):
            raise ValueError(f"loss is 'squared' or 'correlation'; received {loss!r}.")
        if not (np.isfinite(repulsion) and repulsion >= 0):
            raise ValueError(f"The factor on the repulsion is a number ≥ 0; received {repulsion!r}.")
        if loss == "correlation" and repulsion != 1.0:
            raise ValueError("The correlation loss has no repulsion; leave `repulsion` out.")
        self.teacher = _unit_teacher(teacher, activation)
        if isinstance(teacher, Teacher) and not (teacher.bias is None and teacher.offset is None):
            raise ValueError("The loss on the sphere has no biases; give a teacher without bias= and offset=.")
        if self.teacher.dim < 2:
            raise ValueError("The sphere needs dimension 2 at least; received teachers in dimension 1.")
        self.width, self.kind, self.degree = int(width), loss, _degree(self.teacher.activation)
        self.repulsion = jnp.asarray(repulsion if loss == "squared" else 0.0)
        gram = self.teacher.incoming @ self.teacher.incoming.T
        self.constant = jnp.sum(gram**self.degree) / 2 if loss == "squared" else jnp.zeros(())

    @property
    def dim(self) -> int:
        """Dimension d of the vectors."""
        return self.teacher.dim

    @property
    def activation(self) -> Activation:
        """The Hermite polynomial."""
        return self.teacher.activation

    @property
    def size(self) -> int:
        return self.width * self.dim

    def flatten(self, parameters: TwoLayer | ArrayLike) -> Float[Array, "*batch P"]:
        """Unit rows as a flat vector. Takes a `TwoLayer`, rows (n, d), a flat vector, or a batch of any of these."""
        array = jnp.asarray(parameters.incoming if isinstance(parameters, TwoLayer) else parameters, float)
        if array.ndim >= 2 and array.shape[-2:] == (self.width, self.dim):
            array = array.reshape(*array.shape[:-2], self.size)
        if array.ndim not in (1, 2) or array.shape[-1] != self.size:
            raise ValueError(
                f"This task has {self.width} students in dimension {self.dim}: rows ({self.width}, {self.dim}) or a "
                f"flat vector of {self.size}, with at most one batch axis before; received shape {array.shape}."
            )
        if isinstance(array, jax.core.Tracer):
            return array
        rows = np.asarray(array).reshape(*array.shape[:-1], self.width, self.dim)
        norms = np.linalg.norm(rows, axis=-1)
        if not np.all(np.isfinite(norms)) or np.any(np.abs(norms - 1) > 1e-6):
            raise ValueError(
                f"Students on the sphere have norm 1; received norms from {np.min(norms):.6g} to {np.max(norms):.6g}. "
                "Divide each row by its norm first."
            )
        return array

    def starts(
        self, seeds: int | Sequence[int], init: str = "gaussian", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        """Independent students, uniform on the unit sphere, whatever `init` is."""
        drawing.check_init(init, init_std)
        return jnp.asarray(drawing.unit_rows(seeds, self.width, self.dim).reshape(-1, self.size))

    def unflatten(self, vector: Float[Array, "*batch P"]) -> TwoLayer:
        rows = vector.reshape(*vector.shape[:-1], self.width, self.dim)
        return TwoLayer(rows, jnp.ones(rows.shape[:-1]))

    # -- the loss of rows of any norm ---------------------------------------------------------------------------------

    def _rows(self, vector: Array) -> tuple[Array, Array]:
        z = vector.reshape(self.width, self.dim)
        norms = jnp.linalg.norm(z, axis=1)
        return z / norms[:, None], norms

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self._loss(self._overlaps(self._rows(vector)[0]))

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        x, norms = self._rows(vector)
        o = self._overlaps(x)
        _, tangential = _split(x, self._pull(o, x))
        return self._loss(o), (tangential / norms[:, None]).ravel()

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        x, norms = self._rows(vector)
        loss, tangential, blocks = self._second_order(x)
        blocks = blocks / (norms[:, None] * norms[None, :])[:, :, None, None]
        hessian = jnp.transpose(blocks, (0, 2, 1, 3)).reshape(self.size, self.size)
        return Evaluation(loss, (tangential / norms[:, None]).ravel(), hessian)

    def symmetry_tangents(self, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
        """Rescalings of each row, and rotations of directions that no teacher uses."""
        x = vector.reshape(self.width, self.dim)
        radial = jnp.where(jnp.eye(self.width, dtype=bool)[:, :, None], x[None], 0.0).reshape(self.width, -1)
        if self.dim < self.teacher.width + 2:
            return radial
        return jnp.concatenate([radial, rotation_tangents(x, self.teacher.incoming, 0)])

    def exact_form(self) -> ExactForm:
        name = name_of(self.activation)
        return ExactForm(
            loss="sphere",
            activation=name,
            teacher_activation=name,
            incoming=np.asarray(self.teacher.incoming),
            outgoing=np.ones((self.teacher.width, 1)),
            width=self.width,
            fixed_outgoing=np.ones((self.width, 1)),
            repulsion=float(self.repulsion),
            with_constant=self.kind == "squared",
        )

    def euclidean_gradient(self, vector: Float[Array, " P"]) -> Float[Array, "n d"]:
        """A = ρ r (WWᵀ)^∘(ρ-1) W - ρ (WVᵀ)^∘(ρ-1) V, before projection (Ottlik, Section 2.1), at unit rows."""
        x = vector.reshape(self.width, self.dim)
        return self.degree * self.repulsion * x + self._pull(self._overlaps(x), x)

    def _overlaps(self, x: Array) -> "_Overlaps":
        off = ~jnp.eye(self.width, dtype=bool)
        students = x @ x.T
        return _Overlaps(jnp.where(off, students, 0.0), x @ self.teacher.incoming.T, off)

    def _loss(self, o: "_Overlaps") -> Array:
        off = jnp.where(o.off, o.students**self.degree, 0.0)
        repulsion = self.repulsion * (self.width + jnp.sum(off)) / 2
        return repulsion - jnp.sum(o.teachers**self.degree) + self.constant

    def _pull(self, o: "_Overlaps", x: Array) -> Array:
        """The Euclidean gradient without its part along each row's own self-interaction."""
        students = jnp.where(o.off, o.students ** (self.degree - 1), 0.0)
        teachers = o.teachers ** (self.degree - 1)
        return self.degree * (self.repulsion * students @ x - teachers @ self.teacher.incoming)

    def _second_order(self, x: Array) -> tuple[Array, Array, Array]:
        """Loss, tangential gradient and Hessian blocks (n, n, d, d) of the loss of rows scaled to norm 1, at unit rows.

        With P = I - xxᵀ and G, H the Euclidean gradient and Hessian: P_i H_ij P_j - δ_ij [(x·G)P + PGxᵀ + x(PG)ᵀ].
        """
        d, rho = self.dim, self.degree
        v, o, index = self.teacher.incoming, self._overlaps(x), jnp.arange(self.width)
        radial, tangential = _split(x, self._pull(o, x))
        first = self.repulsion * rho * jnp.where(o.off, o.students ** (rho - 1), 0.0)
        second = self.repulsion * rho * (rho - 1) * jnp.where(o.off, o.students ** max(rho - 2, 0), 0.0)
        second_teachers = rho * (rho - 1) * o.teachers ** max(rho - 2, 0)
        projector = jnp.eye(d)[None] - x[:, :, None] * x[:, None, :]
        # P_i x_j and P_i v_j; P_i P_j needs the product of projectors.
        toward = x[None, :, :] - o.students[:, :, None] * x[:, None, :]
        toward_teachers = v[None, :, :] - o.teachers[:, :, None] * x[:, None, :]
        blocks = second[:, :, None, None] * toward[:, :, :, None] * jnp.swapaxes(toward, 0, 1)[:, :, None, :]
        blocks += first[:, :, None, None] * jnp.einsum("iac,jcb->ijab", projector, projector)
        own = jnp.einsum("ij,ija,ijb->iab", second, toward, toward)
        own -= jnp.einsum("ij,ija,ijb->iab", second_teachers, toward_teachers, toward_teachers)
        own -= radial[:, None, None] * projector
        mixed = tangential[:, :, None] * x[:, None, :]
        own -= mixed + jnp.swapaxes(mixed, 1, 2)
        return self._loss(o), tangential, blocks.at[index, index].set(own)

    # -- coordinates around a point -----------------------------------------------------------------------------------

    def chart(self, vector: Float[Array, " P"]) -> 'tuple[SphereChart, Float[Array, " Q"]]':
        """The task in the n(d-1) tangent coordinates y around W, x_i = (w_i + B_i y_i)/|w_i + B_i y_i|, and y = 0."""
        local = SphereChart(self, vector.reshape(self.width, self.dim))
        return local, jnp.zeros(local.size)

    def retract(self, vector: Float[Array, " P"], step: Float[Array, " P"]) -> Float[Array, " P"]:
        return self._rows(vector + step)[0].ravel()

    # -- symmetries ---------------------------------------------------------------------------------------------------

    def symmetries(self) -> Symmetries:
        """Permutations of students, signs if the degree is even, and orthogonal maps that keep the teacher."""
        turns, beyond = turns_of_teacher(self.teacher)
        return replace(of_students(self.neurons(np.zeros(self.size))), turns=turns, beyond=beyond)

    def euler_characteristic(self) -> tuple[int, str]:
        """That of a product of n spheres of dimension d - 1, which is compact: 2ⁿ for odd d, otherwise 0."""
        space = f"a product of {self.width} spheres of dimension {self.dim - 1}" if self.width > 1 else "the sphere"
        return (2**self.width if self.dim % 2 else 0), f"{space} is compact"

    # -- related tasks ------------------------------------------------------------------------------------------------

    @property
    def population(self) -> Population:
        """The same students and teachers as a `Population` task, whose loss is twice the squared loss."""
        return Population(self.teacher, self.width, outgoing=1.0)

    def reduce(self, vectors: Float[Array, "*batch P"]) -> Reduction:
        """The same problem in the span of teachers and students, which the flow never leaves.

        Dimension min(d, n + k) is enough. The Hessian outside the span is not used: `outside` is None.
        """
        if self.dim <= self.width + self.teacher.width:
            return unreduced(self, vectors)
        reduced, small, span = self.population.in_span(self.unflatten(vectors))
        task = eqx.tree_at(lambda t: t.teacher, self, reduced.teacher)
        rows = small.incoming / jnp.linalg.norm(small.incoming, axis=-1, keepdims=True)

        def lift(vector: Any, position: int | None = None) -> Float[Array, " P"]:
            lifted = span.lift(task.unflatten(jnp.asarray(vector)).incoming, position)
            return (lifted / jnp.linalg.norm(lifted, axis=1, keepdims=True)).ravel()

        return Reduction(task, rows.reshape(*vectors.shape[:-1], -1), lift, None)

    # -- meaning ------------------------------------------------------------------------------------------------------

    @property
    def lower_bound(self) -> float:
        """Zero for ½E(f - f*)², and for a repulsion r > 1, which adds ½(r - 1)E f² ≥ 0."""
        return 0.0 if self.kind == "squared" and float(self.repulsion) >= 1 else -np.inf

    @property
    def target_scale(self) -> float:
        """½E f*(x)²; 1 for the correlation loss."""
        return float(self.constant) if self.kind == "squared" else 1.0

    def units(self, vectors: Float[Array, "*batch P"] | np.ndarray) -> Units:
        """Students have norm 1; the loss is in units of ½E f*(x)²."""
        return natural_units(np.ones(self.size), self.target_scale)

    def structure(self, parameters: TwoLayer | ArrayLike) -> Structure:
        """Which teachers the students copy or share; see `read_sphere`."""
        rows = np.asarray(self.flatten(parameters)).reshape(-1, self.dim)
        if len(rows) != self.width:
            raise ValueError(f"structure looks at one point; received {len(rows)} rows for {self.width} students.")
        return read_sphere(rows, np.asarray(self.teacher.incoming), self.degree)

    def neurons(self, vector: Float[Array, " P"] | np.ndarray) -> Neurons:
        rows = np.asarray(vector).reshape(self.width, self.dim)
        return Neurons(rows, np.ones((self.width, 1)), np.arange(self.size).reshape(rows.shape), self.activation)

    def about(self) -> dict[str, int | float | str]:
        sizes = {"students": self.width, "teachers": self.teacher.width, "dim": self.dim}
        return {"activation": self.activation.name, **sizes}

    def givens(self) -> Described:
        return describe_teacher(self.teacher)

    def describe(self, vectors: np.ndarray) -> Described:
        rows = vectors.reshape(len(vectors), self.width, self.dim)
        return describe_neurons(rows, np.ones(rows.shape[:-1]), np.asarray(self.teacher.incoming))

    def function_distance(self, first: TwoLayer, second: TwoLayer) -> float:
        """½E(f(x) - g(x))² of two students of any widths."""
        return float(Sphere(Teacher(second.incoming, second.outgoing, self.activation), first.width).loss(first))


class SphereChart(Task):
    """A sphere task in central projection from the tangent spaces at W: x_i = (w_i + B_i y_i)/|w_i + B_i y_i|.

    The columns of B_i are an orthonormal basis of w_i's tangent space. The projection agrees with the exponential map
    to second order, so gradient and Hessian at y = 0 are the Riemannian ones.
    """

    sphere: Sphere
    base: Float[Array, "n d"]
    basis: Float[Array, "n d d-1"]

    def __init__(self, sphere: Sphere, base: Float[Array, "n d"]):
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
        _, tangential = _split(x, self.sphere._pull(self.sphere._overlaps(x), x))
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


class _Overlaps(NamedTuple):
    students: Array  # w_i·w_j, zero on the diagonal
    teachers: Array  # w_i·v_j
    off: Array  # True off the diagonal


def _split(x: Array, gradient: Array) -> tuple[Array, Array]:
    """The part of each gradient row along x, as a number, and the rest, as a vector."""
    radial = jnp.sum(x * gradient, axis=1)
    return radial, gradient - radial[:, None] * x


def _unit_teacher(teacher: Teacher | ArrayLike, activation: str | Activation | None) -> Teacher:
    if isinstance(teacher, Teacher):
        if activation is not None and activations.get(activation) != teacher.activation:
            raise ValueError(
                f"The teacher's activation is {teacher.activation.name}; received activation={activation!r} as well. "
                "On the sphere both networks have the same: leave `activation` out."
            )
    else:
        vectors = np.asarray(teacher, float)
        ones = np.ones(vectors.shape[0] if vectors.ndim else 0)
        teacher = Teacher(vectors, ones, "hermite:4" if activation is None else activation)
    _degree(teacher.activation)
    if teacher.outgoing.ndim != 1 or not np.all(np.asarray(teacher.outgoing) == 1):
        raise ValueError("On the sphere every outgoing weight is 1; this teacher has others.")
    v = np.asarray(teacher.incoming)
    norms = np.linalg.norm(v, axis=1)
    if np.any(np.abs(norms - 1) > _UNIT):
        raise ValueError(
            f"Teachers on the sphere have norm 1; received norms from {norms.min():.6g} to {norms.max():.6g}. "
            "Divide each vector by its norm first."
        )
    return Teacher(v / norms[:, None], np.ones(len(v)), teacher.activation)


def _degree(activation: Activation) -> int:
    name, _, degree = activation.name.partition(":")
    if not isinstance(activation, Polynomial) or name != "hermite":
        raise ValueError(
            f"The sphere task is for Hermite activations, as 'hermite:4'; received {activation.name!r}. "
            "For others use Population, which does not keep norms."
        )
    return int(degree)
