"""Follow the gradient flow from random starts to critical points, and certify and explain them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import jax.numpy as jnp

from understudy.compilation import keep_compiled_programs
from understudy.dynamics.divergence import find_divergence
from understudy.dynamics.flow import follow
from understudy.dynamics.trajectory import FlowOptions
from understudy.points import Structure, certify
from understudy.points.certificate import carried, certify_in_span
from understudy.points.infinity import describe_escape
from understudy.points.surroundings import power_of_two
from understudy.results.runs import Run as Run
from understudy.results.runs import Runs as Runs
from understudy.tasks.reduction import Reduction
from understudy.tasks.starts import seed_numbers
from understudy.tasks.task import Task


@dataclass(frozen=True)
class FitProgress:
    """The progress of `fit`: finished runs out of `total`, steps of the running lanes, and the largest flow time."""

    finished: int
    total: int
    steps: int
    time: float


Progress = FitProgress  # kept for code that uses the old name


def fit(
    task: Task,
    seeds: int | Sequence[int] = 20,
    *,
    init_std: float = 0.1,
    init: Literal["gaussian", "glorot"] | Any = "gaussian",
    options: FlowOptions | None = None,
    watch: Callable[[FitProgress], None] | None = None,
) -> Runs:
    """Follow the gradient flow from one random start per seed, then certify and explain the points that it reaches.

    Near a critical point the flow is replaced by Newton's method where a check shows that both have the same limit.

    **Arguments**

    - `seeds`: the number of seeds, or a sequence of seeds.
    - `task`: any task; see `Task` and `Loss` for your own.
    - `init`: `"gaussian"` (every weight N(0, init_std²); for `Sphere` tasks uniform on the sphere), `"glorot"`, or the
      starts themselves: a batch of parameters, one per seed.
    - `options`: tolerances and limits of the flow, see `FlowOptions`.
    - `watch`: a function that is called with a `FitProgress` during the work.

    The first fit of a kind takes a few seconds to compile. Compiled programs are kept in the cache directory
    (`UNDERSTUDY_CACHE`, or `~/.cache/understudy`), unless you have set one for JAX (`JAX_COMPILATION_CACHE_DIR`).

    >>> import understudy as us
    >>> runs = us.fit(us.Population(us.Teacher.orthonormal(3, dim=4), width=2), seeds=2)
    >>> runs[0].certificate.kind, runs[0].structure.label
    ('minimum', '1-copy-1-average')
    >>> [(group.label, group.count) for group in runs.groups()]
    [('1-copy-1-average', 2)]
    """
    keep_compiled_programs()
    options = FlowOptions() if options is None else options
    found = sorted(fit_each(task, seeds, init_std, init, options, watch), key=lambda x: x[0])
    return Runs([run for _, run in found], task, options.times)


def fit_each(
    task: Task,
    seeds: int | Sequence[int] = 20,
    init_std: float = 0.1,
    init: Literal["gaussian", "glorot"] | Any = "gaussian",
    options: FlowOptions | None = None,
    watch: Callable[[FitProgress], None] | None = None,
) -> Iterator[tuple[int, Run]]:
    """Like `fit`, but yield (position, run) as soon as each run is finished."""
    numbers = seed_numbers(seeds)
    reduction = task.reduce(_begin(task, numbers, init_std, init))
    flow_task: Task = reduction.task
    finished = 0

    def report(_: int, steps: int, time: float) -> None:
        if watch is not None:
            watch(FitProgress(finished, len(numbers), steps, time))

    for position, trajectory in follow(flow_task, reduction.vectors, options, watch=report):
        parameters = task.unflatten(jnp.asarray(reduction.lift(jnp.asarray(trajectory.vector), position)))
        found = find_divergence(trajectory, scale=power_of_two(flow_task.target_scale))
        diverging = describe_escape(flow_task, trajectory, found).words if found else None
        if reduction.outside is None:
            certificate = certify(task, parameters, diverging=diverging)
        else:  # the point is already known in the span, so it need not be found again
            certificate = certify_in_span(flow_task, trajectory.vector, reduction.outside, diverging=diverging)
            certificate = carried(certificate, partial(_lift, reduction, position), trajectory.vector)
        explained = _with_prediction(flow_task.structure(trajectory.vector))
        finished += 1
        yield (
            position,
            Run(numbers[position], parameters, trajectory.loss, certificate, explained, trajectory, flow_task),
        )


def _lift(reduction: Reduction, position: int, vector: Any) -> Any:
    return reduction.lift(vector, position)


def _with_prediction(structure: Structure) -> Structure:
    if structure.setting is None:
        return structure
    from understudy.theory import predicted_loss

    return replace(structure, predicted_loss=predicted_loss(structure))


def _begin(task: Task, numbers: list[int], init_std: float, init: Any) -> Any:
    """Flat starts, one row per seed."""
    if isinstance(init, str):
        return task.starts(numbers, init, init_std)
    vectors = task.flatten(init)
    if vectors.ndim != 2 or len(vectors) != len(numbers):
        raise ValueError(f"{len(numbers)} seeds need as many starts; received a batch of shape {vectors.shape}.")
    return vectors
