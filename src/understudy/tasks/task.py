"""The one contract of every task: a loss of a flat vector of trained parameters, and what is known about it.

Fitting, dynamics, certificates and results use nothing else. They never ask what kind of task they have: they only call
the methods of `Task`. A task must define `size`, `flatten`, `unflatten` and `value`. Every other method has a safe
default ("no structure known", "no lower bound"). A task overrides the methods for which it knows more.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.networks.hidden import HiddenLayer, hidden_of, split_layout
from understudy.tasks import starts as drawing
from understudy.tasks.exact_form import ExactForm, NoExactFormError
from understudy.tasks.imitation import Imitation
from understudy.tasks.neurons import Described, Neurons
from understudy.tasks.order_problem import OrderProblem
from understudy.tasks.reduction import Reduction, unreduced
from understudy.tasks.split_terms import SplitTerms
from understudy.tasks.structure import Structure
from understudy.tasks.symmetries import Symmetries, of_students
from understudy.tasks.units import Units, units_from_starts
from understudy.tasks.zero_neurons import ZeroNeurons


class Evaluation(NamedTuple):
    """Loss, gradient and Hessian at one point."""

    loss: Float[Array, ""]
    gradient: Float[Array, " P"]
    hessian: Float[Array, "P P"]


class Task(eqx.Module):
    """A loss to minimise. Subclasses define `flatten`, `unflatten`, `size` and `value`, and closed forms if known."""

    # -- parameters ---------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number P of trained parameters."""
        raise NotImplementedError

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        """Trained parameters as a flat vector; a flat vector is returned unchanged."""
        raise NotImplementedError

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Any:
        """The inverse of `flatten`."""
        raise NotImplementedError

    def starts(
        self, seeds: int | Sequence[int], init: str = "gaussian", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        """Random starts as flat vectors, one per seed: `"gaussian"` (standard deviation `init_std`) or `"glorot"`.

        A seed gives the same start whatever the other seeds are.
        """
        drawing.check_init(init, init_std)
        if init == "glorot":
            raise ValueError(
                f"Glorot's rule needs layers, and {type(self).__name__} knows none. Use init='gaussian', or pass init= "
                "a batch of parameters."
            )
        return jnp.asarray(drawing.gaussian(seeds, self.size, init_std))

    # -- loss and derivatives -----------------------------------------------------------------------------------------

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        """The loss at a flat vector, traceable."""
        raise NotImplementedError

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        """Loss and gradient at a flat vector, traceable."""
        return jax.value_and_grad(self.value)(vector)

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        """Loss, gradient and Hessian at a flat vector, traceable."""
        loss, gradient = self.value_and_gradient(vector)
        return Evaluation(loss, gradient, jax.jacfwd(lambda v: self.value_and_gradient(v)[1])(vector))

    def evaluate_roughly(self, vector: Float[Array, " P"]) -> Evaluation:
        """`evaluate` with the Hessian in single precision, for methods that correct its errors by exact gradients."""
        loss, gradient, hessian = self.evaluate(vector)
        return Evaluation(loss, gradient, hessian.astype(jnp.float32))

    def hessian_product(self, vector: Float[Array, " P"], direction: Float[Array, " P"]) -> Float[Array, " P"]:
        """H(θ) v without the Hessian, exact, traceable."""
        return self.linearised(vector)[1](direction)

    def linearised(
        self, vector: Float[Array, " P"]
    ) -> tuple[Float[Array, " P"], Callable[[Float[Array, " P"]], Float[Array, " P"]]]:
        """The gradient at a point, and the function v ↦ H(θ) v for many products there, traceable.

        By forward differentiation of the gradient, unless a task knows better.
        """
        return jax.linearize(lambda v: self.value_and_gradient(v)[1], vector)

    @property
    def hessian_groups(self) -> np.ndarray | None:
        """A partition of the parameters into equal groups (groups, b) for `hessian_blocks`, or None if it knows
        none."""
        return None

    def hessian_blocks(self, vector: Float[Array, " P"]) -> Float[Array, "groups b b"]:
        """The diagonal blocks of the Hessian on `hessian_groups`, traceable, at about the cost of a gradient.

        They precondition the solves with Hessian products of large problems.
        """
        raise NotImplementedError

    def prepared(self, vectors: Float[Array, "*batch P"] | Float[np.ndarray, "*batch P"]) -> "Task":
        """The same task, prepared to be accurate at and around these points (quadrature chooses its nodes here)."""
        return self

    @property
    def closed_form(self) -> bool:
        """Whether loss and derivatives are exact to rounding, without truncated series or quadrature."""
        return True

    def nodes_at(self, norm: float) -> int:
        """About how many inputs one evaluation sums over where students have this norm; 0 if it sums over none."""
        return 0

    @property
    def lower_bound(self) -> float:
        """A lower bound of the loss that holds everywhere, or -inf if none is known."""
        return -np.inf

    def known_minimiser(self, vector: Float[Array, " P"] | np.ndarray) -> Float[np.ndarray, " P"] | None:
        """A point nearby whose weights show that its loss is the lower bound, or None if none is known."""
        return None

    @property
    def target_scale(self) -> float:
        """The natural size of the loss: E‖y‖² if there are targets y (the loss of predicting zero), otherwise 1."""
        return 1.0

    def natural_lengths(self, vector: Float[Array, " P"] | np.ndarray) -> np.ndarray | None:
        """The natural size of each parameter (P,), or None if unknown. Certificates use these sizes as units."""
        return None

    def units(self, vectors: Float[Array, "*batch P"] | np.ndarray) -> Units:
        """Natural units of parameters and loss, for runs from these starts; see `tasks.units`.

        By default the loss is measured at the starts. Tasks that know their targets and inputs do not depend on them.
        """
        return units_from_starts(self, vectors)

    # -- coordinates --------------------------------------------------------------------------------------------------

    @property
    def is_flat(self) -> bool:
        """Whether the parameter space is flat, so that the task is its own chart everywhere."""
        return type(self).chart is Task.chart

    def chart(self, vector: Float[Array, " P"]) -> 'tuple[Task, Float[Array, " Q"]]':
        """The task in coordinates around a point, and the coordinates of the point; traceable.

        Flow, Newton's method and certificates work in these coordinates. In a flat parameter space they are the
        parameters themselves. On a curved space they are tangent coordinates (see `Sphere`), `point` maps back, and
        `slope` differs from the gradient.
        """
        return self, vector

    def straight_chart(self, vector: Float[Array, " P"]) -> 'tuple[Task, Float[Array, " Q"]]':
        """A chart in which valleys of the loss are straighter, and the coordinates of the point; traceable.

        It is for arguments that hold in any coordinates (see `dynamics.jump`); the flow itself depends on coordinates.
        """
        return self.chart(vector)

    def point(self, local: Float[Array, " Q"]) -> Float[Array, " P"]:
        """The parameters at the given coordinates of a chart."""
        return local

    def retract(self, vector: Float[Array, " P"], step: Float[Array, " P"]) -> Float[Array, " P"]:
        """The point after a step in flat parameters: θ + step, projected back onto a curved parameter space."""
        return vector + step

    def slope(self, local: Float[Array, " Q"]) -> Float[Array, " Q"]:
        """-dq/dt along the gradient flow, in the coordinates q of a chart."""
        return self.value_and_gradient(local)[1]

    # -- symmetry and reduction ---------------------------------------------------------------------------------------

    def symmetry_tangents(self, vector: Float[Array, " P"]) -> Float[Array, "q P"]:
        """Directions in which a continuous symmetry moves the parameters without changing the loss, traceable."""
        return jnp.zeros((0, self.size))

    def symmetries(self) -> Symmetries | None:
        """The discrete symmetries, or None if none are known; by default permutations and flips of hidden neurons."""
        neurons = self.neurons(np.zeros(self.size))
        return None if neurons is None else of_students(neurons)

    def balanced(self, vector: Float[Array, " P"]) -> Float[Array, " P"]:
        """The image of a point under rescalings that keep the function, chosen so that equal points have equal images.

        Traceable. By default the point itself.
        """
        return vector

    def euler_characteristic(self) -> tuple[int | None, str]:
        """Σ (-1)^index over all critical points, by Morse theory, and the reason; None, and why, if it is not known.

        It needs a loss that grows beyond all bounds at infinity, or a compact parameter space.
        """
        return None, f"nothing is known about the loss of {type(self).__name__} at infinity"

    def reduce(self, vectors: Float[Array, "*batch P"]) -> Reduction:
        """The same problem in fewer parameters, if one is known; see `Reduction`."""
        return unreduced(self, vectors)

    def outside_hessian(self, vector: Float[Array, " P"]) -> Float[Array, "n n"]:
        """The Hessian's block on each direction that `reduce` leaves out, traceable; empty if it leaves out none."""
        return jnp.zeros((0, 0))

    def outside_symmetries(self, vector: Float[Array, " P"]) -> int:
        """How many zero modes of each block of `outside_hessian` belong to continuous symmetries."""
        return 0

    # -- kinks --------------------------------------------------------------------------------------------------------

    @property
    def kinked(self) -> bool:
        """Whether the loss is smooth except for |z| of known functions z of the parameters; see `hidden_values`."""
        return False

    def hidden_values(self, vector: Float[Array, " P"]) -> Float[Array, " H"]:
        """The functions z of the parameters at whose zeros the loss has kinks, traceable."""
        return jnp.zeros(0)

    def gated_value(
        self, vector: Float[Array, " P"], gates: Float[Array, " H"], offsets: Float[Array, " H"]
    ) -> Float[Array, ""]:
        """The loss with every |z| replaced by s·z + e. It is smooth, and equals the loss for s = sign z and e = 0."""
        return self.value(vector)

    def gated_hidden(self, vector: Float[Array, " P"], gates: Float[Array, " H"]) -> Float[Array, " H"]:
        """The z of the gated loss."""
        return self.hidden_values(vector)

    def smoothed_value(self, vector: Float[Array, " P"], width: float | Float[Array, ""]) -> Float[Array, ""]:
        """The loss with every |z| replaced by √(z² + width²)."""
        return self.value(vector)

    def dead(self, vector: Float[Array, " P"]) -> tuple[np.ndarray, np.ndarray]:
        """Masks over parameters (P,) and over the z (H,) of neurons that contribute nothing."""
        return np.zeros(self.size, bool), np.zeros(np.shape(self.hidden_values(vector)), bool)

    def zero_neurons(self, vector: Float[Array, " P"] | np.ndarray) -> ZeroNeurons | None:
        """Neurons without any weight on which only a penalty acts, or None if there are none or this is unknown."""
        return None

    def kinks(self, parameters: Any) -> list[str]:
        """Reasons, in words, why the loss has no gradient or no Hessian at a point; empty if it has both."""
        if not self.kinked:
            return []
        hidden = np.abs(np.asarray(self.hidden_values(self.flatten(parameters))))
        zero = int(np.sum(hidden <= ON_KINK * max(hidden.max(initial=0.0), 1e-300)))
        return [f"{zero} hidden pre-activations are zero, where the loss has kinks: see settle"] if zero else []

    def kink_distance(self, vector: Float[Array, " P"] | np.ndarray) -> float:
        """Distance to the nearest kink, to first order, or inf where none is known."""
        if not self.kinked:
            return np.inf
        hidden, lengths = (np.asarray(x) for x in _hidden_and_slopes(self, jnp.asarray(vector)))
        return float(np.min(np.abs(hidden) / np.maximum(lengths, 1e-300), initial=np.inf))

    def softened(self, noise: float) -> "Task":
        """This task for integrators: kinks that the flow would run into are rounded off at the scale `noise`."""
        from understudy.tasks.smoothed import Smoothed  # that module imports this one

        return Smoothed(self, noise) if self.kinked else self

    def order_problem(self) -> OrderProblem:
        """The task in overlaps of students and teachers, for the equations of one-pass SGD; see `understudy.online`."""
        raise ValueError(
            "Order-parameter equations exist for two-layer students and teachers under isotropic Gaussian inputs; "
            f"received a {type(self).__name__} task. Use understudy.Population."
        )

    # -- meaning ------------------------------------------------------------------------------------------------------

    def structure(self, parameters: Any) -> Structure:
        """What each neuron of a point does. By default nothing is known, and the label is empty."""
        return Structure("", (), 0.0)

    def neurons(self, vector: Float[Array, " P"] | np.ndarray) -> Neurons | None:
        """The point as a two-layer network, if it is one."""
        return None

    def about(self) -> dict[str, int | float | str]:
        """A short description of the task, for titles of tables and attributes of stored results."""
        return {}

    def givens(self) -> Described:
        """Named arrays that define the task, such as `teacher_incoming`, to be stored with its results."""
        return {}

    def describe(self, vectors: np.ndarray) -> Described:
        """Named arrays to store for a batch of points (weights, norms, correlations); rows of NaN are allowed."""
        return {}

    def function_distance(self, first: Any, second: Any) -> float:
        """E‖f(x) - g(x)‖² of the functions at two parameter vectors; ‖θ - θ'‖² if the task has no such functions."""
        gap = np.asarray(self.flatten(first)) - np.asarray(self.flatten(second))
        return float(gap @ gap)

    def for_network(self, network: Any) -> "Task | None":
        """The same inputs, targets and cost for another network, or None if that is not possible."""
        return None

    # -- surgery ------------------------------------------------------------------------------------------------------

    def hidden_layer(self, parameters: Any, layer: int = 0) -> HiddenLayer:
        """The neurons of one hidden layer. Raises `TypeError` if the parameters are not a network with hidden
        layers."""
        try:
            return hidden_of(self.unflatten(self.flatten(parameters)), layer)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__} has no hidden neurons to work on. {error}") from None

    def with_hidden_layer(
        self, parameters: Any, hidden: HiddenLayer, layer: int = 0
    ) -> 'tuple[Task, Float[Array, " P"]]':
        """The task for networks with these neurons in one hidden layer, and the point that has them.

        Outgoing weights and biases that the task does not train become those of the new neurons.
        """
        network = self.unflatten(self.flatten(parameters)).with_hidden(hidden, layer)
        task = self.for_network(network)
        if task is None:
            raise TypeError(f"{type(self).__name__} has no counterpart for a network of another width.")
        return task, task.flatten(network)

    def split(
        self, parameters: Any, parts: Mapping[int, Sequence[float]], layer: int = 0
    ) -> 'tuple[Task, Float[Array, " P"]]':
        """The wider task and the point whose neurons are split into `parts`; see `surgery.split_point`."""
        hidden = self.hidden_layer(parameters, layer)
        return self.with_hidden_layer(parameters, hidden.take(*split_layout(hidden.width, parts)), layer)

    def hidden_positions(self, layer: int = 0) -> np.ndarray:
        """Positions (n, q) of the trained weights of each neuron of a hidden layer in the flat vector."""
        hidden = self.hidden_layer(jnp.arange(self.size, dtype=float), layer)
        return np.concatenate([hidden.rows, np.asarray(hidden.outgoing)], axis=1).astype(int)

    def split_terms(self, parameters: Any, neuron: int, layer: int = 0) -> SplitTerms:
        """Y (q, q) and V (q, m) of one hidden neuron, from which the inertia of its splits follows.

        Y = ⟨σ''(w·x) xxᵀ a·c'⟩ and V = ⟨σ'(w·x) x c'ᵀ⟩; see `points.splitting`.
        """
        raise TypeError(
            f"{type(self).__name__} has no known curvature of splits: only two-layer, Deep and Regularised networks "
            "have one."
        )

    def imitation(self, teacher: Any = None, layer: int = 0) -> Imitation:
        """What a warm start needs: the neurons of a wider layer, and averages of products of neurons.

        `teacher` is the wider network, for tasks that do not have a teacher of their own.
        """
        raise TypeError(
            f"{type(self).__name__} has no neurons that could imitate those of a wider network. Warm starts exist "
            "for Population, Sphere, Regularised, and Empirical tasks with TwoLayer or Deep networks."
        )

    def exact_form(self) -> ExactForm:
        """The loss in exact terms, for `understudy.proofs`. NoExactFormError says why a task has none."""
        raise NoExactFormError(
            f"{type(self).__name__} has no exact form: proofs are for the population losses of named activations."
        )

    # -- outside compiled code ----------------------------------------------------------------------------------------

    def loss(self, parameters: Any) -> Float[Array, "*batch"]:
        """The loss at `parameters`; a batch of parameters gives a batch of losses."""
        vector = self.flatten(parameters)
        return _batched(_loss, self.prepared(vector), vector)

    def gradient(self, parameters: Any) -> Float[Array, "*batch P"]:
        """The gradient with respect to the flat vector of trained parameters; see `unflatten`."""
        vector = self.flatten(parameters)
        return _batched(_gradient, self.prepared(vector), vector)

    def hessian(self, parameters: Any) -> Float[Array, "*batch P P"]:
        """The Hessian, symmetric P × P, in the order of `flatten`."""
        vector = self.flatten(parameters)
        _check_dense(self.size)
        return _batched(_hessian, self.prepared(vector), vector)


