"""Mode connectivity: how high the loss rises between two networks, on straight lines and on relaxed paths."""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.landscape.strings import losses_along, relax, straight
from understudy.networks import TwoLayer
from understudy.tasks.task import Task


@dataclass(frozen=True)
class ModeConnectivity:
    """The highest loss on four ways from one network to another.

    - `line`: the straight line; `aligned`: the straight line after permutations and signs of the second network.
    - `relaxed`: the aligned line after relaxation; `wider`: the same with one neuron more in both networks.
    - `ends`: the losses of both networks; `profiles`: the losses along each way, by these names.
    """

    line: float
    aligned: float
    relaxed: float
    wider: float
    ends: tuple[float, float]
    profiles: dict[str, np.ndarray] = field(repr=False)


def mode_connectivity(
    task: Task, first: Any, second: Any, *, images: int = 41, iterations: int = 1000
) -> ModeConnectivity:
    """How high the loss rises between two two-layer networks (compare Tian, Section 4.3).

    In the wider networks the neuron that differs most after alignment is exchanged for the additional one: the one
    fades out while the other fades in.

    **Arguments**

    - `first`, `second`: two-layer networks of the task; `images`, `iterations`: see `barrier`.

    >>> import understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2, dim=2), width=2)
    >>> swapped = us.TwoLayer([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0])
    >>> found = mode_connectivity(task, us.TwoLayer([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0]), swapped, iterations=0)
    >>> round(found.line, 3), round(found.aligned, 12)
    (0.041, 0.0)
    """
    symmetries = task.symmetries()
    if symmetries is None or task.neurons(np.zeros(task.size)) is None:
        raise ValueError(f"mode_connectivity is for two-layer networks; received {type(task).__name__}.")
    a, b = (np.asarray(task.flatten(p), float) for p in (first, second))
    near = symmetries.closest(b, a)
    line, aligned = straight(task, a, b, images), straight(task, a, near, images)
    wide, begin, end = _wider(task, a, near)
    ways = {
        "line": losses_along(task, line),
        "aligned": losses_along(task, aligned),
        "relaxed": losses_along(task, relax(task, aligned, iterations)),
        "wider": losses_along(wide, relax(wide, straight(wide, begin, end, images), iterations)),
    }
    tops = {name: float(losses.max()) for name, losses in ways.items()}
    return ModeConnectivity(**tops, ends=(float(ways["line"][0]), float(ways["line"][-1])), profiles=ways)


def _wider(task: Task, first: np.ndarray, second: np.ndarray) -> tuple[Task, np.ndarray, np.ndarray]:
    """The task with one neuron more, and both networks in it, with the neuron that differs most in two places."""
    one, two = (task.unflatten(jnp.asarray(v)) for v in (first, second))
    w, v = np.asarray(one.incoming), np.asarray(two.incoming)
    c, e = np.asarray(one.outgoing), np.asarray(two.outgoing)
    differs = int(np.argmax(np.sum((w - v) ** 2, axis=1)))
    begin = TwoLayer(np.concatenate([w, v[differs][None]]), np.concatenate([c, 0 * e[differs][None]]))
    outgoing = np.concatenate([e, e[differs][None]])
    outgoing[differs] = 0.0
    incoming = np.concatenate([v, v[differs][None]])
    incoming[differs] = w[differs]
    end = TwoLayer(incoming, outgoing)
    wide = task.for_network(begin)
    if wide is None:
        raise ValueError(f"{type(task).__name__} has no form with one neuron more.")
    return wide, np.asarray(wide.flatten(begin)), np.asarray(wide.flatten(end))
