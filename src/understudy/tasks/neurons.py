"""Two-layer networks as plain arrays, for structures, flat directions and tables of results."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from understudy.activations import Activation, Parity
from understudy.networks import Teacher

Described = dict[str, tuple[tuple[str, ...], np.ndarray]]
"""For each name: the names of the axes after the first, which counts points, and the array."""


class Neurons(NamedTuple):
    """The hidden neurons f(x) = Σ_i a_i σ(w_i·x + c) behind a flat vector.

    - `incoming` (n, d), `outgoing` (n, m): w_i and a_i. One output gives m = 1.
    - `layout` (n, q): positions of neuron i's trained weights in the flat vector, incoming weights first. q is d + m,
      or d if the outgoing weights are fixed.
    - `activation`: σ; `bias`: the fixed bias c that all neurons share. With one, w → -w and w → r w change a neuron by
      more than a factor: it has no `parity` and no `homogeneity`.
    """

    incoming: Float[np.ndarray, "n d"]
    outgoing: Float[np.ndarray, "n m"]
    layout: Int[np.ndarray, "n q"]
    activation: Activation
    bias: float = 0.0

    @property
    def parity(self) -> Parity:
        """That of x → σ(x + c)."""
        return None if self.bias else self.activation.parity

    @property
    def homogeneity(self) -> int | None:
        """That of x → σ(x + c)."""
        return None if self.bias else self.activation.homogeneity

    @property
    def vanishes_at_zero(self) -> bool:
        """Whether a neuron without input computes zero: σ(c) = 0."""
        return float(self.activation(self.bias)) == 0.0

    @property
    def width(self) -> int:
        """Number n of neurons."""
        return self.incoming.shape[0]

    @property
    def dim(self) -> int:
        """Number d of incoming weights per neuron."""
        return self.incoming.shape[1]

    @property
    def trained_outputs(self) -> int:
        """Number of trained outgoing weights per neuron: m, or 0 if they are fixed."""
        return self.layout.shape[1] - self.dim


def describe_neurons(
    incoming: np.ndarray,
    outgoing: np.ndarray,
    teacher: np.ndarray | None = None,
    root: np.ndarray | None = None,
) -> Described:
    """Weights, norms and correlations of a batch of two-layer networks, in NumPy; NaN stays NaN.

    `order_parameters` computes the same for differentiable use. Correlations of a zero vector are 0. `root`: square
    root of the input covariance, under which norms and correlations are taken.
    """
    seen = incoming if root is None else incoming @ root
    norms = np.linalg.norm(seen, axis=-1)
    unit = seen / np.where(norms > 0, norms, 1.0)[..., None]
    output = ("output",) if outgoing.ndim > 2 else ()
    found: Described = {
        "incoming": (("student", "dim"), incoming),
        "outgoing": (("student", *output), outgoing),
        "norm": (("student",), norms),
    }
    if teacher is not None:
        v = teacher if root is None else teacher @ root
        lengths = np.linalg.norm(v, axis=-1)
        directions = v / np.where(lengths > 0, lengths, 1.0)[:, None]
        found["student_teacher"] = (("student", "teacher"), unit @ directions.T)
    found["student_student"] = (("student", "student_2"), unit @ np.swapaxes(unit, -1, -2))
    return found


def describe_teacher(teacher: Teacher, root: np.ndarray | Array | None = None) -> Described:
    """Weights and biases of a teacher, and the covariance of its inputs from the square root of the covariance."""
    output = ("output",) if teacher.outgoing.ndim > 1 else ()
    found: Described = {
        "teacher_incoming": (("teacher", "dim"), np.asarray(teacher.incoming)),
        "teacher_outgoing": (("teacher", *output), np.asarray(teacher.outgoing)),
    }
    if teacher.bias is not None:
        found["teacher_bias"] = (("teacher",), np.asarray(teacher.bias))
    if teacher.offset is not None:
        found["teacher_offset"] = (output, np.asarray(teacher.offset))
    if root is not None:
        found["covariance"] = (("dim", "dim_2"), np.asarray(root) @ np.asarray(root))
    return found
