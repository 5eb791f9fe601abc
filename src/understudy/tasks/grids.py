"""Gaussian inputs in few dimensions as weighted samples: an `Empirical` task for the population loss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy import activations
from understudy.activations import Activation
from understudy.networks import HiddenLayer, Teacher, TwoLayer
from understudy.tasks.empirical import Empirical
from understudy.tasks.imitation import Imitation
from understudy.tasks.neurons import Described, Neurons, describe_teacher
from understudy.tasks.population import Population
from understudy.tasks.split_terms import SplitTerms
from understudy.tasks.structure import Structure
from understudy.tasks.symmetries import Symmetries, turns_of_teacher
from understudy.tasks.task import Evaluation, Task
from understudy.tasks.units import Units

LARGEST_DIM = 3
"""In more dimensions a grid has millions of nodes; use `Population`."""

_RADIUS = 8.0
"""Nodes farther out carry less than exp(-32) ≈ 1e-14 of the weight."""


def gaussian_grid(dim: int, spacing: float = 0.5, radius: float = _RADIUS) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (N, dim) and weights (N,) with Σ weight·F(node) ≈ E[F(x)], x ~ N(0, I): a square lattice in a ball.

    The lattice sum of an analytic function converges exponentially in 1/spacing. If F(x) depends on w·x with ‖w‖ = r
    through a function whose nearest singularity is at a distance δ r from the real line, the error is about exp(-2πδ/h
    + δ²/2) for δ ≤ 2π/h, and exp(-2π²/h²) at best (Trefethen and Weideman 2014, "The exponentially convergent
    trapezoidal rule", Section 5): with h = ½, softplus and norms up to 1, 1.5, 2 that is 1e-15, 3e-11, 1e-8.

    >>> nodes, weights = gaussian_grid(1)
    >>> round(float(weights @ nodes[:, 0] ** 4), 10)
    3.0
    """
    if not 1 <= dim <= LARGEST_DIM:
        raise ValueError(f"A grid is for 1 to {LARGEST_DIM} dimensions; received dim={dim}. Use a Population task.")
    if not (spacing > 0 and radius > spacing):
        raise ValueError(f"A grid needs radius > spacing > 0; received spacing={spacing!r}, radius={radius!r}.")
    half = math.ceil(radius / spacing)
    axis = spacing * (np.arange(-half, half) + 0.5)
    nodes = np.array(list(itertools.product(*[axis] * dim)))
    nodes = nodes[np.sum(nodes**2, axis=1) <= radius**2]
    weights = np.exp(-np.sum(nodes**2, axis=1) / 2) * (spacing / math.sqrt(2 * math.pi)) ** dim
    return nodes, weights / weights.sum()


