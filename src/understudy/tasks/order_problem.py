"""The part of a task that order-parameter equations need: the teachers' overlaps, outgoing weights and activations."""

import equinox as eqx
from jaxtyping import Array, Float

from understudy.activations import Activation


class OrderProblem(eqx.Module):
    """A two-layer student and teacher under isotropic Gaussian inputs, in terms of their overlaps.

    - `incoming`: the teachers' v_j (k, d); `overlaps`: v_j·v_j'; `teacher_outgoing`: their b_j, shape (k, m);
      `constant`: E‖f*‖².
    - `fixed_outgoing`: the student's outgoing weights (n, m), or None if they are trained.
    - `width`: number n of students; `outputs`: () or (m,), the shape of one output.
    """

    incoming: Float[Array, "k d"]
    overlaps: Float[Array, "k k"]
    teacher_outgoing: Float[Array, "k m"]
    constant: Float[Array, ""]
    fixed_outgoing: Float[Array, "n m"] | None
    width: int = eqx.field(static=True)
    outputs: tuple[int, ...] = eqx.field(static=True)
    student: Activation = eqx.field(static=True)
    teacher: Activation = eqx.field(static=True)

    @property
    def teachers(self) -> int:
        """Number k of teachers."""
        return self.overlaps.shape[0]

    @property
    def output_count(self) -> int:
        """Number m of outputs."""
        return self.teacher_outgoing.shape[1]
