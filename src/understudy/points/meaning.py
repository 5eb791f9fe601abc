"""What each neuron of a point became."""

from __future__ import annotations

from typing import Any

from understudy.tasks.structure import Structure
from understudy.tasks.task import Task


def structure(task: Task, parameters: Any) -> Structure:
    """The structure of a point of any task: its label, its neurons, its partition; see `Structure`.

    >>> import understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2), width=2)
    >>> structure(task, us.TwoLayer([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0])).label
    '2-copy'
    """
    return task.structure(parameters)
