"""A `Population` task in the forms that proofs and order-parameter equations use."""

import math
from typing import TYPE_CHECKING

import numpy as np

from understudy.tasks.exact_form import ExactForm, NoExactFormError, name_of
from understudy.tasks.order_problem import OrderProblem

if TYPE_CHECKING:
    from understudy.tasks.population import Population


def exact_form(task: "Population") -> ExactForm:
    """See `Task.exact_form`."""
    if task.mean is not None and not task.trains_bias:
        raise NoExactFormError(
            "Inputs with a mean are the same as biases w·mean, which proofs take where biases are trained; here "
            "they are not."
        )
    b, fixed, teacher = np.asarray(task.teacher.outgoing), task.fixed_outgoing, task.teacher
    return ExactForm(
        loss="population",
        activation=name_of(task.activation),
        teacher_activation=name_of(task.teacher.activation),
        incoming=np.asarray(task.teacher.incoming),
        outgoing=b.reshape(len(b), -1),
        width=task.width,
        fixed_outgoing=None if fixed is None else np.asarray(fixed).reshape(task.width, -1),
        trains_bias=task.trains_bias,
        fixed_bias=None if task.fixed_bias is None else np.asarray(task.fixed_bias),
        teacher_bias=None if teacher.bias is None else np.asarray(teacher.bias),
        teacher_offset=None if teacher.offset is None else np.asarray(teacher.offset).reshape(-1),
        mean=None if task.mean is None else np.asarray(task.mean),
        root=None if task.root is None else np.asarray(task.root),
    )


def order_problem(task: "Population") -> OrderProblem:
    """See `Task.order_problem`."""
    if task.root is not None:
        raise ValueError(
            "Order-parameter equations need isotropic inputs; this task has a covariance, under which overlaps do "
            "not close. Leave out covariance=."
        )
    if task.biased:
        raise ValueError(
            "Order-parameter equations exist for tasks without biases, offsets and input means; this task has "
            "some. Leave out bias= and mean=, and the teacher's bias and offset."
        )
    fixed, m = task.fixed_outgoing, math.prod(task.outputs)
    v = task.teacher.incoming
    return OrderProblem(
        incoming=v,
        overlaps=v @ v.T,
        teacher_outgoing=task.teacher.outgoing.reshape(-1, m),
        constant=task.constant,
        fixed_outgoing=None if fixed is None else fixed.reshape(-1, m),
        width=task.width,
        outputs=task.outputs,
        student=task.activation,
        teacher=task.teacher.activation,
    )
