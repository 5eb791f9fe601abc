"""Mode connectivity: how high the loss rises between two networks, on straight lines and on other paths."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.landscape.strings import losses_along, relax, straight
from understudy.networks.hidden import HiddenLayer, hidden_of
from understudy.tasks.task import Task

_Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class ModeConnectivity:
    """The highest loss on five paths from one network to another.

    - `line`: the straight line; `aligned`: the straight line after permutations and signs of the second network.
    - `relaxed`: the aligned line after relaxation; `wider`: the same with one neuron more in both networks.
    - `segments`: line segments with one neuron more that first bring the neurons of the first network into the order
      of the second, at the loss of the first, and then lead straight to the second network as it was given.
    - `ends`: the losses of both networks; `profiles`: the losses along each path, by these names.
    """

    line: float
    aligned: float
    relaxed: float
    wider: float
    segments: float
    ends: tuple[float, float]
    profiles: dict[str, np.ndarray] = field(repr=False)


def mode_connectivity(
    task: Task, first: Any, second: Any, *, images: int = 41, iterations: int = 1000
) -> ModeConnectivity:
    """How high the loss rises between two two-layer networks, with and without permutation and with one neuron more.

    Low-loss networks are joined by line segments, but not by one straight line (Tian, Section 4.3; Kuditipudi et al.
    2019). The reason is a neuron to spare: while its outgoing weight is zero, its incoming weights can be those of
    another neuron, which it then replaces. `segments` follows such a path.

    In the wider networks the neuron that differs most after alignment is exchanged for the additional one: the one
    fades out while the other fades in.

    **Arguments**

    - `first`, `second`: two-layer networks of the task; `images`, `iterations`: see `barrier`.

    >>> import understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2, dim=2), width=2)
    >>> swapped = us.TwoLayer([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0])
    >>> found = mode_connectivity(task, us.TwoLayer([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0]), swapped, iterations=0)
    >>> round(found.line, 3), abs(round(found.aligned, 12)), abs(round(found.segments, 12))
    (0.041, 0.0, 0.0)
    """
    symmetries = task.symmetries()
    neurons = task.neurons(np.zeros(task.size))
    if symmetries is None or neurons is None or not neurons.trained_outputs:
        raise ValueError(
            "mode_connectivity is for two-layer networks with trained outgoing weights; received "
            f"{type(task).__name__}. Use a Population task, or Empirical with a network that has no biases."
        )
    a, b = (np.asarray(task.flatten(p), float) for p in (first, second))
    near = symmetries.closest(b, a)
    line, aligned = straight(task, a, b, images), straight(task, a, near, images)
    wide, begin, end = _wider(task, a, near)
    signs = {"odd": (-1.0, -1.0), "even": (-1.0, 1.0)}.get(neurons.parity or "", (1.0, 1.0))
    *before, last = _in_order([_rows(task, x) for x in (a, near, b)], signs)
    networks = [*(_with_neurons(task, a, rows) for rows in before), _with_neurons(task, b, last)]
    corners = [np.asarray(wide.flatten(network)) for network in networks]
    ways = {
        "line": losses_along(task, line),
        "aligned": losses_along(task, aligned),
        "relaxed": losses_along(task, relax(task, aligned, iterations)),
        "wider": losses_along(wide, relax(wide, straight(wide, begin, end, images), iterations)),
        "segments": losses_along(wide, np.concatenate([straight(wide, x, y, images) for x, y in pairwise(corners)])),
    }
    tops = {name: float(losses.max()) for name, losses in ways.items()}
    return ModeConnectivity(**tops, ends=(float(ways["line"][0]), float(ways["line"][-1])), profiles=ways)


def _rows(task: Task, vector: np.ndarray) -> _Rows:
    """The neurons of a network: incoming weights with biases, and outgoing weights, one row per neuron."""
    hidden = task.hidden_layer(vector)
    return hidden.rows, np.asarray(hidden.outgoing)


def _with_neurons(task: Task, vector: np.ndarray, rows: _Rows) -> Any:
    """The network of a vector with other neurons; what belongs to no neuron (an offset) stays."""
    network = task.unflatten(jnp.asarray(vector))
    inputs = hidden_of(network).incoming.shape[1]
    incoming, bias = rows[0][:, :inputs], rows[0][:, inputs:]
    return network.with_hidden(HiddenLayer(incoming, bias[:, 0] if bias.size else None, rows[1]))


def _wider(task: Task, first: np.ndarray, second: np.ndarray) -> tuple[Task, np.ndarray, np.ndarray]:
    """The task with one neuron more, and both networks in it, with the neuron that differs most in two places."""
    (w, c), (v, e) = _rows(task, first), _rows(task, second)
    differs = int(np.argmax(np.sum((w - v) ** 2, axis=1)))
    begin = _with_neurons(task, first, (np.concatenate([w, v[[differs]]]), np.concatenate([c, 0 * e[[differs]]])))
    incoming, outgoing = np.concatenate([v, v[[differs]]]), np.concatenate([e, e[[differs]]])
    incoming[differs], outgoing[differs] = w[differs], 0.0
    end = _with_neurons(task, second, (incoming, outgoing))
    wide = task.for_network(begin)
    if wide is None:
        raise ValueError(f"This {type(task).__name__} task has no form with one neuron more.")
    return wide, np.asarray(wide.flatten(begin)), np.asarray(wide.flatten(end))


def _in_order(networks: list[_Rows], signs: tuple[float, float]) -> list[_Rows]:
    """Corners of a way from the first network to the third, through the wider network.

    The second is the third with its neurons in the order and with the signs of the first. `signs`: those by which the
    incoming and the outgoing weights of a neuron can be multiplied together without changing the function. The last
    corner is the third network; all others have the function of the first.

    Neuron by neuron, the one that is off takes over the incoming weights of another, then its outgoing weights. So the
    function stays, and the other one is off. The last segment is straight, between networks in the same order.
    """
    (w, c), near, (u, b) = networks
    source, flipped = _sources(near, (u, b), signs)
    w, c = np.concatenate([w, w[:1]]), np.concatenate([c, 0 * c[:1]])
    corners = [(w.copy(), c.copy())]

    def move(origin: int, target: int, flip: bool) -> None:
        inner, outer = signs if flip else (1.0, 1.0)
        w[target] = inner * w[origin]
        corners.append((w.copy(), c.copy()))
        c[target], c[origin] = outer * c[origin], 0.0
        corners.append((w.copy(), c.copy()))

    spare = len(source)
    for start in range(len(source)):
        if source[start] == start and not flipped[start]:
            continue
        move(start, spare, flip=False)
        hole = start
        while source[hole] != start:
            origin = int(source[hole])
            move(origin, hole, bool(flipped[hole]))
            source[hole], flipped[hole], hole = hole, False, origin
        move(spare, hole, bool(flipped[hole]))
        source[hole], flipped[hole] = hole, False
    return [*corners, (np.concatenate([u, w[-1:]]), np.concatenate([b, 0 * b[:1]]))]


def _sources(given: _Rows, wanted: _Rows, signs: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """For each neuron that is wanted, which given one it is, and whether it is flipped; each is taken once."""
    from scipy.optimize import linear_sum_assignment

    def gaps(inner: float, outer: float) -> np.ndarray:
        rows, goals = np.hstack([inner * given[0], outer * given[1]]), np.hstack(wanted)
        return np.linalg.norm(goals[:, None] - rows[None], axis=-1)

    plain, flipped = gaps(1.0, 1.0), gaps(*signs)
    source = linear_sum_assignment(np.minimum(plain, flipped))[1]
    each = np.arange(len(source))
    return source, flipped[each, source] < plain[each, source]
