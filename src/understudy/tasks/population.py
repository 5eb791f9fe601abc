"""The population loss of a two-layer student, computed exactly from pairwise Gaussian interactions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from types import ModuleType
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy import activations
from understudy.activations import Activation, Erf, Gelu
from understudy.gaussian import has_closed_form, mixture
from understudy.networks import HiddenLayer, Teacher, TwoLayer
from understudy.tasks import biased, split_terms, trust, unbiased, unbiased_product
from understudy.tasks import population_arguments as arguments
from understudy.tasks import population_forms as forms
from understudy.tasks import population_layout as layout
from understudy.tasks import population_meaning as meaning
from understudy.tasks import population_symmetries as symmetric
from understudy.tasks import starts as drawing
from understudy.tasks.biased import Inputs
from understudy.tasks.exact_form import ExactForm
from understudy.tasks.imitation import Imitation
from understudy.tasks.near_teacher import nearby_teacher
from understudy.tasks.neurons import Described, Neurons, describe_teacher
from understudy.tasks.order_problem import OrderProblem
from understudy.tasks.pairs import LARGE
from understudy.tasks.population_imitation import imitate_teacher
from understudy.tasks.reduction import Reduction, unreduced
from understudy.tasks.span import Span, span_of
from understudy.tasks.split_terms import SplitTerms
from understudy.tasks.straightened import Straightened
from understudy.tasks.structure import Structure
from understudy.tasks.symmetries import Symmetries
from understudy.tasks.task import Evaluation, Task
from understudy.tasks.units import ORDINARY_LENGTH, Units, natural_units

_SHORT = 1e-12
"""Incoming vectors shorter than this, relative to the longest (or to 1, if that is longer), count as zero."""

_LONG = 2.0**1.5
"""Steepness × norm at which Mehler's series has 1,300 terms. Beyond, sums of closed forms are faster."""


