"""Split neurons: a wider network with the same function.

A neuron with incoming vector w and outgoing weights a is replaced by parts (w, μ_1 a) ⊕ … ⊕ (w, μ_h a) with
μ_1 + … + μ_h = 1 ("few neurons", Eq. 10-12; Fukumizu and Amari 2000). The function stays the same. The gradient at each
part is a multiple of the original gradient (incoming) or equal to it (outgoing), so a critical point stays critical.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from understudy.networks import Layered
from understudy.networks.hidden import hidden_of, split_layout
from understudy.tasks.task import Task

Network = TypeVar("Network", bound=Layered)


def split(network: Network, parts: Mapping[int, Sequence[float]], *, layer: int = 0) -> Network:
    """Split neurons of one hidden layer into parts that share their outgoing weights.

    **Arguments**

    - `network`: a `TwoLayer` (scalar or vector outgoing weights), a `Deep` network, or your own `Layered` module. Its
      biases are copied.
    - `parts`: for each neuron to split, its coefficients μ: any real numbers that sum to one.
    - `layer`: the hidden layer of a deeper network; 0 is the first.

    The parts of a neuron take its place, one after another; `part_positions` returns their positions.

    >>> from understudy import TwoLayer
    >>> split(TwoLayer([[1.0, 2.0]], [4.0]), {0: [0.25, 0.75]}).outgoing.tolist()
    [1.0, 3.0]

    **Reference**: "few neurons", Section 2.2, Eq. 10-12; for hidden layers, the remark below Eq. 19.
    """
    hidden = hidden_of(network, layer)
    return network.with_hidden(hidden.take(*split_layout(hidden.width, parts)), layer)


def split_point(
    task: Task, parameters: Any, parts: Mapping[int, Sequence[float]], *, layer: int = 0
) -> tuple[Task, Any]:
    """Split neurons of a point of any task: the task of the wider network, and its parameters there.

    Function and loss stay the same, and a critical point stays critical. A task says what must be true for that. With
    a penalty (`Regularised`), for example, the activation must be homogeneous of degree one; otherwise the split raises
    a `ValueError` with the reason. A task without hidden neurons raises a `TypeError`.

    **Arguments**: see `split`. Fixed outgoing weights are split as well: the wider task has the parts' weights.

    >>> import understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2), width=1)
    >>> wide, point = split_point(task, us.TwoLayer([[1.0, 0.0]], [3.0]), {0: [0.5, 0.5]})
    >>> wide.width, point.outgoing.tolist()
    (2, [1.5, 1.5])
    """
    wide, vector = task.split(parameters, parts, layer)
    return wide, wide.unflatten(vector)


def part_positions(width: int, parts: Mapping[int, Sequence[float]]) -> dict[int, list[int]]:
    """The positions of the parts of each split neuron in the wider layer.

    >>> part_positions(3, {1: [0.5, 0.5]})
    {1: [1, 2]}
    """
    origin, _ = split_layout(width, parts)
    return {neuron: [int(i) for i in np.flatnonzero(origin == neuron)] for neuron in parts}
