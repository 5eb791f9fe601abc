"""Order parameters: norms and correlations, all that a population loss depends on besides the outgoing weights."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from understudy.networks import TwoLayer
from understudy.tasks.population import Population


class OrderParameters(NamedTuple):
    """The student in the quantities on which the loss depends (Simsek et al. 2023, Section 3); also for batches.

    - `norms`: r_i = ‖w_i‖; `outgoing`: a_i.
    - `student_teacher`: u_ij = w_i·v_j / (r_i ‖v_j‖); `student_student`: ρ_ii' = w_i·w_i' / (r_i r_i').

    Correlations of a zero vector are set to 0; the loss does not depend on them.
    """

    norms: Float[Array, "*batch n"]
    student_teacher: Float[Array, "*batch n k"]
    student_student: Float[Array, "*batch n n"]
    outgoing: Float[Array, "*batch n"] | Float[Array, "*batch n m"]


def order_parameters(task: Population, parameters: TwoLayer) -> OrderParameters:
    """Norms and correlations of a student (under the input covariance, if the task has one)."""
    w, v = parameters.incoming, task.teacher.incoming
    if task.root is not None:
        w, v = w @ task.root, v @ task.root
    norms = jnp.linalg.norm(w, axis=-1)
    unit = w / jnp.where(norms > 0, norms, 1.0)[..., None]
    teacher_norms = jnp.linalg.norm(v, axis=-1)
    directions = v / jnp.where(teacher_norms > 0, teacher_norms, 1.0)[:, None]
    return OrderParameters(norms, unit @ directions.T, unit @ jnp.swapaxes(unit, -1, -2), parameters.outgoing)
