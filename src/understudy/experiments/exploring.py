"""The description of an exploration. Searches are rows of a store, so an interrupted exploration continues."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from understudy.experiments.collecting import CollectProgress, in_background
from understudy.experiments.description import array_variables, arrays_in
from understudy.experiments.fit import Fit
from understudy.landscape.explore import ExploreProgress, assemble, check, search_each
from understudy.landscape.further import Further, run_plan
from understudy.landscape.graph import Graph
from understudy.landscape.graph_file import KIND, from_dataset, to_dataset
from understudy.landscape.search import End, Plan
from understudy.results.rows import SeedRows
from understudy.store import Store

if TYPE_CHECKING:
    import xarray as xr

    from understudy.tasks.task import Task

TOGETHER = 16
"""Ends that are stored together."""

_OF_FLOWS = ("kind", "init", "init_std", "tolerance", "max_time", "times", "begin")
"""Fields of a fit that say how it is followed, not what is fitted."""


@dataclass(frozen=True)
class Explore:
    """The task to explore, and the searches.

    - `case`: a `Fit`, of which only the task counts.
    - `seed`: which searches; `init_std`: the standard deviation of their starts.
    """

    kind: ClassVar[str] = "explore-searches"
    needed: ClassVar[frozenset[str]] = frozenset({"vector", "loss", "gradient_norm", "how", "steps"})

    case: Fit
    seed: int = 0
    init_std: float = 0.5

    def configuration(self) -> dict[str, Any]:
        """The description in JSON types; its hash names the file of the searches."""
        case = {name: value for name, value in self.case.configuration().items() if name not in _OF_FLOWS}
        return {"kind": self.kind, **case, "seed": self.seed, "start_std": self.init_std}

    def task(self) -> Task:
        """The task that is explored."""
        return self.case.task()

    def to_rows(self, ends: Mapping[int, End]) -> xr.Dataset:
        """Ends of searches as rows."""
        import xarray as xr

        found = list(ends.values())
        return xr.Dataset(
            {
                "vector": (("seed", "parameter"), np.stack([e.vector for e in found])),
                "loss": ("seed", [e.loss for e in found]),
                "gradient_norm": ("seed", [e.gradient_norm for e in found]),
                "how": ("seed", [e.how for e in found]),
                "steps": ("seed", [e.steps for e in found]),
            },
            coords={"seed": list(ends)},
        ).assign(array_variables(self.case.arrays))


def ends_of(rows: xr.Dataset | None, starts: int) -> dict[int, End]:
    """The ends in stored rows, of searches below `starts`."""
    if rows is None:
        return {}
    columns = {name: rows[name].values for name in ("vector", "loss", "gradient_norm", "how", "steps")}
    return {
        int(number): End(
            columns["vector"][i],
            float(columns["loss"][i]),
            float(columns["gradient_norm"][i]),
            str(columns["how"][i]),
            int(columns["steps"][i]),
        )
        for i, number in enumerate(rows["seed"].values)
        if int(number) < starts
    }


def collect_graph(
    description: Explore,
    starts: int,
    store: Store | None = None,
    progress: Callable[[CollectProgress], None] | None = None,
) -> Graph:
    """The graph of an exploration. Searches that `store` holds are reused; the others are stored as they end.

    The finished graph is stored too. If it is already stored, it is read.
    """
    task = description.task()
    check(task, starts, description.seed, description.init_std)
    configuration = {**description.configuration(), "kind": KIND, "starts": starts}
    if store is not None and (stored := store.load(configuration)) is not None and "graph" in stored.attrs:
        return from_dataset(stored, task, configuration)
    collector = _Collector(description, starts, store, progress)
    collector.search(task)
    ends = [collector.ends[i] for i in range(starts)]
    graph = collector.assemble(task, ends, configuration)
    if store is not None:
        store.save(configuration, to_dataset(graph).assign(array_variables(description.case.arrays)))
    return graph


class _Collector:
    """Runs searches in a thread, keeps their ends, and reports progress."""

    def __init__(
        self,
        description: Explore,
        starts: int,
        store: Store | None,
        progress: Callable[[CollectProgress], None] | None,
    ):
        self.description, self.starts, self.store, self.progress = description, starts, store, progress
        self.keeper = None if store is None else SeedRows(store, description.configuration(), description.needed)
        self.ends = ends_of(None if self.keeper is None else self.keeper.load(), starts)
        self.reused = len(self.ends)
        self.begun = time.monotonic()
        self.note = "compiling"

    def search(self, task: Task) -> None:
        missing = [i for i in range(self.starts) if i not in self.ends]
        self.report()
        if not missing:
            return

        def produce() -> Iterator[tuple[int, End]]:
            return search_each(task, self.description.seed, missing, self.description.init_std)

        waiting: dict[int, End] = {}
        try:
            for number, end in in_background(produce, self.report):
                if not waiting and self.note == "compiling":
                    self.note, self.begun = "searching", time.monotonic()
                self.ends[number] = waiting[number] = end
                if len(waiting) >= TOGETHER:
                    self.keep(waiting)
                self.report()
        finally:
            self.keep(waiting, last=True)

    def keep(self, waiting: dict[int, End], last: bool = False) -> None:
        """Store the ends that are not stored yet."""
        if self.keeper is not None:
            if waiting:
                self.keeper.put(self.description.to_rows(waiting))
            if last:
                self.keeper.flush()
        waiting.clear()

    def assemble(self, task: Task, ends: list[End], configuration: dict[str, Any]) -> Graph:
        def watch(told: ExploreProgress) -> None:
            self.note = f"{told.stage}, {told.done} of {told.total}"

        def produce() -> Iterator[Graph]:
            own, quarter = self.description, self.starts // 4
            run = partial(self.further, task)
            more = Further(own.seed, own.init_std, symmetric=quarter, bridges=quarter, run=run)
            yield assemble(task, ends, more, watch=watch, configuration=configuration)

        (graph,) = in_background(produce, self.report)
        return graph

    def further(self, task: Task, stage: str, given: Plan) -> Iterator[tuple[int, End]]:
        """Run the searches of a later stage. Stored ones are reused, the others are stored as they end."""
        if self.store is None:
            yield from run_plan(task, given)
            return
        kind = f"explore-{stage.replace(' ', '-')}"
        keeper = SeedRows(
            self.store, {**self.description.configuration(), "kind": kind, "starts": self.starts},
            self.description.needed,
        )  # fmt: skip
        known = ends_of(keeper.load(), len(given.targets))
        yield from known.items()
        missing = [i for i in range(len(given.targets)) if i not in known]
        if not missing:
            return
        try:
            for position, end in run_plan(task, given.only(missing)):
                keeper.put(self.description.to_rows({missing[position]: end}))
                yield missing[position], end
        finally:
            keeper.flush()

    def report(self) -> None:
        if self.progress is not None:
            done = len(self.ends) - self.reused
            seconds = time.monotonic() - self.begun
            self.progress(CollectProgress(done, self.reused, 0, self.starts, seconds, self.note))


def open_graph(dataset: xr.Dataset, task: Task | None = None) -> Graph:
    """The graph in a stored dataset, with the task that it describes unless one is given."""
    configuration = json.loads(dataset.attrs["configuration"])
    if set(configuration) == {"kind"}:  # saved from Python: the task is not described
        return from_dataset(dataset, task)
    told = {k: v for k, v in configuration.items() if k not in ("kind", "seed", "start_std", "starts", "arrays")}
    own = Explore(Fit(**told, arrays=arrays_in(dataset))).task() if task is None else task
    return from_dataset(dataset, own, configuration)
