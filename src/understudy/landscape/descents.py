"""Both sides of a saddle, followed down by the gradient flow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.dynamics.trajectory import FlowOptions
from understudy.fitting import fit_each
from understudy.points import Certificate
from understudy.tasks.task import Task

PUSHES = (1e-3, 1e-4)
"""Lengths of the pushes off a saddle, relative to its parameters. Where both lead to the same end, the end does not
depend on them."""

_OPTIONS = FlowOptions(snapshots=0, rtol=1e-7, atol=1e-7)


@dataclass(frozen=True)
class Descent:
    """Where the flow ends after a push: side 0 or 1 of the saddle, by the `push`-th of `PUSHES`.

    `path` (m, P): points on the way down, from the push to the end; only these two unless more were asked for.
    """

    saddle: int
    side: int
    push: int
    vector: np.ndarray
    loss: float
    certificate: Certificate
    path: np.ndarray = field(repr=False)


def descend(
    task: Task,
    saddles: Sequence[np.ndarray],
    watch: Callable[[int, int], None] | None = None,
    snapshots: int = 0,
) -> list[Descent]:
    """Follow the flow from both sides of each saddle of index 1, after pushes of two sizes.

    `watch(done, total)` is called as runs end. `snapshots`: see `FlowOptions`; they become points of the paths.
    """
    starts, owners = [], []
    for number, vector in enumerate(saddles):
        for push, size in enumerate(PUSHES):
            for side, sign in enumerate((1.0, -1.0)):
                starts.append(pushed(task, vector, sign * size))
                owners.append((number, side, push))
    found: list[Descent] = []
    if not starts:
        return found
    begin = np.stack(starts)
    lift = task.reduce(jnp.asarray(begin)).lift  # snapshots are in the parameters of the reduced task
    options = replace(_OPTIONS, snapshots=snapshots)
    for position, run in fit_each(task, list(range(len(starts))), init=begin, options=options):
        end = np.asarray(task.flatten(run.parameters))
        kept = [np.asarray(lift(jnp.asarray(x), position)) for x in run.trajectory.snapshots]
        path = np.stack([begin[position], *kept, end])
        found.append(Descent(*owners[position], end, float(run.loss), run.certificate, path))
        if watch is not None:
            watch(len(found), len(starts))
    return sorted(found, key=lambda d: (d.saddle, d.side, d.push))


def pushed(task: Task, vector: np.ndarray, size: float) -> np.ndarray:
    """The point after a step along the eigenvector of the least eigenvalue, relative to the norm of the point."""
    return np.asarray(_pushed(task.prepared(jnp.asarray(vector)), jnp.asarray(vector), jnp.asarray(size)))


@eqx.filter_jit
def _pushed(task: Task, vector: Array, size: Array) -> Array:
    local, origin = task.chart(vector)
    direction = jnp.linalg.eigh(local.evaluate(origin).hessian)[1][:, 0]
    return local.point(origin + size * jnp.maximum(jnp.linalg.norm(vector), 1e-3) * direction)