class Grid(Task):
    """The population loss in up to three dimensions as a weighted sum over a lattice; made by `on_grid`.

    `samples` is that sum. Unless the spacing was given, the lattice is chosen for the largest norm (`prepared`). A run
    whose neurons become steep continues with a finer lattice.
    """

    teacher: Teacher
    samples: Empirical
    width: int = eqx.field(static=True)
    spacing: float = eqx.field(static=True)
    fixed: bool = eqx.field(static=True)

    def __init__(self, teacher: Teacher, width: int, activation: str | Activation | None, spacing: float, fixed: bool):
        nodes, weights = gaussian_grid(teacher.dim, spacing)
        targets = np.asarray(teacher.network(jnp.asarray(nodes), teacher.activation))
        example = TwoLayer(np.zeros((width, teacher.dim)), np.zeros((width, *teacher.outgoing.shape[1:])))
        self.samples = Empirical(example, nodes, targets, activation=activation or teacher.activation, weights=weights)
        self.teacher, self.width, self.spacing, self.fixed = teacher, width, spacing, fixed

    @property
    def size(self) -> int:
        return self.samples.size

    @property
    def inputs(self) -> Array:
        """The nodes of the lattice."""
        return self.samples.inputs

    @property
    def targets(self) -> Array:
        """The teacher's outputs at the nodes."""
        return self.samples.targets

    @property
    def weights(self) -> Array:
        """The weights of the nodes."""
        return self.samples.weights

    @property
    def activation(self) -> Activation:
        """The students' activation."""
        return self.samples.activation

    def flatten(self, parameters: Any) -> Float[Array, "*batch P"]:
        return self.samples.flatten(parameters)

    def unflatten(self, vector: Float[Array, "*batch P"]) -> TwoLayer:
        return self.samples.unflatten(vector)

    def starts(
        self, seeds: int | Sequence[int], init: str = "gaussian", init_std: float = 0.1
    ) -> Float[Array, "seeds P"]:
        return self.samples.starts(seeds, init, init_std)

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        return self.samples.value(vector)

    def value_and_gradient(self, vector: Float[Array, " P"]) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        return self.samples.value_and_gradient(vector)

    def evaluate(self, vector: Float[Array, " P"]) -> Evaluation:
        return self.samples.evaluate(vector)

    def prepared(self, vectors: Float[Array, "*batch P"] | Float[np.ndarray, "*batch P"]) -> Grid:
        """The same loss on a lattice fine enough for these students."""
        if self.fixed:
            return self
        rows = np.asarray(vectors)[..., : self.width * self.teacher.dim].reshape(-1, self.teacher.dim)
        largest = float(np.max(np.linalg.norm(rows, axis=1))) * self.activation.steepness
        needed = _spacing_for(largest)
        return self if needed >= self.spacing else Grid(self.teacher, self.width, self.activation, needed, False)

    @property
    def closed_form(self) -> bool:
        return False

    def nodes_at(self, norm: float) -> int:
        spacing = self.spacing if self.fixed else min(self.spacing, _spacing_for(norm * self.activation.steepness))
        ball = math.pi ** (self.teacher.dim / 2) / math.gamma(self.teacher.dim / 2 + 1)
        return math.ceil(ball * (_RADIUS / spacing) ** self.teacher.dim)

    @property
    def lower_bound(self) -> float:
        return self.samples.lower_bound

    @property
    def target_scale(self) -> float:
        return self.samples.target_scale

    def units(self, vectors: Float[Array, "*batch P"] | np.ndarray) -> Units:
        return self.samples.units(vectors)

    # Kinks on the nodes belong to the lattice, not to the population loss. But the loss on the lattice is minimised.

    @property
    def kinked(self) -> bool:
        return self.samples.kinked

    def hidden_values(self, vector: Float[Array, " P"]) -> Float[Array, " H"]:
        return self.samples.hidden_values(vector)

    def gated_value(
        self, vector: Float[Array, " P"], gates: Float[Array, " H"], offsets: Float[Array, " H"]
    ) -> Float[Array, ""]:
        return self.samples.gated_value(vector, gates, offsets)

    def gated_hidden(self, vector: Float[Array, " P"], gates: Float[Array, " H"]) -> Float[Array, " H"]:
        return self.samples.gated_hidden(vector, gates)

    def smoothed_value(self, vector: Float[Array, " P"], width: float | Float[Array, ""]) -> Float[Array, ""]:
        return self.samples.smoothed_value(vector, width)

    def structure(self, parameters: Any) -> Structure:
        """As under the population loss; see `Population.structure`."""
        network = self.unflatten(self.flatten(parameters))
        return Population(self.teacher, self.width, activation=self.activation).structure(network)

    def neurons(self, vector: Float[Array, " P"] | np.ndarray) -> Neurons | None:
        return self.samples.neurons(vector)

    def symmetries(self) -> Symmetries | None:
        """As under the population loss, to the accuracy of the lattice."""
        students = self.samples.symmetries()
        turns, beyond = turns_of_teacher(self.teacher)
        return None if students is None else replace(students, turns=turns, beyond=beyond)

    def givens(self) -> Described:
        return describe_teacher(self.teacher)

    def describe(self, vectors: np.ndarray) -> Described:
        return self.samples.describe(vectors, self.teacher)

    def function_distance(self, first: Any, second: Any) -> float:
        return self.samples.function_distance(first, second)

    def for_network(self, network: Any) -> Task:
        return self.samples.for_network(network)

    def with_hidden_layer(
        self, parameters: Any, hidden: HiddenLayer, layer: int = 0
    ) -> tuple[Task, Float[Array, " P"]]:
        task = Grid(self.teacher, hidden.width, self.activation, self.spacing, self.fixed)
        return task, task.flatten(self.unflatten(self.flatten(parameters)).with_hidden(hidden, layer))

    def split_terms(self, parameters: Any, neuron: int, layer: int = 0) -> SplitTerms:
        return self.samples.split_terms(parameters, neuron, layer)

    def imitation(self, teacher: Any = None, layer: int = 0) -> Imitation:
        """As under the population loss."""
        return Population(self.teacher, self.width, activation=self.activation).imitation(teacher, layer)


def on_grid(
    teacher: Teacher, width: int, *, activation: str | Activation | None = None, spacing: float | None = None
) -> Grid:
    """E[(f(x) - f*(x))²] for x ~ N(0, I) in up to three dimensions, by quadrature on `gaussian_grid`.

    This is faster than `Population` for activations without closed forms. It is also more exact where the loss is
    small, because it sums the residual and not differences of interactions. The spacing follows the students' norms
    unless it is given. Kinked activations need a given spacing, and converge only like its square.

    >>> teacher = Teacher.angular([0.0, 1.0])
    >>> float(on_grid(teacher, width=2).loss(teacher.network))
    0.0
    """
    if spacing is not None:
        return Grid(teacher, width, activation, spacing, True)
    student = activations.get(activation or teacher.activation)
    if min(student.smoothness, teacher.activation.smoothness) == 0:
        raise ValueError(f"A lattice does not resolve the kink of {student.name}: give spacing=, or use Population.")
    longest = float(np.max(np.linalg.norm(np.asarray(teacher.incoming), axis=1)))
    return Grid(teacher, width, activation, _spacing_for(longest * teacher.activation.steepness), False)


_ACCURACY = 1e-12
"""Error of expectations, for functions of order one, that the spacing is chosen for; the loss can be 1e-6 of that
order."""


def _spacing_for(scale: float) -> float:
    """The power of √2 below the spacing that gives `_ACCURACY` for steepness × norm ≤ `scale`; see `gaussian_grid`."""
    digits = -math.log(_ACCURACY)
    delta = min(math.pi / (2 * max(scale, 1e-300)), math.sqrt(2 * digits))
    spacing = 2 * math.pi * delta / (digits + delta**2 / 2)
    return 2.0 ** (math.floor(2 * math.log2(spacing)) / 2)
