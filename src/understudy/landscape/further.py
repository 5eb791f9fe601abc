"""What follows the random searches of an exploration: runs of the flow, and searches from chosen places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from understudy.dynamics.trajectory import FlowOptions
from understudy.fitting import fit_each
from understudy.landscape.between import between
from understudy.landscape.classes import CRITICAL, Classes
from understudy.landscape.search import End, Plan, search
from understudy.landscape.symmetric import symmetric_starts
from understudy.tasks.task import Task

FLOWS = 16
"""Runs of the flow, unless another number is given.

Measured on erf with (k, n) = (8, 6), 54 parameters, from 32 searches each: 4 random ones converge, 16 from symmetric
points, and 29 between the minima that the flow finds, among them to the saddle of index 1 that joins the two.
Eigenvector following to index 1 from places next to the minima converged once, so there is no such stage.
"""


@dataclass(frozen=True)
class Further:
    """What follows the random searches: numbers of flows, and of searches from symmetric points and between minima.

    `run(stage, plan)` runs the searches of a plan and yields (number, end); None for the default, which stores nothing.
    """

    seed: int = 0
    init_std: float = 0.5
    flows: int = FLOWS
    symmetric: int = 0
    bridges: int = 0
    run: Callable[[str, Plan], Iterable[tuple[int, End]]] | None = None


def run_plan(task: Task, given: Plan) -> Iterator[tuple[int, End]]:
    """Run the searches of a plan in the reduced problem; yield (position, end) in the parameters of the task."""
    reduction = task.reduce(jnp.asarray(given.starts))
    inside = Plan(np.asarray(reduction.vectors), given.descents, given.targets)
    for position, end in search(reduction.task, inside):
        lifted = np.asarray(reduction.lift(jnp.asarray(end.vector), position))
        yield position, replace(end, vector=lifted)


def search_further(catalogue: Classes, more: Further, tell: Callable[[str, int, int], None]) -> None:
    """Runs of the flow, and searches that are not random: what they find does not count as `found`."""
    task = catalogue.task
    _flow(catalogue, more, tell)
    _run(
        catalogue, more, "from symmetric points", symmetric_starts(task, more.symmetric, more.seed, more.init_std), tell
    )
    minima = [c.vector for c in sorted(catalogue.classes, key=lambda c: c.order) if c.minimum]
    _run(catalogue, more, "between minima", between(task, minima, more.bridges, more.seed), tell)


def _flow(catalogue: Classes, more: Further, tell: Callable[[str, int, int], None]) -> None:
    """Follow the flow from small random starts, and add its ends."""
    if more.flows < 1:
        return
    seeds = range(more.seed * more.flows, (more.seed + 1) * more.flows)
    runs = sorted(fit_each(catalogue.task, seeds, options=FlowOptions(snapshots=0)), key=lambda x: x[0])
    for done, (_, run) in enumerate(runs):
        if run.certificate.kind in CRITICAL:
            _reach(catalogue, np.asarray(catalogue.task.flatten(run.parameters)))
        tell("adding minima of the flow", done + 1, len(runs))


def _run(
    catalogue: Classes, more: Further, stage: str, given: Plan | None, tell: Callable[[str, int, int], None]
) -> None:
    if given is None:
        return
    run = (lambda _, plan: run_plan(catalogue.task, plan)) if more.run is None else more.run
    ends = []
    for row in run(stage, given):
        ends.append(row)
        tell(f"searching {stage}", len(ends), len(given.targets))
    for _, end in sorted(ends, key=lambda x: x[0]):
        if end.how == "converged":
            _reach(catalogue, end.vector)


def _reach(catalogue: Classes, vector: np.ndarray) -> None:
    home = catalogue.add(vector)
    if home is not None:
        home.reached += 1