ON_KINK = 1e-12
"""A z is zero up to this share of the largest one: rounding, with a reserve."""

DENSE_LIMIT = 12_000
"""Largest P for which a dense Hessian is built (1.2 GB); beyond it, reduce the task or go matrix-free."""


def _check_dense(size: int) -> None:
    if size > DENSE_LIMIT:
        raise ValueError(
            f"A dense Hessian of {size} parameters would take {size**2 * 8 / 1e9:.0f} GB. Use task.hessian_product, or "
            "task.reduce(vector): Population tasks reduce to dimension width + teacher width without loss."
        )


def _batched(function: Any, task: Task, vector: Array) -> Array:
    return function(task, vector) if vector.ndim == 1 else jax.vmap(function, in_axes=(None, 0))(task, vector)


@eqx.filter_jit
def _loss(task: Task, vector: Array) -> Array:
    return task.value(vector)


@eqx.filter_jit
def _gradient(task: Task, vector: Array) -> Array:
    return task.value_and_gradient(vector)[1]


@eqx.filter_jit
def _hessian(task: Task, vector: Array) -> Array:
    return task.evaluate(vector).hessian


@eqx.filter_jit
def _hidden_and_slopes(task: Task, vector: Array) -> tuple[Array, Array]:
    """The z, and the norms of their gradients, without their whole Jacobian."""

    def along(direction: Array) -> Array:
        return jax.jvp(task.hidden_values, (vector,), (direction,))[1] ** 2

    squares = jax.lax.map(along, jnp.eye(vector.shape[0]), batch_size=32)
    return task.hidden_values(vector), jnp.sqrt(jnp.sum(squares, axis=0))


def checked_task(value: Any, name: str) -> Task:
    """The value, if it is a task; `TypeError` names what was received.

    **Arguments**

    - `name`: what the value is, for the message.
    """
    if not isinstance(value, Task):
        raise TypeError(f"A task is needed: {name} is of type {type(value).__name__}. See us.Task and us.Loss.")
    return value
