"""The lowest path found from one minimum to another: a chain of certified saddles and minima."""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.compilation import keep_compiled_programs
from understudy.dynamics.trajectory import FlowOptions
from understudy.fitting import fit_each
from understudy.landscape.classes import Classes
from understudy.landscape.descents import descend
from understudy.landscape.search import Plan, search
from understudy.landscape.strings import losses_along, relax, straight
from understudy.points import Certificate
from understudy.tasks.task import Task

_SAME = 1e-4
"""Points closer than this, relative to their norm, are the same end of a descent."""

SNAPSHOTS = 113
"""Log-spaced times between 10⁻² and 10¹² at which points of a descent are kept: eight per decade."""

_AT_REST = 1e-8
"""Gradient norm, relative to the scale of the targets, up to which a network counts as being at a critical point."""


@dataclass(frozen=True)
class Pass:
    """A saddle on the way: its loss, its certificate, and the parameters of the saddle and of both ends of its
    descents.

    `descents`: points of the paths of steepest descent on both sides, one per row, from the saddle to the end.
    """

    loss: float
    parameters: Any = field(repr=False)
    ends: tuple[Any, Any] = field(repr=False)
    end_losses: tuple[float, float]
    certificate: Certificate = field(repr=False)
    descents: tuple[np.ndarray, np.ndarray] = field(repr=False)


@dataclass(frozen=True)
class Barrier:
    """What lies between two minima.

    - `height`: the loss of the highest saddle on the path; `passes`: the saddles, in their order along the path.
    - `certified`: whether every saddle is certified with index 1, and the descents from them link both minima in an
      unbroken chain. Then the height is an upper bound of the lowest barrier. Without it, `height` is the loss of the
      highest point of the relaxed path, which bounds the barrier too.
    - `line`: the highest loss on the straight line between the points as given; `aligned`: the same after permutations
      and signs of the second network that bring it closest to the first (NaN if they are not known).
    - `path`: points of the relaxed path, one per row; `losses`: their losses.
    """

    height: float
    certified: bool
    passes: tuple[Pass, ...]
    line: float
    aligned: float
    path: np.ndarray = field(repr=False)
    losses: np.ndarray = field(repr=False)


def barrier(
    task: Task,
    first: Any,
    second: Any,
    *,
    align: bool = True,
    images: int = 25,
    iterations: int = 1000,
    tries: int = 3,
    seed: int = 0,
) -> Barrier:
    """Find the lowest path from one minimum to another.

    A path between the two is relaxed by the string method, from the straight line and from random bends of it. From the
    highest points of each path, eigenvector following leads to saddles of index 1. Each is certified, and the flow is
    followed down on both of its sides. The lowest chain that links both minima is returned. It bounds the barrier from
    above; a lower path may exist that was not found.

    **Arguments**

    - `first`, `second`: networks or flat vectors. Trained networks need not be exactly at minima: those that are not
      at a critical point are first followed down by the flow. `line` and `aligned` are for the networks as given.
    - `align`: whether to replace the second by its image under permutations and signs that is closest to the first.
    - `images`, `iterations`: points of a path, and steps by which it is relaxed.
    - `tries`: number of paths; `seed`: of their bends.

    >>> import numpy as np, understudy as us
    >>> task = us.Sphere(np.eye(2), width=2, activation="hermite:6")
    >>> best, tight = us.explore(task, starts=64, descents=False).minima
    >>> found = us.barrier(task, best.parameters, tight.parameters)
    >>> found.certified, round(found.height, 9)
    (True, 0.875)
    """
    keep_compiled_programs()
    a, b = (np.asarray(task.flatten(p), float) for p in (first, second))
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"barrier takes two points; received batches of shapes {a.shape} and {b.shape}.")
    if images < 5 or iterations < 0 or tries < 1:
        raise ValueError(
            f"barrier needs images ≥ 5, iterations ≥ 0 and tries ≥ 1; received images={images}, "
            f"iterations={iterations}, tries={tries}."
        )
    symmetries = task.symmetries()
    closest = b if symmetries is None else symmetries.closest(b, a)
    line = float(losses_along(task, straight(task, a, b, 4 * images)).max())
    aligned = (
        float("nan") if symmetries is None else float(losses_along(task, straight(task, a, closest, 4 * images)).max())
    )
    a, goal = _settled(task, a), _settled(task, closest if align else b)
    found = []
    rng = np.random.default_rng(seed)
    for number in range(tries):
        bend = 0.3 * rng.normal(size=a.size) * np.linalg.norm(goal - a) / np.sqrt(a.size) if number else None
        found.append(_way(task, straight(task, a, goal, images, bend), iterations, line, aligned))
        if np.linalg.norm(goal - a) <= _SAME * (1 + np.linalg.norm(a)):
            break
    return min(found, key=lambda w: (not w.certified, w.height))


