"""Follow the gradient flow from random starts to critical points, and certify and explain them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from understudy.compilation import keep_compiled_programs
from understudy.dynamics.divergence import find_divergence
from understudy.dynamics.flow import Glimpse, follow, lanes_for
from understudy.dynamics.large import LARGE
from understudy.dynamics.trajectory import FlowOptions, Trajectory
from understudy.points import Certificate, Structure, certify
from understudy.points.certificate import carried, certify_in_span
from understudy.points.infinity import describe_escape, escape_by_scale
from understudy.points.small_losses import refined_loss
from understudy.points.surroundings import power_of_two
from understudy.processes import job_count, share
from understudy.results.runs import Run as Run
from understudy.results.runs import Runs as Runs
from understudy.tasks.reduction import Reduction
from understudy.tasks.starts import seed_numbers
from understudy.tasks.task import Task, checked_task


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
    jobs: int | None = None,
    proof: bool = False,
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
    - `jobs`: number of processes. Unless given, helper processes are started if the rest of the work would take more
      than a few seconds, up to one process per core (or `UNDERSTUDY_JOBS`). Results do not depend on it.
    - `proof`: also try to prove what each end point is; see `certify`. Proofs are stored with the runs.

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
    found = sorted(fit_each(task, seeds, init_std, init, options, watch, jobs, proof), key=lambda x: x[0])
    return Runs([run for _, run in found], task, options.times)


def fit_each(
    task: Task,
    seeds: int | Sequence[int] = 20,
    init_std: float = 0.1,
    init: Literal["gaussian", "glorot"] | Any = "gaussian",
    options: FlowOptions | None = None,
    watch: Callable[[FitProgress], None] | None = None,
    jobs: int | None = None,
    proof: bool = False,
    observe: Callable[[int, Glimpse], None] | None = None,
) -> Iterator[tuple[int, Run]]:
    """Like `fit`, but yield (position, run) as soon as each run is finished.

    `observe(position, glimpse)` is called after every step of every run, see `dynamics.follow`. All runs are then
    followed in this process. Glimpses are in the parameters of the reduced task.
    """
    checked_task(task, "what to fit")
    numbers = seed_numbers(seeds)
    processes = job_count(jobs) if observe is None else 1
    reduction = task.reduce(_begin(task, numbers, init_std, init))
    shares = _shares(reduction, FlowOptions() if options is None else options)
    finished: set[int] = set()

    def report(steps: int = 0, time: float = 0.0) -> None:
        if watch is not None:
            watch(FitProgress(len(finished), len(numbers), steps, time))

    for ended in _compute(shares, processes, jobs is None, report, observe):
        position, trajectory = ended.position, ended.trajectory
        if position in finished:  # a helper died, and another began its share again
            continue
        parameters = task.unflatten(jnp.asarray(reduction.lift(jnp.asarray(trajectory.vector), position)))
        if ended.certificate is None:
            certificate = certify(task, parameters, diverging=ended.diverging)
        else:
            certificate = carried(ended.certificate, partial(_lift, reduction, position), trajectory.vector)
        if proof:
            from understudy.proofs import prove

            certificate = replace(certificate, proof=prove(task, parameters))
        finished.add(position)
        yield (
            position,
            Run(
                numbers[position], parameters, trajectory.loss, certificate, ended.structure, trajectory, reduction.task
            ),
        )


@dataclass(frozen=True)
class _Share:
    """Some of the starts, to be followed together. Which ones go together never depends on the number of processes."""

    task: Task
    positions: tuple[int, ...]
    vectors: np.ndarray
    options: FlowOptions
    outside: int | None
    lanes: int | None


@dataclass(frozen=True)
class _Ended:
    """A run that has ended, explained. The certificate is None if only the large task can give it."""

    position: int
    trajectory: Trajectory
    certificate: Certificate | None
    structure: Structure
    diverging: str | None


def _shares(reduction: Reduction, options: FlowOptions) -> list[_Share]:
    """Equal shares of about four times as many starts as are advanced together, so that few lanes are ever empty."""
    vectors = np.asarray(reduction.vectors)
    count, size = vectors.shape
    lanes = lanes_for(size, count, reduction.task.closed_form)
    together = 1 if lanes == 1 else 4 * lanes
    parts = np.array_split(np.arange(count), -(-count // together))
    fixed = None if lanes == 1 else lanes
    return [
        _Share(reduction.task, tuple(map(int, part)), vectors[part], options, reduction.outside, fixed)
        for part in parts
    ]


def _compute(
    shares: list[_Share],
    processes: int,
    automatic: bool,
    report: Callable[..., None],
    observe: Callable[[int, Glimpse], None] | None,
) -> Iterator[_Ended]:
    """Runs of all shares as they end, computed here and by helpers."""
    if processes == 1 or len(shares) == 1:
        for each in shares:
            yield from _follow_share(each, report, observe)
        return
    large = shares[0].task.size > LARGE
    outcomes = share(
        _follow_share,
        shares,
        processes if large else processes - 1,
        here=partial(_follow_share, watch=report),
        take_part=not large,  # otherwise what helpers have finished would wait here for minutes
        worthwhile=_worthwhile if automatic and not large else _always,
        tick=report,
    )
    for _, ended in outcomes:
        report()
        yield ended


def _always(done: int, waiting: int, seconds: float) -> bool:
    return True


def _worthwhile(done: int, waiting: int, seconds: float) -> bool:
    """Whether the shares not begun would take longer than the start of a helper, judged after 2 s of work."""
    return waiting > 0 and (seconds > 2 if done else seconds > 20)


def _follow_share(
    share: _Share,
    watch: Callable[[int, float], None] | None = None,
    observe: Callable[[int, Glimpse], None] | None = None,
) -> Iterator[_Ended]:
    """Follow the flow from the starts of a share, and certify and explain where it ends."""
    keep_compiled_programs()
    task = share.task

    def report(_: int, steps: int, time: float) -> None:
        if watch is not None:
            watch(steps, time)

    def look(index: int, glimpse: Glimpse) -> None:
        if observe is not None:
            observe(share.positions[index], glimpse)

    looking = None if observe is None else look
    runs = follow(task, share.vectors, share.options, lanes=share.lanes, watch=report, observe=looking)
    for index, trajectory in runs:
        scale = power_of_two(task.target_scale) if trajectory.unit == 1 else 1.0
        found = find_divergence(trajectory, scale=scale)
        if found is None and trajectory.ending == "time limit":  # far out, rounding can hide how slowly the loss falls
            found = find_divergence(trajectory, task, scale)
        escape = describe_escape(task, trajectory, found) if found else escape_by_scale(trajectory)
        diverging = escape.words if escape else None
        certificate = None
        if share.outside is not None:  # the point is already known in the span, so it need not be found again
            certificate = certify_in_span(task, trajectory.vector, share.outside, diverging=diverging)
        structure = _with_prediction(task.structure(trajectory.vector))
        trajectory = replace(trajectory, loss=refined_loss(task, trajectory.vector, trajectory.loss))
        yield _Ended(share.positions[index], trajectory, certificate, structure, diverging)


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
    try:
        vectors = task.flatten(init)
    except (TypeError, AttributeError):
        raise ValueError(
            f"init is 'gaussian', 'glorot' or a batch of parameters; received a {type(init).__name__} that is none."
        ) from None
    if vectors.ndim != 2 or len(vectors) != len(numbers):
        raise ValueError(f"{len(numbers)} seeds need as many starts; received a batch of shape {vectors.shape}.")
    return vectors
