"""`explore`: the critical points of a task, of any index, and how they join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.compilation import keep_compiled_programs
from understudy.landscape.classes import CRITICAL, Class, Classes
from understudy.landscape.descents import Descent, descend
from understudy.landscape.further import FLOWS, Further, run_plan, search_further
from understudy.landscape.graph import Completeness, Connection, CriticalPoint, Graph, euler_count
from understudy.landscape.search import End, farthest, lanes_for, plan
from understudy.tasks.task import Task

LARGEST = 1000
"""Most parameters, after reduction: every step of a search factorises the Hessian."""

MOST_MEMORY, HELD = 1e9, 6
"""Most bytes that searches may take, and how many arrays over inputs, parameters and searches they hold (measured)."""


@dataclass(frozen=True)
class ExploreProgress:
    """The progress of `explore`: `done` of `total` items of a `stage`, and how many `classes` are known."""

    stage: str
    done: int
    total: int
    classes: int = 0


def explore(
    task: Task,
    starts: int = 256,
    *,
    seed: int = 0,
    init_std: float = 0.5,
    descents: bool = True,
    bridges: int | None = None,
    symmetric: int | None = None,
    flows: int = FLOWS,
    watch: Callable[[ExploreProgress], None] | None = None,
) -> Graph:
    """Find critical points of any index, certify them, remove symmetric copies, and follow saddles down to minima.

    Searches run from random starts, many at a time (see `landscape.search`), and from symmetric ones. The gradient
    flow adds minima, as `fit` finds them. Then searches start between minima. Each class is polished by Newton's
    method and certified. Both sides of each saddle of index 1 are followed by the gradient flow, twice,
    with pushes of two sizes. The graph says how often each class was found, how many classes are probably missing, and
    whether the Morse count comes out where there is one.

    **Arguments**

    - `task`: any task with a smooth loss of up to 1,000 parameters.
    - `starts`: number of random searches; `seed`: which ones. Searches i of a seed are the same for any `starts`.
    - `init_std`: standard deviation of the starts, varied between a third and twice of it.
    - `descents`: whether to follow saddles down.
    - `bridges`: number of searches from points between two minima; `symmetric`: number of searches from symmetric
      points. Default: a quarter of `starts` each.
    - `flows`: number of runs of the flow, as in `fit`.
    - `watch`: a function that is called with an `ExploreProgress`.

    >>> import understudy as us
    >>> graph = us.explore(us.Population(us.Teacher.orthonormal(2), width=1), starts=64)
    >>> [(point.kind, point.orbit) for point in graph.points if point.isolated]
    [('minimum', 2)]
    """
    keep_compiled_programs()
    check(task, starts, seed, init_std)
    rows = []
    for row in search_each(task, seed, range(starts), init_std):
        rows.append(row)
        if watch is not None:
            watch(ExploreProgress("searching", len(rows), starts))
    ends = [end for _, end in sorted(rows, key=lambda r: r[0])]
    more = Further(seed, init_std, flows, _quarter(starts, symmetric), _quarter(starts, bridges))
    return assemble(task, ends, more, descents=descents, watch=watch)


def _quarter(starts: int, given: int | None) -> int:
    return starts // 4 if given is None else given


def check(task: Task, starts: int, seed: int, init_std: float) -> None:
    """Raise if these arguments make no sense, or the task cannot be explored."""
    if isinstance(starts, bool) or not isinstance(starts, (int, np.integer)) or starts < 1:
        raise ValueError(f"starts is a positive whole number; received {starts!r}.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed is a whole number, not negative; received {seed!r}.")
    if not (np.isfinite(init_std) and init_std > 0):
        raise ValueError(f"init_std is a positive number; received {init_std!r}.")
    if task.kinked:
        raise ValueError(
            f"explore needs a smooth loss; this {type(task).__name__} task has kinks at zeros of pre-activations. Use "
            "a smooth activation, or a Population task, whose loss is smooth except at zero weights."
        )
    size = task.reduce(task.starts([0], "gaussian", init_std)).task.size
    if size > LARGEST:
        raise ValueError(f"explore factorises Hessians, and is for at most {LARGEST} parameters; this task has {size}.")
    needed = 8.0 * HELD * task.nodes_at(farthest(task)) * size * lanes_for(size)
    if needed > MOST_MEMORY:
        raise ValueError(
            f"Searches go out to parameters of norm {farthest(task):g}. There this {type(task).__name__} task sums "
            f"over {task.nodes_at(farthest(task)):,} inputs, which takes about {needed / 1e9:.0f} GB. Give a fixed "
            "lattice, such as on_grid(teacher, width, spacing=0.5)."
        )


def search_each(task: Task, seed: int, numbers: Sequence[int], init_std: float) -> Iterator[tuple[int, End]]:
    """Run the searches with these numbers; yield (number, end) as they end, in the parameters of the task."""
    chosen = list(numbers)
    if not chosen:
        return
    for position, end in run_plan(task, plan(task, seed, chosen, init_std)):
        yield chosen[position], end


def assemble(
    task: Task,
    ends: Sequence[End],
    more: Further,
    *,
    descents: bool = True,
    watch: Callable[[ExploreProgress], None] | None = None,
    configuration: Any = None,
) -> Graph:
    """The graph of the ends of searches: sort and certify them, search further, follow saddles down, count."""

    def tell(stage: str, done: int, total: int) -> None:
        if watch is not None:
            watch(ExploreProgress(stage, done, total, len(catalogue.classes)))

    catalogue = Classes(task)
    captured = _sort(catalogue, ends, tell)
    search_further(catalogue, more, tell)
    ways = _descend_all(catalogue, tell) if descents else []
    points = catalogue.points()  # this also sorts the classes
    connections = _distinct([_connection(catalogue, way) for way in ways])
    about = {"task": type(task).__name__, **task.about()}
    notes = _notes(task, catalogue, points)
    return Graph(
        tuple(points),
        tuple(sorted(connections, key=lambda c: c.saddle)),
        _completeness(task, ends, captured, points),
        task,
        about,
        notes,
        configuration,
    )


def _sort(catalogue: Classes, ends: Sequence[End], tell: Callable[[str, int, int], None]) -> int:
    """Put converged ends into classes, exact ones first; returns how many are in a class."""
    converged = sorted((e for e in ends if e.how == "converged"), key=lambda e: e.gradient_norm)
    captured = 0
    for i, end in enumerate(converged):
        home = catalogue.add(end.vector)
        if home is not None:
            home.found += 1
            captured += 1
        tell("certifying", i + 1, len(converged))
    return captured


_Way = tuple[Class, list[list[Class | None]], list[list[Descent]]]


def _descend_all(catalogue: Classes, tell: Callable[[str, int, int], None]) -> list[_Way]:
    """Follow every saddle of index 1; new saddles of index 1 that descents find are followed too."""
    ways: list[_Way] = []
    followed: list[np.ndarray] = []
    while True:
        saddles = [
            (c, vector) for c in catalogue.classes for _, vector in c.pieces if not any(vector is f for f in followed)
        ]
        if not saddles:
            return ways
        followed += [vector for _, vector in saddles]
        found = descend(catalogue.task, [vector for _, vector in saddles], lambda i, n: tell("descending", i, n))
        for number, (saddle, _) in enumerate(saddles):
            sides = [[d for d in found if d.saddle == number and d.side == side] for side in (0, 1)]
            homes = [[_home(catalogue, d) for d in side] for side in sides]
            for side in homes:
                if (home := side[0]) is not None:
                    home.reached += 1
            ways.append((saddle, homes, sides))


def _home(catalogue: Classes, descent: Descent) -> Class | None:
    if descent.certificate.kind not in CRITICAL:
        return None
    return catalogue.add(descent.vector)


def _number(catalogue: Classes, wanted: Class) -> int:
    return next(i for i, c in enumerate(catalogue.classes) if c is wanted)


def _connection(catalogue: Classes, way: _Way) -> Connection:
    saddle, homes, sides = way
    numbers = [[None if home is None else _number(catalogue, home) for home in side] for side in homes]
    words = [f"{runs[0].certificate.kind}, loss {runs[0].loss:.9g}" for runs in sides]
    ends = (numbers[0][0], numbers[1][0])
    falls = all(run.loss < saddle.loss for runs in sides for run in runs)
    certified = falls and all(_agree(side, runs) for side, runs in zip(numbers, sides, strict=True))
    return Connection(_number(catalogue, saddle), ends, certified, (words[0], words[1]))


def _agree(numbers: Sequence[int | None], runs: Sequence[Descent]) -> bool:
    """Whether all pushes on one side end at one critical point, or all run off to infinity."""
    if None in numbers:
        return all(run.certificate.kind == "diverging" for run in runs)
    return len(set(numbers)) == 1


def _distinct(connections: Iterable[Connection]) -> list[Connection]:
    """Without repeated ways of one family: the same saddle, ends and verdict, whichever side is called the first."""
    kept = {(c.saddle, *sorted(map(str, c.ends)), c.certified): c for c in connections}
    return list(kept.values())


def _completeness(task: Task, ends: Sequence[End], captured: int, points: Sequence[CriticalPoint]) -> Completeness:
    counts = [p.found for p in points if p.found]
    once, twice = counts.count(1), counts.count(2)
    expected, reason = task.euler_characteristic()
    euler, obstacle = euler_count(points)
    return Completeness(
        starts=len(ends),
        converged=captured,
        endings=_endings(ends, captured),
        classes=len(counts),
        once=once,
        twice=twice,
        estimate=len(counts) + once * (once - 1) / (2 * (twice + 1)),
        euler=euler if expected is not None else None,
        expected=expected,
        reason=reason if expected is None or euler is not None else obstacle,
    )


def _endings(ends: Iterable[End], captured: int) -> dict[str, int]:
    counts = Counter(end.how for end in ends)
    unclear = counts.pop("converged", 0) - captured
    return {**dict(sorted(counts.items())), **({"not critical after all": unclear} if unclear else {})}


def _notes(task: Task, catalogue: Classes, points: Sequence[CriticalPoint]) -> tuple[str, ...]:
    notes = []
    if any(p.family for p in points):
        notes.append(
            "A family is represented by the point of least index that was found; its orbit, in brackets, is that of "
            "this point."
        )
    if task.kinks(np.zeros(task.size)):
        notes.append("Points with zero incoming vectors are left out: the loss has kinks there.")
    return tuple(notes)