def _settled(task: Task, vector: np.ndarray) -> np.ndarray:
    """The point itself if it is critical, otherwise where the flow from it ends."""
    if np.linalg.norm(task.gradient(vector)) <= _AT_REST * max(task.target_scale, 1e-300):
        return vector
    ((_, run),) = fit_each(task, 1, init=vector[None], options=FlowOptions(snapshots=0))
    return np.asarray(task.flatten(run.parameters), float)


def _way(task: Task, path: np.ndarray, iterations: int, line: float, aligned: float) -> Barrier:
    """Relax a path, and turn its peaks into certified passes."""
    path = relax(task, path, iterations)
    losses = losses_along(task, path)
    top = float(losses.max())
    if np.linalg.norm(path[-1] - path[0]) <= _SAME * (1 + np.linalg.norm(path[0])):
        return Barrier(float(losses[0]), True, (), line, aligned, path, losses)
    peaks = [i for i in range(1, len(path) - 1) if losses[i] >= losses[i - 1] and losses[i] > losses[i + 1]]
    passes = _passes(task, path[peaks]) if peaks else []
    chain = _chain(task, path[0], path[-1], passes)
    if chain is None:
        return Barrier(top, False, tuple(passes), line, aligned, path, losses)
    return Barrier(max(p.loss for p in chain), True, tuple(chain), line, aligned, path, losses)


def _passes(task: Task, peaks: np.ndarray) -> list[Pass]:
    """Saddles of index 1 next to these points, certified, with the ends of both descents."""
    count = len(peaks)
    ends = dict(search(task, Plan(peaks, np.zeros(count, int), np.ones(count, int)), lanes=count))
    catalogue = Classes(task)
    saddles: list[tuple[np.ndarray, Certificate]] = []
    for i in range(count):
        home = catalogue.add(ends[i].vector) if ends[i].how == "converged" else None
        if home is not None and home.certificate.kind == "strict saddle" and home.certificate.index == 1:
            saddles.append((ends[i].vector, home.certificate))
    down = descend(task, [vector for vector, _ in saddles], snapshots=SNAPSHOTS)
    found = []
    for number, (vector, certificate) in enumerate(saddles):
        sides = [next(d for d in down if (d.saddle, d.side, d.push) == (number, side, 0)) for side in (0, 1)]
        found.append(
            Pass(
                float(certificate.loss),
                task.unflatten(jnp.asarray(vector)),
                (task.unflatten(jnp.asarray(sides[0].vector)), task.unflatten(jnp.asarray(sides[1].vector))),
                (sides[0].loss, sides[1].loss),
                certificate,
                (np.vstack([vector, sides[0].path]), np.vstack([vector, sides[1].path])),
            )
        )
    return found


def _chain(task: Task, first: np.ndarray, last: np.ndarray, passes: list[Pass]) -> list[Pass] | None:
    """The passes in an order in which each begins where the one before ends, from the first point to the last."""
    here, left, chain = first, list(passes), []
    while not _close(task, here, last):
        step = next(
            ((p, side) for p in left for side in (0, 1) if _close(task, np.asarray(task.flatten(p.ends[side])), here)),
            None,
        )
        if step is None:
            return None
        chosen, side = step
        left = [p for p in left if p is not chosen]
        chain.append(chosen)
        here = np.asarray(task.flatten(chosen.ends[1 - side]))
    return chain


def _close(task: Task, first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two ends are the same point, up to rescalings of neurons that keep the function."""
    x, y = (np.asarray(task.balanced(jnp.asarray(v))) for v in (first, second))
    return bool(np.linalg.norm(x - y) <= _SAME * (1 + np.linalg.norm(y)))
