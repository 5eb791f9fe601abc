"""Runs of one fit, computed here or on a cluster, with the seeds that a store holds reused."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from understudy.experiments import collecting
from understudy.experiments.collecting import CollectProgress, FailedSeeds, Place, collect_rows, in_background
from understudy.experiments.description import OutOfTimeError
from understudy.experiments.flow_fit import FlowFit
from understudy.results import Run, Runs
from understudy.results.rows import SeedRows, join_rows, seeds_in
from understudy.store import Store

if TYPE_CHECKING:
    import xarray as xr

    from understudy.fitting import FitProgress


@dataclass(frozen=True)
class FitOutcome:
    """The outcome of the seeds of a fit.

    - `runs`: those that are done, in the order asked for; `reused` of them were stored before.
    - `unfinished`: seeds for which there was no time; `failed`: seeds that could not be computed.
    - `unsaved`: the reason if runs could not be stored, else None.
    - `abandoned`: whether a thread is still computing, because a compilation did not end in time.
    - `rows`: the runs as a dataset, if they were stored.
    """

    runs: Runs
    reused: int
    unfinished: list[int] = field(default_factory=list)
    failed: list[FailedSeeds] = field(default_factory=list)
    unsaved: str | None = None
    abandoned: bool = False
    rows: xr.Dataset | None = None


def collect_fit(
    fit: FlowFit,
    seeds: Sequence[int],
    store: Store | None = None,
    *,
    place: Place | None = None,
    progress: Callable[[CollectProgress], None] | None = None,
    limit: float | None = None,
    starts: dict[int, Any] | None = None,
    jobs: int | None = None,
) -> FitOutcome:
    """Runs of these seeds: those that `store` holds are reused, the others computed and stored as they end.

    **Arguments**

    - `place`: a cluster. Default: this machine. `jobs`: number of processes here, see `understudy.fit`.
    - `limit`: seconds after which running seeds are abandoned. Finished runs are kept.
    - `starts`: parameters by seed, for a fit that continues another.

    KeyboardInterrupt is raised again after finished runs have been stored.
    """
    if place is not None:
        return _on_workers(fit, seeds, store, place, progress, limit)
    collector = _LocalCollector(fit, list(seeds), store, progress)
    collector.compute(limit, starts, jobs)
    return collector.outcome()


def runs_of_rows(fit: FlowFit, rows: xr.Dataset | None) -> Runs:
    """The runs in rows of this fit."""
    from understudy.results import from_dataset

    if rows is None:
        return fit.to_runs([])
    found = from_dataset(rows, fit.task())
    return Runs(list(found), found.task, found.times, fit.configuration())


def _on_workers(
    fit: FlowFit,
    seeds: Sequence[int],
    store: Store | None,
    place: Place,
    progress: Callable[[CollectProgress], None] | None,
    limit: float | None,
) -> FitOutcome:
    found = collect_rows([fit], seeds, store, place=place, progress=progress, limit=limit)
    runs = runs_of_rows(fit, found.rows[0])
    left = found.unfinished.get(0, [])
    return FitOutcome(runs, found.reused, left, found.failed, found.unsaved, rows=found.rows[0])


class _LocalCollector:
    def __init__(
        self, fit: FlowFit, seeds: list[int], store: Store | None, progress: Callable[[CollectProgress], None] | None
    ):
        self.fit, self.seeds, self.progress = fit, seeds, progress
        self.keeper = None if store is None else SeedRows(store, fit.configuration(), fit.needed)
        self.stored = None if self.keeper is None else self.keeper.load()
        there = seeds_in(self.stored)
        self.missing = [s for s in seeds if s not in there]
        self.finished: list[Run] = []
        self.waiting: list[Run] = []
        self.parts: list[xr.Dataset] = [] if self.stored is None else [self.stored]
        self.unsaved: str | None = None
        self.note = "compiling"
        self.abandoned = False
        self.begun = self.saved = time.monotonic()

    def compute(self, limit: float | None, starts: dict[int, Any] | None, jobs: int | None) -> None:
        if not self.missing:
            return

        def watch(progress: FitProgress) -> None:
            if progress.time:  # 0 while only helper processes compute
                self.note = f"flow, t ≤ {progress.time:.2g}"
            elif progress.finished:
                self.note = "flow"

        def produce() -> Any:
            batch = _batch(starts, self.missing)
            return self.fit.follow(self.missing, watch=watch, seconds=limit, starts=batch, jobs=jobs)

        def tick() -> None:
            self.report()
            if limit is not None and time.monotonic() - self.begun > limit + collecting.GRACE_SECONDS:
                self.abandoned = True
                raise OutOfTimeError

        self.report()
        try:
            for run in in_background(produce, tick):
                self.finished.append(run)
                self.waiting.append(run)
                self.report()
                if time.monotonic() - self.saved > 2:
                    self.keep()
        except OutOfTimeError:
            pass
        finally:
            self.keep(last=True)

    def keep(self, last: bool = False) -> None:
        """Store the waiting runs. If that fails, they stay in memory and wait for the next call."""
        if self.keeper is None:
            return
        try:
            if self.waiting:
                rows = self.fit.to_rows(self.waiting)
                self.waiting.clear()
                self.parts.append(rows)
                self.keeper.put(rows)
            if last:
                self.unsaved = None
                self.keeper.flush()
        except OSError as error:
            self.unsaved = str(error)
        self.saved = time.monotonic()

    def report(self) -> None:
        if self.progress is not None:
            reused = len(self.seeds) - len(self.missing)
            seconds = time.monotonic() - self.begun
            self.progress(CollectProgress(len(self.finished), reused, 0, len(self.seeds), seconds, self.note))

    def outcome(self) -> FitOutcome:
        runs = {run.seed: run for run in self.finished}
        known = set(self.seeds) & seeds_in(self.stored)
        if known and self.stored is not None:
            runs |= {run.seed: run for run in runs_of_rows(self.fit, self.stored.sel(seed=sorted(known)))}
        unfinished = [s for s in self.seeds if s not in runs]
        done = self.fit.to_runs([runs[s] for s in self.seeds if s in runs])
        rows = join_rows(self.parts).sel(seed=done.seeds) if self.parts else None
        reused = len(self.seeds) - len(self.missing)
        return FitOutcome(done, reused, unfinished, [], self.unsaved, self.abandoned, rows)


def _batch(starts: dict[int, Any] | None, seeds: list[int]) -> Any:
    """Flat parameters of these seeds, one row each."""
    import numpy as np

    return None if starts is None else np.stack([np.asarray(starts[s]) for s in seeds])
