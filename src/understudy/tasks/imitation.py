"""What a warm start needs from a task: the neurons of a wider layer, and averages of products of neurons."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from understudy.activations import Activation
from understudy.networks import Deep, HiddenLayer, Teacher, TwoLayer
from understudy.networks.hidden import hidden_of
from understudy.tasks.structure import Setting

Rows = Float[np.ndarray, "n q"]

NORMS = np.geomspace(0.02, 2.0, 49)
"""Norms tried for an averaging neuron, as multiples of its teachers' typical one: the optimum lies below 1 for every
activation that the theory covers, and the loss is flat around it."""


@dataclass(frozen=True)
class Imitation:
    """A layer of k neurons x ↦ Σ_j b_j σ*(v_j·x) that n < k neurons x ↦ Σ_i a_i σ(p_i·x) imitate.

    A row p holds the incoming weights of a neuron, then its bias if the students have biases. E is the average over the
    inputs of the layer. If the student trains a constant as well, all products are centred: E[fg] - E[f]E[g].

    - `rows` (k, q), `outgoing` (k, m): v_j and b_j; `students`: n.
    - `overlaps` (k, k): E[σ*(v_i·x) σ*(v_j·x)]; `between(p)`: E[σ(p_i·x) σ(p_j·x)]; `squares(p)`: its diagonal;
      `towards(p)`: E[σ(p_i·x) σ*(v_j·x)]; `target(p)` (n, m): E[σ(p_i·x) f*(x)].
    - `lengths(p)`: the standard deviations of p_i·x, without biases.
    - `build(rows, outgoing)`: the student with these neurons, as parameters of the task.
    - `fixed` (n, m): the outgoing weights, if they are not trained. `norms`: lengths to try for an average.
    - `setting`: where the theory of copies and averages applies, or None.
    """

    rows: Rows
    outgoing: np.ndarray
    students: int
    overlaps: np.ndarray = field(repr=False)
    between: Callable[[Rows], np.ndarray] = field(repr=False)
    squares: Callable[[Rows], np.ndarray] = field(repr=False)
    towards: Callable[[Rows], np.ndarray] = field(repr=False)
    target: Callable[[Rows], np.ndarray] = field(repr=False)
    lengths: Callable[[Rows], np.ndarray] = field(repr=False)
    build: Callable[[Rows, np.ndarray], Any] = field(repr=False)
    fixed: np.ndarray | None = None
    norms: np.ndarray = field(default_factory=lambda: NORMS, repr=False)
    setting: Setting | None = None


def imitate_samples(
    received: np.ndarray,
    weights: np.ndarray,
    layer: HiddenLayer,
    students: int,
    activations: tuple[Activation, Activation],
    build: Callable[[Rows, np.ndarray, np.ndarray], Any],
    *,
    constant: bool,
) -> Imitation:
    """Averages over samples.

    - `received` (N, q): the inputs of the layer, with a column of ones for a bias; `weights` (N,): of the samples.
    - `layer`: the neurons to imitate, their rows without a separate bias; `activations`: of student and teacher.
    - `build(rows, outgoing, shift)`: `shift` is what the trained constant adds to the next layer (zero without one).
    """
    student, teacher = activations
    v, b = np.asarray(layer.incoming), np.asarray(layer.outgoing)
    share = weights / weights.sum()

    def features(rows: Rows, activation: Activation) -> tuple[np.ndarray, np.ndarray]:
        active = np.asarray(activation(jnp.asarray(received @ rows.T)))
        means = share @ active if constant else np.zeros(len(rows))
        return active - means[None, :], means

    def product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return first.T @ (weights[:, None] * second)

    wanted, wanted_means = features(v, teacher)

    def made(rows: Rows, outgoing: np.ndarray) -> Any:
        return build(rows, outgoing, wanted_means @ b - features(rows, student)[1] @ outgoing)

    def lengths(rows: Rows) -> np.ndarray:
        return np.sqrt(share @ (received @ rows.T) ** 2)

    return Imitation(
        rows=v,
        outgoing=b,
        students=students,
        overlaps=product(wanted, wanted),
        between=lambda p: product(features(p, student)[0], features(p, student)[0]),
        squares=lambda p: weights @ features(p, student)[0] ** 2,
        towards=lambda p: product(features(p, student)[0], wanted),
        target=lambda p: product(features(p, student)[0], wanted @ b),
        lengths=lengths,
        build=made,
    )


def imitate_network(task: Any, teacher: Any, layer: int) -> Imitation:
    """One layer of a wider network on the data of an `Empirical` task; both are `TwoLayer` or both are `Deep`."""
    network: Any = teacher.network if isinstance(teacher, Teacher) else teacher
    activation = teacher.activation if isinstance(teacher, Teacher) else task.activation
    example: Any = task.unflatten(jnp.zeros(task.size))
    if type(network) is not type(example):
        raise ValueError(
            f"A warm start on data imitates a wider network: give teacher= a {type(example).__name__} that differs "
            f"from the task's network only in the width of hidden layer {layer}; received {type(teacher).__name__}."
        )
    wide, own = hidden_of(network, layer), hidden_of(example, layer)
    biased = own.bias is not None
    if wide.bias is not None and not biased:
        raise ValueError("The teacher has biases, and the task's network has none; give both biases, or neither.")
    x = np.asarray(task.inputs if layer == 0 else network.layers(task.inputs, task.activation)[layer - 1])
    v, zeros = np.asarray(wide.incoming), np.zeros(wide.width)
    if biased:
        x = np.column_stack([x, np.ones(len(x))])
        v = np.column_stack([v, zeros if wide.bias is None else np.asarray(wide.bias)])
    constant = isinstance(example, Deep) or example.offset is not None
    if not constant and network.offset is not None:
        raise ValueError("The teacher has an offset, and the task's network has none; give both one, or neither.")

    def build(rows: Rows, outgoing: np.ndarray, shift: np.ndarray) -> Any:
        w, c = (rows[:, :-1], rows[:, -1]) if biased else (rows, None)
        made: Any = network.with_hidden(HiddenLayer(w, c, outgoing), layer)
        if isinstance(made, Deep):
            biases = list(made.biases)
            biases[layer + 1] = biases[layer + 1] + jnp.asarray(shift)
            made = Deep(made.weights, tuple(biases))
        elif constant:
            offset = jnp.zeros(example.offset.shape) if made.offset is None else made.offset
            made = TwoLayer(made.incoming, made.outgoing, made.bias, offset + jnp.reshape(shift, example.offset.shape))
        shapes = [[np.shape(part) for part in jax.tree.leaves(one)] for one in (made, example)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"The teacher may differ from the task's network only in the width of hidden layer {layer}; a network "
                f"made from it has arrays of shapes {shapes[0]}, and the task's has {shapes[1]}."
            )
        return made

    neurons, weights = HiddenLayer(v, None, wide.outgoing), np.asarray(task.weights)
    return imitate_samples(x, weights, neurons, own.width, (task.activation, activation), build, constant=constant)
