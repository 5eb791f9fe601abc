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
from understudy.networks import HiddenLayer, Teacher, TwoLayer
from understudy.tasks import starts as drawing
from understudy.tasks.exact_form import ExactForm, NoExactFormError, name_of
from understudy.tasks.imitation import Imitation
from understudy.tasks.neurons import Described, Neurons, describe_neurons, describe_teacher
from understudy.tasks.population import Population
from understudy.tasks.population_arguments import fixed_outgoing
from understudy.tasks.reduction import Reduction, unreduced
from understudy.tasks.sphere_chart import SphereChart, split_radial, tangent_basis
from understudy.tasks.sphere_structure import read_sphere
from understudy.tasks.split_terms import SplitTerms
from understudy.tasks.split_terms import check as check_neuron
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
    - `outgoing`: fixed outgoing weights a_i of the students, shape (n,): student i then counts with the factor a_i.
      Default: 1. Splits of a student have such weights.

    >>> task = Sphere(np.eye(2), width=2)
    >>> float(task.loss(np.eye(2)))
    0.0
    """

    teacher: Teacher
    repulsion: Float[Array, ""]
    constant: Float[Array, ""]
    outgoing: Float[Array, " n"] | None
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
        outgoing: ArrayLike | None = None,
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
            raise ValueError("The sphere needs at least dimension 2; received teachers in dimension 1.")
        self.width, self.kind, self.degree = int(width), loss, _degree(self.teacher.activation)
        self.outgoing = None if outgoing is None else fixed_outgoing(outgoing, self.width, ())
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
        return TwoLayer(rows, jnp.broadcast_to(self._weights, rows.shape[:-1]))

    @property
    def _weights(self) -> Float[Array, " n"]:
        return jnp.ones(self.width) if self.outgoing is None else self.outgoing

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
        _, tangential = split_radial(x, self._pull(o, x))
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
        if self.outgoing is not None:
            raise NoExactFormError("Proofs on the sphere take outgoing weights 1; this task has others.")
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
        own = 1.0 if self.outgoing is None else self.outgoing[:, None] ** 2
        return self.degree * self.repulsion * own * x + self._pull(self._overlaps(x), x)

    def _overlaps(self, x: Array) -> "_Overlaps":
        off = ~jnp.eye(self.width, dtype=bool)
        students = x @ x.T
        a = self.outgoing
        pair, single = (1.0, 1.0) if a is None else (a[:, None] * a[None, :], a[:, None])
        return _Overlaps(jnp.where(off, students, 0.0), x @ self.teacher.incoming.T, off, pair, single)

    def _loss(self, o: "_Overlaps") -> Array:
        off = jnp.where(o.off, o.pair * o.students**self.degree, 0.0)
        own = self.width if self.outgoing is None else jnp.sum(self.outgoing**2)
        repulsion = self.repulsion * (own + jnp.sum(off)) / 2
        return repulsion - jnp.sum(o.single * o.teachers**self.degree) + self.constant

    def _pull(self, o: "_Overlaps", x: Array) -> Array:
        """The Euclidean gradient without its part along each row's own self-interaction."""
        students = jnp.where(o.off, o.pair * o.students ** (self.degree - 1), 0.0)
        teachers = o.single * o.teachers ** (self.degree - 1)
        return self.degree * (self.repulsion * students @ x - teachers @ self.teacher.incoming)

    def _second_order(self, x: Array) -> tuple[Array, Array, Array]:
        """Loss, tangential gradient and Hessian blocks (n, n, d, d) of the loss of rows scaled to norm 1, at unit rows.

        With P = I - xxᵀ and G, H the Euclidean gradient and Hessian: P_i H_ij P_j - δ_ij [(x·G)P + PGxᵀ + x(PG)ᵀ].
        """
        d, rho = self.dim, self.degree
        v, o, index = self.teacher.incoming, self._overlaps(x), jnp.arange(self.width)
        radial, tangential = split_radial(x, self._pull(o, x))
        first = self.repulsion * rho * jnp.where(o.off, o.pair * o.students ** (rho - 1), 0.0)
        second = self.repulsion * rho * (rho - 1) * jnp.where(o.off, o.pair * o.students ** max(rho - 2, 0), 0.0)
        second_teachers = rho * (rho - 1) * o.single * o.teachers ** max(rho - 2, 0)
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
        return Population(self.teacher, self.width, outgoing=self._weights)

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
        """½E f*(x)²; the largest outgoing weight of the students for the correlation loss, which is linear in them."""
        return float(self.constant) if self.kind == "squared" else float(jnp.max(jnp.abs(self._weights)))

    def units(self, vectors: Float[Array, "*batch P"] | np.ndarray) -> Units:
        """Students have norm 1; the loss is in units of `target_scale`."""
        return natural_units(np.ones(self.size), self.target_scale)

    def structure(self, parameters: TwoLayer | ArrayLike) -> Structure:
        """Which teachers the students copy or share; see `read_sphere`."""
        rows = np.asarray(self.flatten(parameters)).reshape(-1, self.dim)
        if len(rows) != self.width:
            raise ValueError(f"structure looks at one point; received {len(rows)} rows for {self.width} students.")
        return read_sphere(rows, np.asarray(self.teacher.incoming), self.degree)

    def neurons(self, vector: Float[Array, " P"] | np.ndarray) -> Neurons:
        rows = np.asarray(vector).reshape(self.width, self.dim)
        return Neurons(rows, np.asarray(self._weights)[:, None], self.hidden_positions(), self.activation)

    def about(self) -> dict[str, int | float | str]:
        sizes = {"students": self.width, "teachers": self.teacher.width, "dim": self.dim}
        return {"activation": self.activation.name, **sizes}

    def givens(self) -> Described:
        return describe_teacher(self.teacher)

    def describe(self, vectors: np.ndarray) -> Described:
        rows = vectors.reshape(len(vectors), self.width, self.dim)
        weights = np.broadcast_to(np.asarray(self._weights), rows.shape[:-1])
        return describe_neurons(rows, weights, np.asarray(self.teacher.incoming))

    def function_distance(self, first: TwoLayer, second: TwoLayer) -> float:
        """½E(f(x) - g(x))² of two students of any widths."""
        rows = np.concatenate([np.asarray(first.incoming), np.asarray(second.incoming)])
        weights = np.concatenate([np.asarray(first.outgoing), -np.asarray(second.outgoing)])
        return float(weights @ (rows @ rows.T) ** self.degree @ weights) / 2

    # -- surgery ------------------------------------------------------------------------------------------------------

    def with_hidden_layer(
        self, parameters: Any, hidden: HiddenLayer, layer: int = 0
    ) -> 'tuple[Sphere, Float[Array, " P"]]':
        repulsion = 1.0 if self.kind == "correlation" else float(self.repulsion)
        weights = np.asarray(hidden.outgoing)[:, 0]
        task = Sphere(self.teacher, hidden.width, loss=self.kind, repulsion=repulsion, outgoing=weights)
        return task, task.flatten(hidden.incoming)

    def hidden_positions(self, layer: int = 0) -> np.ndarray:
        return np.arange(self.size).reshape(self.width, self.dim)

    def split_terms(self, parameters: TwoLayer | ArrayLike, neuron: int, layer: int = 0) -> SplitTerms:
        """Y in the tangent space of the neuron. There is no V: outgoing weights are fixed.

        Y = a ∇²Φ, where Φ(w) = r Σ_i a_i (w·w_i)^ρ - Σ_j (w·v_j)^ρ is the slope of the loss in the outgoing weight of a
        new student at w, and ∇² is the Hessian on the sphere.
        """
        check_neuron(neuron, [self.width], layer)
        rows, a, v = self.flatten(parameters).reshape(self.width, self.dim), self._weights, self.teacher.incoming
        basis = tangent_basis(rows[neuron])

        def slope(local: Array) -> Array:
            moved = rows[neuron] + basis @ local
            w = moved / jnp.linalg.norm(moved)
            return self.repulsion * jnp.sum(a * (rows @ w) ** self.degree) - jnp.sum((v @ w) ** self.degree)

        curvature = a[neuron] * jax.hessian(slope)(jnp.zeros(self.dim - 1))
        return SplitTerms(np.asarray(curvature), np.zeros((self.dim - 1, 0)))

    def imitation(self, teacher: Any = None, layer: int = 0) -> Imitation:
        """The task's own teachers; averages have norm 1, and outgoing weights are fixed."""
        if teacher is not None or layer != 0:
            raise ValueError("A Sphere task has one hidden layer and its own teacher: leave out teacher= and layer=.")
        v, rho, weights = np.asarray(self.teacher.incoming), self.degree, np.asarray(self._weights)
        return Imitation(
            rows=v,
            outgoing=np.ones((len(v), 1)),
            students=self.width,
            overlaps=(v @ v.T) ** rho,
            between=lambda p: (p @ p.T) ** rho,
            squares=lambda p: np.sum(p**2, axis=1) ** rho,
            towards=lambda p: (p @ v.T) ** rho,
            target=lambda p: np.sum((p @ v.T) ** rho, axis=1, keepdims=True),
            lengths=lambda p: np.linalg.norm(p, axis=1),
            build=lambda rows, outgoing: TwoLayer(rows, outgoing[:, 0]),
            fixed=weights[:, None],
            norms=np.ones(1),
        )


class _Overlaps(NamedTuple):
    students: Array  # w_i·w_j, zero on the diagonal
    teachers: Array  # w_i·v_j
    off: Array  # True off the diagonal
    pair: Array | float  # a_i a_j
    single: Array | float  # a_i, as a column


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
            f"The sphere task is for Hermite activations, such as 'hermite:4'; received {activation.name!r}. "
            "For others use Population, which does not keep norms."
        )
    return int(degree)
