"""One way to compute descriptions, here or on a cluster: seeds that a store holds are reused, the others are added.

On a cluster one item of work is a description and a group of its seeds. Workers send their rows back, and only the
client writes them. So workers need no shared file system.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from understudy import activations, clusters
from understudy.clusters import WorkError
from understudy.experiments.description import Description
from understudy.results.rows import SeedRows, join_rows, seeds_in
from understudy.store import Store

if TYPE_CHECKING:
    import xarray as xr

T = TypeVar("T")

TOGETHER = 16
"""Number of small runs that are advanced together."""

GRACE_SECONDS = 5.0
"""How long the client waits for finished rows after the time limit, at which workers stop by themselves."""


class _LimitReached(Exception):
    pass


@dataclass(frozen=True)
class Place:
    """Where to compute: on a Dask cluster (its address or its scheduler file), or on `workers` processes here."""

    cluster: str | None = None
    scheduler_file: str | os.PathLike[str] | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        clusters.check_place(self.cluster, self.scheduler_file, self.workers)

    @property
    def is_remote(self) -> bool:
        """Whether a running cluster was named."""
        return self.cluster is not None or self.scheduler_file is not None


@dataclass(frozen=True)
class CollectProgress:
    """The progress of a collection: of `total` seeds, `done` were computed now, `reused` were stored, `failed` failed.

    `note` says what is being done.
    """

    done: int
    reused: int
    failed: int
    total: int
    seconds: float
    note: str = ""

    @property
    def seconds_left(self) -> float | None:
        """Estimated from the mean pace so far; None before the first seed is done."""
        left = self.total - self.done - self.reused - self.failed
        if left <= 0:
            return 0.0
        return self.seconds / (self.done + self.failed) * left if self.done + self.failed else None


@dataclass(frozen=True)
class FailedSeeds:
    """Seeds of one description that could not be computed, and why."""

    description: Description
    seeds: tuple[int, ...]
    error: WorkError

    def __str__(self) -> str:
        told = ", ".join(f"{k} {v}" for k, v in self.description.configuration().items() if k != "kind")
        which = f"seed {self.seeds[0]}" if len(self.seeds) == 1 else f"seeds {self.seeds[0]} to {self.seeds[-1]}"
        return f"{told}, {which}: {self.error.error}: {self.error.message}"


@dataclass
class Collection:
    """The outcome for the seeds of several descriptions.

    - `reused`: how many seeds were stored before; `failed`: seeds that could not be computed.
    - `unfinished`: seeds for which there was no time, by the position of their description.
    - `unsaved`: why rows could not be stored, or None. They are in `rows` in any case.
    """

    descriptions: list[Description]
    seeds: list[int]
    rows: list[xr.Dataset | None]
    reused: int = 0
    computed: int = 0
    failed: list[FailedSeeds] = field(default_factory=list)
    unfinished: dict[int, list[int]] = field(default_factory=dict)
    unsaved: str | None = None


def collect_rows(
    descriptions: Sequence[Description],
    seeds: Sequence[int],
    store: Store | None = None,
    *,
    place: Place | None = None,
    progress: Callable[[CollectProgress], None] | None = None,
    limit: float | None = None,
) -> Collection:
    """The rows of these seeds for every description. Seeds that `store` does not hold are computed on Dask workers.

    - `place`: a cluster, or how many processes to start here (default: one per core).
    - `limit`: seconds after which no new seeds are begun, and running ones are abandoned.

    Rows are stored as they arrive. After a KeyboardInterrupt the finished rows are stored before it is raised again.
    """
    collector = _Collector(list(descriptions), list(seeds), store, progress)
    collector.report()
    if any(collector.missing):
        collector.compute(Place() if place is None else place, limit)
    return collector.result()


class _Collector:
    """Runs on the client: submits groups of seeds, and stores the rows that are returned."""

    def __init__(
        self,
        descriptions: list[Description],
        seeds: list[int],
        store: Store | None,
        progress: Callable[[CollectProgress], None] | None,
    ):
        self.collection = Collection(descriptions, seeds, [None] * len(descriptions))
        self.progress = progress
        self.keepers = [None if store is None else SeedRows(store, d.configuration(), d.needed) for d in descriptions]
        stored = [None if keeper is None else keeper.load() for keeper in self.keepers]
        self.parts: list[list[xr.Dataset]] = [[] if rows is None else [rows] for rows in stored]
        self.missing = [[s for s in seeds if s not in seeds_in(rows)] for rows in stored]
        self.collection.reused = len(seeds) * len(descriptions) - sum(map(len, self.missing))
        self.started = time.monotonic()

    def report(self, note: str = "") -> None:
        if self.progress is not None:
            c = self.collection
            failed = sum(len(f.seeds) for f in c.failed)
            total = len(c.seeds) * len(c.descriptions)
            seconds = time.monotonic() - self.started
            self.progress(CollectProgress(c.computed, c.reused, failed, total, seconds, note))

    def compute(self, place: Place, limit: float | None) -> None:
        count = sum(map(len, self.missing))
        with clusters.connect(place.cluster, place.scheduler_file, _processes(place, self.missing)) as client:
            workers = len(client.nthreads()) if place.is_remote else _processes(place, self.missing)
            descriptions = self.collection.descriptions
            groups = [
                (number, group)
                for number, waiting in enumerate(self.missing)
                for group in seed_groups(waiting, group_size(count, workers, descriptions[number].most_together))
            ]
            items = [
                (type(d), d.configuration(), dict(d.arrays), group, limit)
                for d, group in ((descriptions[number], group) for number, group in groups)
            ]
            outcomes = clusters.compute(compute_group, items, client, tick=partial(self._tick, limit))
            try:
                for position, outcome in outcomes:
                    self._take(*groups[position], outcome)
                    self.report()
                    self._tick(limit)
            except _LimitReached:
                pass
            finally:
                outcomes.close()  # type: ignore[attr-defined]
                self._flush()

    def _tick(self, limit: float | None) -> None:
        self.report()
        # Workers stop by themselves at the limit; the client waits a little for what they have finished.
        if limit is not None and time.monotonic() - self.started > limit + GRACE_SECONDS:
            raise _LimitReached

    def _take(self, number: int, group: list[int], outcome: xr.Dataset | WorkError | None) -> None:
        if isinstance(outcome, WorkError):
            failure = FailedSeeds(self.collection.descriptions[number], tuple(group), outcome)
            self.collection.failed.append(failure)
            return
        if outcome is None:
            return
        self.collection.computed += outcome.sizes["seed"]
        self.parts[number].append(outcome)
        keeper = self.keepers[number]
        if keeper is not None:
            self._try(partial(keeper.put, outcome))

    def _flush(self) -> None:
        self.collection.unsaved = None
        for keeper in self.keepers:
            if keeper is not None:
                self._try(keeper.flush)

    def _try(self, store: Callable[[], None]) -> None:
        try:
            store()
        except OSError as error:
            self.collection.unsaved = str(error)

    def result(self) -> Collection:
        c = self.collection
        given_up: dict[int, set[int]] = {}
        for f in c.failed:
            given_up.setdefault(id(f.description), set()).update(f.seeds)
        for number, parts in enumerate(self.parts):
            if parts:
                rows = join_rows(parts)
                there = seeds_in(rows)
                c.rows[number] = rows.sel(seed=[s for s in c.seeds if s in there])
            done = set().union(*map(seeds_in, parts)) | given_up.get(id(c.descriptions[number]), set())
            left = [s for s in c.seeds if s not in done]
            if left:
                c.unfinished[number] = left
        return c


def compute_group(item: tuple[type[Description], dict[str, Any], dict[str, Any], list[int], float | None]) -> Any:
    """Runs on a worker: the rows of one group of seeds."""
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    description, configuration, arrays, seeds, seconds = item
    for name in (configuration.get("activation"), configuration.get("student_activation")):
        if isinstance(name, str) and activations.is_module_function(name):
            activations.load(name)  # the client has chosen it, and trusts its workers with code anyway
    return description.of(configuration, arrays).rows(seeds, seconds=seconds)


def group_size(seeds: int, workers: int, most: int = 100) -> int:
    """Number of seeds per group: one group per worker, or several groups if that would be large; at most `most`.

    Up to 16 small runs are advanced together at the cost of a few, so smaller groups would save little.

    >>> group_size(10_000, 100), group_size(320, 100), group_size(20, 2), group_size(10**6, 2)
    (25, 3, 10, 100)
    """
    share = max(1, seeds // max(workers, 1))
    return min(most, share if share <= TOGETHER else max(TOGETHER, share // 4))


def seed_groups(seeds: Sequence[int], size: int) -> list[list[int]]:
    """The seeds in groups of `size`, the last perhaps smaller."""
    return [list(seeds[i : i + size]) for i in range(0, len(seeds), size)]


def _processes(place: Place, missing: list[list[int]]) -> int:
    return min(place.workers or clusters.job_count(), max(sum(map(len, missing)), 1))


def in_background(produce: Callable[[], Iterator[T]], tick: Callable[[], None], seconds: float = 0.1) -> Iterator[T]:
    """Run an iterator in a thread and yield its items here; `tick` is called while there is no item.

    The calling thread can be interrupted at any time. Otherwise a running compilation would delay the interrupt. An
    exception of the iterator is raised here.
    """
    items: queue.Queue[tuple[str, Any]] = queue.Queue()

    def work() -> None:
        try:
            for item in produce():
                items.put(("item", item))
            items.put(("end", None))
        except BaseException as error:
            items.put(("error", error))

    threading.Thread(target=work, daemon=True).start()
    while True:
        try:
            what, value = items.get(timeout=seconds)
        except queue.Empty:
            tick()
            continue
        if what == "error":
            raise value
        if what == "end":
            return
        yield value
