"""A task in exact terms: the finite numbers that define its loss, for proofs in ball arithmetic."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy import activations
from understudy.activations import Activation


class NoExactFormError(ValueError):
    """The task's loss cannot be written as an exact sum over pairs of named neurons; the message says why."""


@dataclass(frozen=True)
class ExactForm:
    """A loss that is a sum over pairs of neurons, defined by the float64 numbers below, each taken as exact.

    - `loss`: `"population"` is E‖Σ a_i σ(w_i·x) - Σ b_j σ*(v_j·x)‖² for x ~ N(0, I); `"sphere"` is
      ½ (r Σ (w_i·w_i')^ρ - 2 Σ (w_i·v_j)^ρ + c Σ (v_j·v_j')^ρ) of rows scaled to norm 1, with r = `repulsion` and
      c = 1 or 0 (`with_constant`).
    - `activation`, `teacher_activation`: names.
    - `incoming` (k, d) and `outgoing` (k, m): the teacher's weights, m = 1 for a scalar output.
    - `width`: number n of students; `fixed_outgoing` (n, m): their outgoing weights if these are not trained.
    - `trains_bias`: whether students σ(w_i·x + c_i) have trained biases, and the output a trained offset;
      `fixed_bias` (n,): biases that are not trained.
    - `teacher_bias` (k,), `teacher_offset` (m,): of the teacher, or None.
    - `mean` (d,): of the inputs, x ~ N(mean, I), only with trained biases: with c_i + w_i·mean in place of c_i, inputs
      have mean zero, and critical points and the signs of eigenvalues are the same.
    - `root` (d, d): square root of the inputs' covariance, or None for I.
    """

    loss: Literal["population", "sphere"]
    activation: str
    teacher_activation: str
    incoming: np.ndarray
    outgoing: np.ndarray
    width: int
    fixed_outgoing: np.ndarray | None = None
    repulsion: float = 1.0
    with_constant: bool = True
    trains_bias: bool = False
    fixed_bias: np.ndarray | None = None
    teacher_bias: np.ndarray | None = None
    teacher_offset: np.ndarray | None = None
    mean: np.ndarray | None = None
    root: np.ndarray | None = None

    @property
    def biased(self) -> bool:
        """Whether any neuron has a bias, or the output an offset."""
        given = (self.fixed_bias, self.teacher_bias, self.teacher_offset, self.mean)
        return self.trains_bias or any(x is not None for x in given)


def name_of(activation: Activation) -> str:
    """The name for which `activations.get` returns exactly this activation."""
    try:
        known = activations.get(activation.name)
    except ValueError:
        known = None
    if known != activation:
        raise NoExactFormError(
            f"Proofs know activations by name; {activation.name!r} is an activation of your own. "
            f"Named ones: {', '.join(activations.names())}."
        )
    return activation.name
