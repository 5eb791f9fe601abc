"""The population loss of a two-layer student, exact in the pairwise Gaussian interactions."""

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation
from understudy.gaussian import SelfPartials, has_closed_form, self_partials
from understudy.gaussian.quadrature import nodes_needed
from understudy.networks import Teacher, TwoLayer
from understudy.tasks import split_terms
from understudy.tasks import starts as drawing
from understudy.tasks.exact_form import ExactForm, NoExactFormError, name_of
from understudy.tasks.neurons import Described, Neurons, describe_neurons, describe_teacher
from understudy.tasks.order_problem import OrderProblem
from understudy.tasks.pairs import Pairs, cross_blocks, own_blocks, pair_up
from understudy.tasks.reduction import Reduction, unreduced
from understudy.tasks.span import Span, span_of
from understudy.tasks.structure import Pair, Setting, Structure, read_structure
from understudy.tasks.symmetry import rescaling_tangents, rotation_tangents
from understudy.tasks.task import Evaluation, Task

_SHORT = 1e-12
"""Incoming vectors shorter than this, relative to the longest (or to 1, if that is longer), count as zero."""


class Population(Task):
    r"""L(θ) = E‖f(x) - f*(x)‖², x ~ N(0, Σ), for a two-layer student f of `width` neurons and a two-layer teacher f*.

    L = Σ_ii' a_i·a_i' G(w_i, w_i') - 2 Σ_ij a_i·b_j G(w_i, v_j) + Σ_jj' b_j·b_j' G(v_j, v_j'), with
    G(p, q) = E[σ(p·x)σ(q·x)] (Simsek et al. 2023, Eq. 5 and 10; no factor ½). Gradient and Hessian are assembled from
    the partials of G, at a cost of O(n²d² + nkd²). The flat parameter vector is θ = (w_1, a_1) ⊕ … ⊕ (w_n, a_n)
    (their Eq. 2).

    **Arguments**

    - `teacher`: a `Teacher`; `width`: number n of student neurons.
    - `activation`: the student's, the teacher's unless given.
    - `outgoing`: `"trained"`; `"fixed"` for weights 1 (a soft committee machine); or the fixed weights, a number for all.
    - `covariance`: Σ, the identity unless given.

    With kinked activations (ReLU, abs) gradient and Hessian do not exist where a student's incoming vector is zero
    (they are NaN there); see `kinks`.

    >>> task = Population(Teacher.orthonormal(3), width=1)
    >>> round(float(task.loss(TwoLayer([[0.0, 0.0, 0.0]], [0.0]))), 12)
    1.0
    """

    teacher: Teacher
    constant: Float[Array, ""]
    fixed_outgoing: Float[Array, " n *m"] | None
    root: Float[Array, "d d"] | None
    width: int = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)
    resolution: float = eqx.field(static=True)

    def __init__(
        self,
        teacher: Teacher,
        width: int,
        *,
        activation: str | Activation | None = None,
        outgoing: str | ArrayLike = "trained",
        covariance: ArrayLike | None = None,
    ):
        if not isinstance(width, (int, np.integer)) or isinstance(width, bool) or width < 1:
            raise ValueError(f"A student needs a positive whole number of neurons; received width={width!r}.")
        self.teacher, self.width = teacher, int(width)
        self.activation = teacher.activation if activation is None else activations.get(activation)
        self.fixed_outgoing = _fixed_outgoing(outgoing, self.width, teacher.outgoing.shape[1:])
        self.root = None if covariance is None else _square_root(covariance, teacher.dim)
        v = teacher.incoming if self.root is None else teacher.incoming @ self.root
        if teacher.activation.smoothness == 0 and not bool(jnp.all(jnp.any(v != 0, axis=1))):
            raise ValueError(
                f"With {teacher.activation.name} every teacher neuron needs inputs of positive variance; under this "
                "covariance one of them has none."
            )
        longest = float(np.max(np.linalg.norm(np.asarray(v), axis=1)))
        self.resolution = _resolution(teacher.activation.steepness * longest)
        self.constant = _own_energy(teacher, v, self.resolution)

    @property
    def dim(self) -> int:
        """Input dimension d."""
        return self.teacher.dim

    @property
    def outputs(self) -> tuple[int, ...]:
        """() for a scalar output, (m,) for m outputs."""
        return self.teacher.outgoing.shape[1:]

    @property
    def trains_outgoing(self) -> bool:
        """Whether outgoing weights are trained."""
        return self.fixed_outgoing is None

    @property
    def size(self) -> int:
        per_neuron = self.dim + (math.prod(self.outputs) if self.trains_outgoing else 0)
        return self.width * per_neuron

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        """A `TwoLayer`, a pair (incoming, outgoing), a flat vector, or a batch of one of these, as a flat vector."""
        if isinstance(parameters, (tuple, list)) and len(parameters) == 2 and np.ndim(parameters[0]) >= 2:
            parameters = TwoLayer(*parameters)
        if not isinstance(parameters, TwoLayer):
            return self._checked_vector(parameters)
        w, a = parameters.incoming, parameters.outgoing
        batch = w.shape[:-2]
        expected = (*batch, self.width, *self.outputs)
        if w.ndim not in (2, 3) or w.shape[-2:] != (self.width, self.dim) or a.shape != expected:
            raise ValueError(
                f"This task has {self.width} students in dimension {self.dim}: incoming weights "
                f"({self.width}, {self.dim}) and outgoing weights {(self.width, *self.outputs)}, "
                "with at most one batch axis before; "
                f"received {w.shape} and {a.shape}."
            )
        if not self.trains_outgoing:
            return self._finite(w.reshape(*batch, -1))
        return self._finite(jnp.concatenate([w, a.reshape(*batch, self.width, -1)], axis=-1).reshape(*batch, -1))

    def _checked_vector(self, vector: ArrayLike) -> Float[Array, "*batch P"]:
        array = jnp.asarray(vector, float)
        if array.ndim not in (1, 2) or array.shape[-1] != self.size:
            raise ValueError(
                f"A flat parameter vector of this task has length {self.size}; received shape {array.shape}. "
                "Or pass a TwoLayer(incoming, outgoing)."
            )
        return self._finite(array)

    @staticmethod
    def _finite(vector: Array) -> Array:
        if not isinstance(vector, jax.core.Tracer) and not np.all(np.isfinite(np.asarray(vector))):
            bad = int(np.sum(~np.isfinite(np.asarray(vector))))
            raise ValueError(f"Parameters must be finite; received {bad} NaN or infinite entries.")
        return vector

    def unflatten(self, vector: Float[Array, "*batch P"]) -> TwoLayer:
        w, a = self._split(vector)
        return TwoLayer(w, jnp.broadcast_to(a, (*w.shape[:-2], *a.shape[-1 - len(self.outputs) :])))

    def _split(self, vector: Array) -> tuple[Array, Array]:
        rows = vector.reshape(*vector.shape[:-1], self.width, -1)
        if self.fixed_outgoing is not None:
            return rows, self.fixed_outgoing
        return rows[..., : self.dim], rows[..., self.dim :].reshape(*rows.shape[:-1], *self.outputs)

    def prepared(self, vectors: Float[Array, "*batch P"]) -> "Population":
        """Series and quadrature are chosen for the largest norm seen, with a reserve; see `_resolution`."""
        if self.closed_form:
            return self
        w, _ = self._split(vectors)
        w = w if self.root is None else w @ self.root
        largest = float(jnp.max(jnp.linalg.norm(w, axis=-1))) * self.activation.steepness
        needed = _resolution(largest)
        return self if needed <= self.resolution else _with_resolution(self, needed)

    @property
    def closed_form(self) -> bool:
        """Whether every interaction of this task has a closed form."""
        return has_closed_form(self.activation, self.activation) and has_closed_form(
            self.activation, self.teacher.activation
        )

    @property
    def lower_bound(self) -> float:
        """Zero: the loss is a mean square."""
        return 0.0

    @property
    def target_scale(self) -> float:
        """E‖f*(x)‖²."""
        return float(self.constant)

    def natural_lengths(self, vector: Float[Array, " P"] | np.ndarray) -> np.ndarray:
        """The largest incoming and outgoing weight of teachers and students."""
        w, a = (np.asarray(x) for x in self._split(jnp.asarray(vector)))
        incoming = max(np.abs(w).max(), np.abs(np.asarray(self.teacher.incoming)).max())
        outgoing = max(np.abs(a).max(), np.abs(np.asarray(self.teacher.outgoing)).max())
        rows = np.full((self.width, self.size // self.width), outgoing)
        rows[:, : self.dim] = incoming
        return rows.ravel()

    def starts(
        self, seeds: int | Sequence[int], init: str = "gaussian", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        """Random students: every weight N(0, init_std²), or Glorot's variances for each layer."""
        w, a = drawing.two_layer(seeds, self.width, self.dim, self.outputs, init, init_std)
        if self.trains_outgoing:
            w = np.concatenate([w, a.reshape(*a.shape[:2], -1)], axis=-1)
        return jnp.asarray(w.reshape(len(w), -1))

    def kinks(self, parameters: TwoLayer | ArrayLike) -> list[str]:
        """Students with a zero incoming vector and a kinked activation, where the loss has no gradient, in words.

        Elsewhere the loss is twice continuously differentiable, also where two kinked students are parallel: of ReLU
        neurons at an angle φ, G is |p||q|/2 (cos φ + (sin φ - φ cos φ)/π), of which the first term is p·q/2, and the
        other is φ³/3π + O(φ⁵), whose second derivatives vanish at φ = 0 from every side (and likewise at φ = π).
        """
        if self.activation.smoothness > 0:
            return []
        w = np.asarray(self.unflatten(self.flatten(parameters)).incoming)
        if w.ndim != 2:
            raise ValueError(f"kinks looks at one point; received a batch of {len(w)}.")
        norms = np.linalg.norm(w if self.root is None else w @ np.asarray(self.root), axis=1)
        short = np.flatnonzero(norms <= _SHORT * max(norms.max(), 1.0))
        return [f"student {i} has a zero incoming vector, where the loss has a kink" for i in short]

    def exact_form(self) -> ExactForm:
        if self.root is not None:
            raise NoExactFormError("Proofs take isotropic inputs; this task has a covariance.")
        b, fixed = np.asarray(self.teacher.outgoing), self.fixed_outgoing
        return ExactForm(
            loss="population",
            activation=name_of(self.activation),
            teacher_activation=name_of(self.teacher.activation),
            incoming=np.asarray(self.teacher.incoming),
            outgoing=b.reshape(len(b), -1),
            width=self.width,
            fixed_outgoing=None if fixed is None else np.asarray(fixed).reshape(self.width, -1),
        )

    # -- loss, gradient, Hessian ------------------------------------------------------------------------------------

    def _terms(self, vector: Array) -> "_Terms":
        w, a = self._split(vector)
        v = self.teacher.incoming
        if self.root is not None:
            w, v = w @ self.root, v @ self.root
        own = self_partials(self.activation, jnp.sum(w**2, axis=1), nodes_needed(self.resolution))
        groups = [(self.activation, w, a), (self.teacher.activation, v, -self.teacher.outgoing)]
        if self.activation == self.teacher.activation:  # one table of pairs costs less than two
            vectors, outgoing = jnp.concatenate([w, v]), jnp.concatenate([a, -self.teacher.outgoing])
            groups = [(self.activation, vectors, outgoing)]
        partners = []
        for activation, vectors, outgoing in groups:
            pairs = pair_up(self.activation, activation, w, vectors, self.resolution)
            partners.append(_Partners(vectors, outgoing, pairs, 2 * _dots(a, outgoing)))
        first = partners[0]
        partials = jax.tree.map(_zero_diagonal, first.pairs.partials)
        partners[0] = first._replace(pairs=first.pairs._replace(partials=partials), weight=_zero_diagonal(first.weight))
        return _Terms(w, a, own, jnp.diagonal(_dots(a, a)), partners)

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self._loss(self._terms(vector))

    def _loss(self, t: "_Terms") -> Array:
        first, n = t.partners[0], self.width
        pairs = sum(jnp.sum(p.weight * p.pairs.partials.value) for p in t.partners)
        twice = (
            jnp.sum(first.weight[:, :n] * first.pairs.partials.value[:, :n]) / 2
        )  # each pair of students is in twice
        return jnp.sum(t.weight_own * t.own.value) + pairs - twice + self.constant

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        t = self._terms(vector)
        return self._loss(t), self._gradient(t)

    def _gradient(self, t: "_Terms") -> Array:
        incoming = t.along()[:, None] * t.w
        for p in t.partners:
            incoming += (p.weight * p.pairs.partials.q12) @ p.vectors
        incoming = incoming if self.root is None else incoming @ self.root
        if not self.trains_outgoing:
            return incoming.ravel()
        outgoing = 2 * (_rows(t.own.value, t.a) + sum(p.pairs.partials.value @ p.outgoing for p in t.partners))
        return jnp.concatenate([incoming, outgoing.reshape(self.width, -1)], axis=1).ravel()

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        return self._evaluate(vector, jnp.float64)

    def evaluate_roughly(self, vector: Float[Array, " P"]) -> Evaluation:
        """Half of the memory that the assembly of the Hessian goes through."""
        return self._evaluate(vector, jnp.float32)

    def _evaluate(self, vector: Array, precision: type) -> Evaluation:
        t = self._terms(vector)
        n, d = self.width, self.dim
        own = sum(own_blocks(p.pairs, p.weight, t.w, p.vectors) for p in t.partners)
        own += 2 * (t.weight_own * t.own.q)[:, None, None] * jnp.eye(d)[None]
        own += 4 * (t.weight_own * t.own.qq)[:, None, None] * (t.w[:, :, None] * t.w[:, None, :])
        students = t.partners[0].pairs.leading(n)
        slope, outer = cross_blocks(students, t.partners[0].weight[:, :n], t.w, t.w)
        metric = jnp.eye(d)
        if self.root is not None:
            metric = self.root @ self.root
            own = self.root @ own @ self.root
            outer = [(left @ self.root, right @ self.root) for left, right in outer]
        if not self.trains_outgoing:
            return Evaluation(self._loss(t), self._gradient(t), _assemble([(slope, metric)], outer, own, precision))

        m = math.prod(self.outputs)
        a, gs = t.a.reshape(n, m), students.partials
        # ∂²L/∂w_i∂a_j: for i ≠ j it is 2 a_i ∂_w G_ij, for i = j the derivative of the gradient by its own weight.
        slopes = 4 * gs.q11[:, :, None] * t.w[:, None, :] + 2 * gs.q12[:, :, None] * t.w[None, :, :]
        mixed = 4 * t.w[:, :, None] * (t.own.q[:, None] * a)[:, None, :]
        for p in t.partners:
            c, g = p.outgoing.reshape(-1, m), p.pairs.partials
            mixed += 4 * t.w[:, :, None] * (g.q11 @ c)[:, None, :] + 2 * jnp.einsum(
                "ij,jd,jm->idm", g.q12, p.vectors, c
            )
        if self.root is not None:
            slopes, mixed = slopes @ self.root, jnp.einsum("ac,icm->iam", self.root, mixed)

        def pad(x: Array, before: int, after: int) -> Array:
            return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)])

        slopes, weights = pad(slopes, 0, m), pad(a, d, 0)
        outer = [(pad(left, 0, m), pad(right, 0, m)) for left, right in outer]
        outer.append((slopes, weights[:, None, :]))
        outer.append((weights[None, :, :], jnp.swapaxes(slopes, 0, 1)))
        constants = [
            (slope, jnp.pad(metric, (0, m))),
            (2 * gs.value, jnp.pad(jnp.eye(m), (d, 0))),
        ]
        squares = 2 * t.own.value[:, None, None] * jnp.eye(m)[None]
        top = jnp.concatenate([own, mixed], axis=2)
        own = jnp.concatenate([top, jnp.concatenate([jnp.swapaxes(mixed, 1, 2), squares], axis=2)], axis=1)
        return Evaluation(self._loss(t), self._gradient(t), _assemble(constants, outer, own, precision))

    def outside_hessian(self, vector: Float[Array, " P"]) -> Float[Array, "n n"]:
        """The Hessian's block on any direction e orthogonal to every student and teacher: ∂²L/∂(w_i·e)∂(w_j·e).

        It is the same for each such direction and does not couple to anything else, so in dimension d it occurs
        d - rank(students, teachers) times. Isotropic inputs only.
        """
        t = self._terms(vector)
        students = t.partners[0]
        return jnp.diag(t.along()) + (students.weight * students.pairs.partials.q12)[:, : self.width]

    def outside_symmetries(self, vector: Float[Array, " P"]) -> int:
        """Rank of the students' components outside the teachers' span: each can turn into a further direction."""
        w = np.asarray(self._split(jnp.asarray(vector))[0])
        v = np.asarray(self.teacher.incoming)
        rest = w - w @ np.linalg.pinv(v) @ v
        return int(np.sum(np.linalg.svd(rest, compute_uv=False) > 1e-9 * (1 + np.abs(w).max())))

    def symmetry_tangents(self, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
        """Rescalings of each neuron (homogeneous activations) and rotations of what no teacher uses."""
        w, a = self._split(vector)
        outputs = math.prod(self.outputs) if self.trains_outgoing else 0
        tangents = [jnp.zeros((0, self.size))]
        if self.trains_outgoing and self.activation.homogeneity is not None:
            tangents.append(rescaling_tangents(w, a.reshape(self.width, -1), self.activation.homogeneity))
        if self.root is None and self.dim >= self.teacher.width + 2:
            tangents.append(rotation_tangents(w, self.teacher.incoming, outputs))
        return jnp.concatenate(tangents)

    # -- reduction ----------------------------------------------------------------------------------------------------

    def reduce(self, vectors: Float[Array, "*batch P"]) -> Reduction:
        """The same problem in the span of teachers and students; see `in_span`."""
        if not self.reducible:
            return unreduced(self, vectors)
        small, network, span = self.in_span(self.unflatten(vectors))

        def lift(vector: Any, position: int | None = None) -> Float[Array, " P"]:
            inside = small.unflatten(jnp.asarray(vector))
            return self.flatten(TwoLayer(span.lift(inside.incoming, position), inside.outgoing))

        return Reduction(small, small.flatten(network), lift, self.dim - small.dim)

    def in_span(self, parameters: TwoLayer) -> "tuple[Population, TwoLayer, Span]":
        """The same problem in the span of teachers and students: (task, parameters, the span).

        Gradient flow never leaves span(v_1…v_k, w_1(0)…w_n(0)), so dimension r = min(d, n + k) is enough; the way back
        is `span.lift`. Teacher coordinates come first and are the same for a whole batch. Inputs with a covariance
        other than the identity mix directions: no reduction (r = d).
        """
        w = np.asarray(parameters.incoming)
        if not self.reducible:
            batch = w.shape[:-2]
            empty = (np.zeros((*batch, 0, size)) for size in (self.dim, 0, self.dim))
            return self, parameters, Span(np.eye(self.dim), *empty)
        span, own, coordinates = span_of(self.teacher.incoming, w)
        teacher = Teacher(np.pad(own, ((0, 0), (0, self.width))), self.teacher.outgoing, self.teacher.activation)
        task = eqx.tree_at(lambda t: t.teacher, self, teacher)
        return task, TwoLayer(jnp.asarray(coordinates), parameters.outgoing), span

    def order_problem(self) -> OrderProblem:
        if self.root is not None:
            raise ValueError(
                "Order-parameter equations need isotropic inputs; this task has a covariance, under which overlaps do "
                "not close. Leave out covariance=."
            )
        fixed, m = self.fixed_outgoing, math.prod(self.outputs)
        v = self.teacher.incoming
        return OrderProblem(
            incoming=v,
            overlaps=v @ v.T,
            teacher_outgoing=self.teacher.outgoing.reshape(-1, m),
            constant=self.constant,
            fixed_outgoing=None if fixed is None else fixed.reshape(-1, m),
            width=self.width,
            outputs=self.outputs,
            student=self.activation,
            teacher=self.teacher.activation,
        )

    @property
    def reducible(self) -> bool:
        """Whether the span of teachers and students has fewer dimensions than the input, which must be isotropic."""
        return self.root is None and self.dim > self.width + self.teacher.width

    # -- meaning ------------------------------------------------------------------------------------------------------

    def structure(self, parameters: TwoLayer | ArrayLike) -> Structure:
        """What each student copies or averages; see `read_structure`."""
        task, network, _ = self.in_span(self.unflatten(self.flatten(parameters)))
        w, v = np.asarray(network.incoming, float), np.asarray(task.teacher.incoming, float)
        a, b = np.asarray(network.outgoing, float), np.asarray(task.teacher.outgoing, float)
        if w.ndim != 2:
            raise ValueError(f"structure looks at one point; received a batch of {len(w)}.")
        if task.root is not None:
            root = np.asarray(task.root)
            w, v = w @ root, v @ root
        pair = Pair(w, a.reshape(len(w), -1), v, b.reshape(len(v), -1), self.activation)
        return read_structure(pair, self._setting)

    @property
    def _setting(self) -> Setting | None:
        """Where the theory of copies and averages applies."""
        same = self.activation == self.teacher.activation
        applies = same and self.root is None and self.trains_outgoing and self.teacher.is_unit_orthonormal
        return Setting(self.activation, self.teacher.width) if applies else None

    def neurons(self, vector: Float[Array, " P"] | np.ndarray) -> Neurons:
        w, a = (np.asarray(x) for x in self._split(jnp.asarray(vector)))
        layout = np.arange(self.size).reshape(self.width, -1)
        return Neurons(w, a.reshape(self.width, -1), layout, self.activation)

    def about(self) -> dict[str, int | float | str]:
        own = {} if self.activation == self.teacher.activation else {"teacher_activation": self.teacher.activation.name}
        sizes = {"students": self.width, "teachers": self.teacher.width, "dim": self.dim}
        return {"activation": self.activation.name, **own, **sizes}

    def givens(self) -> Described:
        return describe_teacher(self.teacher, self.root)

    def describe(self, vectors: np.ndarray) -> Described:
        rows = vectors.reshape(len(vectors), self.width, -1)
        shape = (len(vectors), self.width, *self.outputs)
        fixed = self.fixed_outgoing
        a = rows[..., self.dim :].reshape(shape) if fixed is None else np.broadcast_to(np.asarray(fixed), shape)
        root = None if self.root is None else np.asarray(self.root)
        return describe_neurons(rows[..., : self.dim], a, np.asarray(self.teacher.incoming), root)

    def function_distance(self, first: TwoLayer, second: TwoLayer) -> float:
        """E‖f(x) - g(x)‖² of two students of any widths."""
        other = Teacher(second.incoming, second.outgoing, self.activation)
        return float(self._like(other, first.width).loss(first))

    def for_network(self, network: object) -> "Population | None":
        """The same teacher and inputs for a `TwoLayer` of another width; None for other networks and fixed weights."""
        known = isinstance(network, TwoLayer) and self.trains_outgoing
        return self._like(self.teacher, network.width) if known else None  # type: ignore[attr-defined]

    def _like(self, teacher: Teacher, width: int) -> "Population":
        covariance = None if self.root is None else self.root @ self.root
        return Population(teacher, width, activation=self.activation, covariance=covariance)

    def split_terms(
        self, parameters: TwoLayer | ArrayLike, neuron: int, layer: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        if not self.trains_outgoing:
            raise ValueError("Splitting needs trained outgoing weights; this task has fixed ones.")
        split_terms.check(neuron, [self.width], layer)
        vector = self.flatten(parameters)
        y, v = split_terms.of_population(self.prepared(vector), self.unflatten(vector), jnp.asarray(neuron))
        return np.asarray(y), np.asarray(v)

    def softened(self, noise: float) -> Task:
        """With kinked activations, kinks at zero incoming vectors rounded off; see `Softened`."""
        from understudy.tasks.softened import soften  # it is made of population tasks

        return self if self.activation.smoothness > 0 else soften(self, noise)


class _Partners(NamedTuple):
    """Neurons that every student is paired with: students first, or teachers, whose outgoing weights count negative.

    `weight` is what each pair's interaction counts in the gradient; a student with itself is left out.
    """

    vectors: Array
    outgoing: Array
    pairs: Pairs
    weight: Array


class _Terms(NamedTuple):
    """Everything one evaluation computes once: students, each with itself, and each with its partners."""

    w: Array
    a: Array
    own: SelfPartials
    weight_own: Array
    partners: list[_Partners]

    def along(self) -> Array:
        """∂L/∂w_i = along_i w_i + terms along the partners."""
        pairs = sum(jnp.sum(p.weight * p.pairs.partials.q11, axis=1) for p in self.partners)
        return 2 * (self.weight_own * self.own.q + pairs)


def _with_resolution(task: Population, resolution: float) -> Population:
    copy = object.__new__(Population)
    for item in fields(Population):
        object.__setattr__(copy, item.name, resolution if item.name == "resolution" else getattr(task, item.name))
    return copy


def _dots(a: Array, b: Array) -> Array:
    """a_i·b_j for scalar or vector outgoing weights."""
    return jnp.outer(a, b) if a.ndim == 1 else a @ b.T


def _rows(scale: Array, a: Array) -> Array:
    return scale * a if a.ndim == 1 else scale[:, None] * a


def _assemble(
    constants: list[tuple[Array, Array]], outer: list[tuple[Array, Array]], own: Array, precision: type
) -> Array:
    """The Hessian with blocks Σ scale_ij matrix + Σ left_ij right_ijᵀ off the diagonal and `own` on it, in one pass.

    Large and transposed intermediates cost more than the arithmetic, so every summand is written in the final layout,
    indexed (i, a, j, b).
    """
    n, size, _ = own.shape
    constants, outer, own = jax.tree.map(lambda x: x.astype(precision), (constants, outer, own))
    off = jnp.zeros((n, size, n, size), precision)
    for scale, matrix in constants:
        off += scale[:, None, :, None] * matrix[None, :, None, :]
    for left, right in outer:
        off += jnp.swapaxes(left, 1, 2)[:, :, :, None] * right[:, None, :, :]
    index = jnp.arange(n)
    return off.at[index, :, index, :].set(own).reshape(n * size, n * size)


def _zero_diagonal(x: Array) -> Array:
    return jnp.where(jnp.eye(x.shape[0], x.shape[1], dtype=bool), 0.0, x)


@eqx.filter_jit
def _own_energy(teacher: Teacher, v: Array, resolution: float) -> Array:
    """E‖f*(x)‖² of the teacher with (whitened) incoming vectors v."""
    pairs = pair_up(teacher.activation, teacher.activation, v, v, resolution).partials.value
    own = self_partials(teacher.activation, jnp.sum(v**2, axis=1), nodes_needed(resolution)).value
    weights = _dots(teacher.outgoing, teacher.outgoing)
    return jnp.sum(_zero_diagonal(weights) * pairs) + jnp.diagonal(weights) @ own


def _resolution(scale: float) -> float:
    """The power of √2 above the scale and a tenth: code is compiled again only when norms grow past the next one."""
    return 2.0 ** (math.ceil(2 * math.log2(1.1 * max(scale, 0.5))) / 2)


def _fixed_outgoing(outgoing: str | ArrayLike, width: int, outputs: tuple[int, ...]) -> Array | None:
    if isinstance(outgoing, str):
        if outgoing not in ("trained", "fixed"):
            raise ValueError(f"outgoing is 'trained', 'fixed' or the fixed weights themselves; received {outgoing!r}.")
        if outgoing == "trained":
            return None
        outgoing = 1.0
    weights = np.asarray(outgoing, float)
    try:
        weights = np.broadcast_to(weights, (width, *outputs))
    except ValueError:
        raise ValueError(
            f"Fixed outgoing weights must have shape {(width, *outputs)} or be one number; received {weights.shape}."
        ) from None
    if not np.all(np.isfinite(weights)):
        raise ValueError("Fixed outgoing weights must be finite.")
    return jnp.asarray(weights)


def _square_root(covariance: ArrayLike, dim: int) -> Array:
    sigma = np.asarray(covariance, float)
    if sigma.shape != (dim, dim):
        raise ValueError(f"The input covariance must be a {dim} × {dim} matrix; received shape {sigma.shape}.")
    if not np.all(np.isfinite(sigma)) or np.max(np.abs(sigma - sigma.T)) > 1e-12 * np.max(np.abs(sigma)):
        raise ValueError("The input covariance must be finite and symmetric.")
    values, vectors = np.linalg.eigh(sigma)
    if values[0] < -1e-12 * max(values[-1], 0.0) or values[-1] <= 0:
        raise ValueError(
            f"The input covariance must be positive semidefinite; its least eigenvalue is {values[0]:.3g}."
        )
    return jnp.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