class Population(Task):
    r"""L(θ) = E‖f(x) - f*(x)‖², x ~ N(μ, Σ), for a two-layer student f of `width` neurons and a two-layer teacher f*.

    L = Σ_ii' a_i·a_i' G(w_i, w_i') - 2 Σ_ij a_i·b_j G(w_i, v_j) + Σ_jj' b_j·b_j' G(v_j, v_j'), with
    G(p, q) = E[σ(p·x)σ(q·x)] (Simsek et al. 2023, Eq. 5 and 10; no factor ½). Gradient and Hessian are assembled from
    the partials of G, at a cost of O(n²d² + nkd²). The flat parameter vector is θ = (w_1, a_1) ⊕ … ⊕ (w_n, a_n)
    (their Eq. 2). See `tasks.biased` for the loss with biases.

    **Arguments**

    - `teacher`: a `Teacher`; `width`: number n of student neurons.
    - `activation`: the student's activation. Default: the teacher's.
    - `outgoing`: `"trained"`; `"fixed"` for weights 1 (a soft committee machine); or the fixed weights (one number sets
      all of them).
    - `bias`: the student's biases: `"none"`, `"trained"` (together with an offset of the output), or fixed biases (one
      number sets all of them). The teacher may have biases even if the student has none.
    - `mean`, `covariance`: μ and Σ of the inputs; variances alone stand for a diagonal Σ. Default: zero and the
      identity. Under a Σ the flow leaves the span of teachers and students, so such tasks are not reduced.

    With kinked activations (ReLU, abs) the gradient and the Hessian do not exist where a student's incoming vector and
    bias are zero. They are NaN there; see `kinks`.

    >>> task = Population(Teacher.orthonormal(3), width=1)
    >>> round(float(task.loss(TwoLayer([[0.0, 0.0, 0.0]], [0.0]))), 12)
    1.0
    """

    teacher: Teacher
    constant: Float[Array, ""]
    target_mean: Float[Array, " m"]
    fixed_outgoing: Float[Array, " n *m"] | None
    fixed_bias: Float[Array, " n"] | None
    mean: Float[Array, " d"] | None
    root: Float[Array, "d d"] | None
    trains_bias: bool = eqx.field(static=True)
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
        bias: str | ArrayLike = "none",
        mean: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
    ):
        if not isinstance(width, (int, np.integer)) or isinstance(width, bool) or width < 1:
            raise ValueError(f"A student needs a positive whole number of neurons; received width={width!r}.")
        self.teacher, self.width = teacher, int(width)
        self.activation = teacher.activation if activation is None else activations.get(activation)
        self.fixed_outgoing = arguments.fixed_outgoing(outgoing, self.width, teacher.outgoing.shape[1:])
        self.trains_bias, self.fixed_bias = arguments.bias(bias, self.width)
        self.mean = arguments.mean(mean, teacher.dim)
        self.root = None if covariance is None else arguments.square_root(covariance, teacher.dim)
        v = teacher.incoming if self.root is None else teacher.incoming @ self.root
        moves = bool(np.all(np.any(np.asarray(v) != 0, axis=1)))
        if teacher.activation.smoothness == 0 and not moves and teacher.bias is None:
            raise ValueError(
                f"With {teacher.activation.name} every teacher neuron needs inputs of positive variance; under this "
                "covariance one of them has none."
            )
        longest = float(np.max(np.linalg.norm(np.asarray(v), axis=1)))
        self.resolution = _resolution(teacher.activation.steepness * longest, self._any_norm)
        self.target_mean = jnp.asarray(np.zeros(math.prod(self.outputs)))
        if self.biased:
            self.constant, self.target_mean = biased.teacher_moments(
                Inputs(self.mean, self.root), teacher, self.resolution
            )
        else:
            self.constant = unbiased.teacher_energy(teacher, v, self.resolution)

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
    def biased(self) -> bool:
        """Whether student or teacher has biases or an offset, or the inputs have a mean."""
        student, teacher = self.trains_bias or self.fixed_bias is not None, self.teacher
        return student or self.mean is not None or teacher.bias is not None or teacher.offset is not None

    @property
    def size(self) -> int:
        outputs = math.prod(self.outputs)
        per_neuron = self.dim + self.trains_bias + (outputs if self.trains_outgoing else 0)
        return self.width * per_neuron + (outputs if self.trains_bias else 0)

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        """A `TwoLayer`, a pair (incoming, outgoing), a flat vector, or a batch of one of these, as a flat vector."""
        return layout.flatten(self, parameters)

    def unflatten(self, vector: Float[Array, "*batch P"]) -> TwoLayer:
        w, c, a, offset = self.parts(vector)
        c = c if c is None else jnp.broadcast_to(c, w.shape[:-1])
        return TwoLayer(w, jnp.broadcast_to(a, (*w.shape[:-2], *a.shape[-1 - len(self.outputs) :])), c, offset)

    def parts(self, vector: Any) -> tuple[Any, Any, Any, Any]:
        """Incoming weights, biases, outgoing weights and offset of a flat vector; None for parts that do not exist."""
        return layout.parts(self, vector)

    def prepared(self, vectors: Float[Array, "*batch P"] | Float[np.ndarray, "*batch P"]) -> "Population":
        """Choose series and quadrature for the largest norm of these points, with a margin; see `_resolution`."""
        if self.closed_form and not isinstance(self.activation, Erf | Gelu):
            return self
        # In NumPy: outside of compiled code, JAX would compile every operation for every number of points.
        w, _ = layout.weights(self, np.asarray(vectors))
        w = w if self.root is None else w @ np.asarray(self.root)
        largest = float(np.max(np.linalg.norm(w, axis=-1))) * self.activation.steepness
        if self.closed_form:
            return self if largest <= LARGE or self.resolution > LARGE else _changed(self, resolution=2 * LARGE)
        resolution = _resolution(largest, self._any_norm)
        task = self if resolution <= self.resolution else _changed(self, resolution=resolution)
        trust.require(task.activation, task.teacher.activation, task.resolution, task.biased)
        return task

    @property
    def closed_form(self) -> bool:
        """Whether every interaction of this task has a closed form."""
        student, teacher = self.activation, self.teacher.activation
        return all(has_closed_form(student, other, self.biased) for other in (student, teacher))

    @property
    def _any_norm(self) -> bool:
        """Whether sums of closed forms serve all pairs at large norms."""
        pairs = ((self.activation, other) for other in (self.activation, self.teacher.activation))
        return not self.biased and all(mixture.serves(*pair, 1.0) for pair in pairs)

    @property
    def lower_bound(self) -> float:
        """Zero: the loss is a mean square."""
        return 0.0

    def known_minimiser(self, vector: Float[Array, " P"] | np.ndarray) -> Float[np.ndarray, " P"] | None:
        """The point nearby that computes the teacher's function; see `nearby_teacher`."""
        return nearby_teacher(self, vector)

    @property
    def target_scale(self) -> float:
        """E‖f*(x)‖²."""
        if self.teacher.offset is None:
            return float(self.constant)
        offset = self.teacher.offset.reshape(-1)
        return float(self.constant + 2 * offset @ self.target_mean + offset @ offset)

    def natural_lengths(self, vector: Float[Array, " P"] | np.ndarray) -> np.ndarray:
        """The largest incoming and outgoing weight of teachers and students."""
        w, a = (np.asarray(x) for x in layout.weights(self, np.asarray(vector)))
        incoming = max(np.abs(w).max(), np.abs(np.asarray(self.teacher.incoming)).max())
        outgoing = max(np.abs(a).max(), np.abs(np.asarray(self.teacher.outgoing)).max())
        lengths = np.full(self.size, outgoing)
        positions = self.hidden_positions()
        lengths[positions[:, : self.dim + self.trains_bias]] = incoming
        return lengths

    def units(self, vectors: Float[Array, "*batch P"] | np.ndarray | None = None) -> Units:
        """Incoming weights in units of the teacher's, outgoing ones too, biases in units of pre-activations.

        Where an activation saturates (pre-activations of the teacher far above 1), incoming weights are in units of one
        over the size of the inputs.
        """
        inputs = 1.0 if self.root is None else float(np.sqrt(np.mean(np.sum(np.asarray(self.root) ** 2, axis=1))))
        incoming = float(np.abs(np.asarray(self.teacher.incoming)).max(initial=0.0))
        if self.activation.homogeneity is None and incoming * inputs > ORDINARY_LENGTH:
            incoming = 1 / inputs
        lengths = np.full(self.size, float(np.abs(np.asarray(self.teacher.outgoing)).max(initial=0.0)))
        positions = self.hidden_positions()
        lengths[positions[:, : self.dim]] = incoming
        lengths[positions[:, self.dim : self.dim + self.trains_bias]] = incoming * inputs
        return natural_units(lengths, self.target_scale, incoming * inputs)

    def starts(
        self, seeds: int | Sequence[int], init: str = "gaussian", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        """Random students: every weight N(0, init_std²), or Glorot's variances for each layer, in natural units.

        Trained biases are N(0, init_std²), or zero with Glorot's rule; the offset starts at zero.
        """
        w, a = drawing.two_layer(seeds, self.width, self.dim, self.outputs, init, init_std)
        c = drawing.biases(seeds, self.width, init, init_std) if self.trains_bias else None
        return self.units().scale(self.flatten(TwoLayer(w, a, c)))

    def kinks(self, parameters: TwoLayer | ArrayLike) -> list[str]:
        """Name the students with a zero incoming vector and a kinked activation, where the loss has no gradient.

        Elsewhere the loss is twice continuously differentiable, even where two kinked students are parallel. For ReLU
        neurons at an angle φ, G is |p||q|/2 (cos φ + (sin φ - φ cos φ)/π). The first term is p·q/2. The other is
        φ³/3π + O(φ⁵), whose second derivatives vanish at φ = 0 from every side (and likewise at φ = π).
        """
        if self.activation.smoothness > 0:
            return []
        w = np.asarray(self.unflatten(self.flatten(parameters)).incoming)
        if w.ndim != 2:
            raise ValueError(f"kinks looks at one point; received a batch of {len(w)}.")
        norms = np.linalg.norm(w if self.root is None else w @ np.asarray(self.root), axis=1)
        if self.biased:
            seen = biased.shifted(self, jnp.asarray(w), self.parts(self.flatten(parameters))[1])
            norms = np.hypot(norms, np.asarray(seen.means))
        short = np.flatnonzero(norms <= _SHORT * max(norms.max(), self.units().hidden))
        what = "a zero incoming vector and bias" if self.biased else "a zero incoming vector"
        return [f"student {i} has {what}, where the loss has a kink" for i in short]

    def exact_form(self) -> ExactForm:
        return forms.exact_form(self)

    # -- loss, gradient, Hessian ------------------------------------------------------------------------------------

    @property
    def _assembly(self) -> ModuleType:
        """The module that assembles loss and derivatives: `biased` or `unbiased`."""
        return biased if self.biased else unbiased

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self._assembly.value(self, vector)

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        return self._assembly.value_and_gradient(self, vector)

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        return self._assembly.evaluate(self, vector, jnp.float64)

    def evaluate_roughly(self, vector: Float[Array, " P"]) -> Evaluation:
        """`evaluate` in single precision: assembling the Hessian then moves half as much memory."""
        return self._assembly.evaluate(self, vector, jnp.float32)

    def linearised(
        self, vector: Float[Array, " P"]
    ) -> tuple[Float[Array, " P"], Callable[[Float[Array, " P"]], Float[Array, " P"]]]:
        kinked = self.activation.homogeneity is not None or self.teacher.activation.homogeneity is not None
        if self.biased or self.root is not None or kinked:
            return super().linearised(vector)
        return unbiased_product.linearised(self, vector)

    @property
    def hessian_groups(self) -> np.ndarray | None:
        """One group for every input and every output, with a weight of each student."""
        if self.biased or self.root is not None:
            return None
        return self.hidden_positions().T

    def hessian_blocks(self, vector: Float[Array, " P"]) -> Float[Array, "groups b b"]:
        return unbiased.hessian_blocks(self, vector)

    def straight_chart(self, vector: Float[Array, " P"]) -> 'tuple[Task, Float[Array, " P"]]':
        """See `Straightened`. Homogeneous neurons have an exact symmetry instead, and need no other coordinates."""
        if not self.trains_outgoing or self.biased or self.activation.homogeneity is not None:
            return self.chart(vector)
        local = Straightened(self, self.width, self.dim)
        return local, local.coordinates(vector)

    def outside_hessian(self, vector: Float[Array, " P"]) -> Float[Array, "n n"]:
        """The Hessian's block on any direction e orthogonal to every student and teacher: ∂²L/∂(w_i·e)∂(w_j·e).

        It is the same for each such direction and does not couple to anything else, so in dimension d it occurs
        d - rank(students, teachers) times. Isotropic inputs only.
        """
        return self._assembly.outside_hessian(self, vector)

    def outside_symmetries(self, vector: Float[Array, " P"]) -> int:
        """Rank of the students' components outside the teachers' span: each can rotate into a further direction."""
        return symmetric.outside_symmetries(self, vector)

    def symmetry_tangents(self, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
        """Rescalings of each neuron (homogeneous activations) and rotations of directions that no teacher uses."""
        return symmetric.tangents(self, vector)

    def symmetries(self) -> Symmetries:
        """Permutations and flips of students, and orthogonal maps of the inputs that keep the teacher."""
        return symmetric.symmetries(self, self._neurons_at(np.zeros(self.size)))

    def balanced(self, vector: Float[Array, " P"]) -> Float[Array, " P"]:
        """For homogeneous activations: incoming and outgoing weights of each neuron have the same norm.

        Neurons that are off get incoming vectors as long as the teachers'.
        """
        return symmetric.balanced(self, vector)

    def euler_characteristic(self) -> tuple[int | None, str]:
        """1 where the loss grows beyond all bounds in every direction: softplus students with fixed outgoing weights.

        With outgoing weights of one sign nothing cancels, E f² ≥ E (a_i σ(w_i·x))², and this grows like ‖w_i‖².
        """
        if self.trains_outgoing:
            return None, "with trained outgoing weights the loss does not grow along every ray"
        if self.fixed_bias is not None or self.trains_bias or self.root is not None:
            return None, "with biases or a covariance the growth of the loss is not known"
        outgoing = np.asarray(self.fixed_outgoing)
        one_sign = outgoing.ndim == 1 and bool(np.all(outgoing > 0) or np.all(outgoing < 0))
        if not (self.activation.name.startswith("softplus") and one_sign):
            return None, f"the loss of fixed {self.activation.name} students is not known to grow in every direction"
        return 1, "the loss grows in every direction (softplus, outgoing weights of one sign) of a flat space"

    # -- reduction ----------------------------------------------------------------------------------------------------

    def reduce(self, vectors: Float[Array, "*batch P"]) -> Reduction:
        """The same problem in the span of teachers and students; see `in_span`."""
        if not self.reducible:
            return unreduced(self, vectors)
        small, network, span = self.in_span(self.unflatten(vectors))

        def lift(vector: Any, position: int | None = None) -> Float[Array, " P"]:
            inside = small.unflatten(jnp.asarray(vector))
            incoming = span.lift(inside.incoming, position)
            return self.flatten(TwoLayer(incoming, inside.outgoing, inside.bias, inside.offset))

        return Reduction(small, small.flatten(network), lift, self.dim - small.dim)

    def in_span(self, parameters: TwoLayer) -> "tuple[Population, TwoLayer, Span]":
        """The same problem in the span of teachers and students: (task, parameters, the span).

        Gradient flow never leaves span(v_1…v_k, w_1(0)…w_n(0)), together with the mean of the inputs if there is one.
        So dimension r = min(d, n + k) is enough (one more with a mean). `span.lift` maps back. Teacher coordinates come
        first and are the same for a whole batch. A covariance other than the identity mixes directions, so such tasks
        are not reduced.
        """
        w = np.asarray(parameters.incoming)
        if not self.reducible:
            batch = w.shape[:-2]
            empty = (np.zeros((*batch, 0, size)) for size in (self.dim, 0, self.dim))
            return self, parameters, Span(np.eye(self.dim), *empty)
        k, old = self.teacher.width, self.teacher
        span, own, coordinates = span_of(symmetric.fixed_directions(self), w)
        own = np.pad(own, ((0, 0), (0, self.width)))
        teacher = Teacher(own[:k], old.outgoing, old.activation, old.bias, old.offset)
        task = eqx.tree_at(lambda t: t.teacher, self, teacher)
        if self.mean is not None:
            task = eqx.tree_at(lambda t: t.mean, task, jnp.asarray(own[k]))
        return task, TwoLayer(jnp.asarray(coordinates), parameters.outgoing, parameters.bias, parameters.offset), span

    def order_problem(self) -> OrderProblem:
        return forms.order_problem(self)

    @property
    def reducible(self) -> bool:
        """Whether the inputs are isotropic and have more dimensions than the span of teachers and students."""
        return self.root is None and self.dim > self.width + self.teacher.width + (self.mean is not None)

    # -- meaning ------------------------------------------------------------------------------------------------------

    def structure(self, parameters: TwoLayer | ArrayLike) -> Structure:
        """What each student copies or averages; see `read_structure`."""
        return meaning.structure(self, parameters)

    def neurons(self, vector: Float[Array, " P"] | np.ndarray) -> Neurons | None:
        """The point as a two-layer network. A trained bias counts as one more incoming weight.

        None if fixed biases differ between neurons.
        """
        if self.fixed_bias is not None and np.ptp(np.asarray(self.fixed_bias)) > 0:
            return None
        return self._neurons_at(np.asarray(vector))

    def _neurons_at(self, vector: np.ndarray) -> Neurons:
        a = np.asarray(layout.weights(self, vector)[1])
        wide = layout.rows(self, vector)[:, : self.dim + self.trains_bias]
        bias = 0.0 if self.fixed_bias is None else float(np.asarray(self.fixed_bias)[0])
        return Neurons(wide, a.reshape(self.width, -1), self.hidden_positions(), self.activation, bias)

    def about(self) -> dict[str, int | float | str]:
        own = {} if self.activation == self.teacher.activation else {"teacher_activation": self.teacher.activation.name}
        sizes = {"students": self.width, "teachers": self.teacher.width, "dim": self.dim}
        return {"activation": self.activation.name, **own, **sizes}

    def givens(self) -> Described:
        mean: Described = {} if self.mean is None else {"mean": (("dim",), np.asarray(self.mean))}
        return describe_teacher(self.teacher, self.root) | mean

    def describe(self, vectors: np.ndarray) -> Described:
        return meaning.describe(self, vectors)

    def function_distance(self, first: TwoLayer, second: TwoLayer) -> float:
        """E‖f(x) - g(x)‖² of two students of any widths."""
        other = Teacher(second.incoming, second.outgoing, self.activation, second.bias, second.offset)
        plain = first.bias is None and first.offset is None
        return float(self._like(other, first.width, "none" if plain else "trained").loss(first))

    def for_network(self, network: object) -> "Population | None":
        """The same teacher and inputs for a `TwoLayer` of another width; None for other networks or fixed weights."""
        known = isinstance(network, TwoLayer) and self.trains_outgoing and self.fixed_bias is None
        bias = "trained" if self.trains_bias else "none"
        return self._like(self.teacher, network.width, bias) if known else None  # type: ignore[attr-defined]

    def with_hidden_layer(
        self, parameters: Any, hidden: HiddenLayer, layer: int = 0
    ) -> 'tuple[Population, Float[Array, " P"]]':
        network = self.unflatten(self.flatten(parameters)).with_hidden(hidden, layer)
        fixed = None if self.trains_outgoing else network.outgoing
        bias = None if self.fixed_bias is None else network.bias
        task = _changed(self, width=network.width, fixed_outgoing=fixed, fixed_bias=bias)
        return task, task.flatten(network)

    def hidden_positions(self, layer: int = 0) -> np.ndarray:
        return layout.rows(self, np.arange(self.size))

    def imitation(self, teacher: Any = None, layer: int = 0) -> Imitation:
        return imitate_teacher(self, teacher, layer)

    def _like(self, teacher: Teacher, width: int, bias: str) -> "Population":
        covariance = None if self.root is None else self.root @ self.root
        sigma = self.activation
        return Population(teacher, width, activation=sigma, bias=bias, mean=self.mean, covariance=covariance)

    def split_terms(self, parameters: TwoLayer | ArrayLike, neuron: int, layer: int = 0) -> SplitTerms:
        split_terms.check(neuron, [self.width], layer)
        vector = self.flatten(parameters)
        if self.biased:
            y, v = biased.split_terms(self.prepared(vector), vector, jnp.asarray(neuron))
        else:
            y, v = split_terms.of_population(self.prepared(vector), self.unflatten(vector), jnp.asarray(neuron))
        return SplitTerms(np.asarray(y), np.asarray(v) if self.trains_outgoing else np.zeros((len(y), 0)))

    def softened(self, noise: float) -> Task:
        """The task with kinks at zero incoming vectors rounded off (kinked activations, no biases); see `Softened`."""
        from understudy.tasks.softened import soften  # that module imports this one

        return self if self.activation.smoothness > 0 or self.biased else soften(self, noise)


def _changed(task: Population, **changes: Any) -> Population:
    """The task with other fields; `eqx.tree_at` cannot replace static ones."""
    copy = object.__new__(Population)
    for item in fields(Population):
        object.__setattr__(copy, item.name, changes.get(item.name, getattr(task, item.name)))
    return copy


def _resolution(scale: float, any_norm: bool) -> float:
    """The least power of √2 above 1.1 times the scale, so that code is compiled again only when norms exceed it.

    Where sums of closed forms serve `any_norm`, one resolution is for all norms that would make series long.
    """
    if any_norm and _LONG < 1.1 * scale <= mixture.LARGEST_SCALE:
        return mixture.LARGEST_SCALE
    return 2.0 ** (math.ceil(2 * math.log2(1.1 * max(scale, 0.5))) / 2)
