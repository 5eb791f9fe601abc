"""Grids of tasks on Dask distributed: workers on this machine by default, resumable.

A sweep is a list of cells, each a JSON-able configuration; `run` computes `function(cell)` for every cell that its
store does not hold yet. Each cell is one file, stored as soon as it is finished. So whatever stops a sweep (a failing
cell, a killed worker, Ctrl-C, `kill -9`), only the cells in flight are lost. Run it again to continue.

The worker writes the result if it can see the store (checked with a randomly named probe file); otherwise it sends the
dataset back, and the client writes it.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy import clusters
from understudy.clusters import WorkError, core_count, job_count
from understudy.files import remove_stale, temporary_name
from understudy.store import Store, canonical_json

if TYPE_CHECKING:
    import xarray as xr
    from distributed import Client

__all__ = ["Failure", "Progress", "SweepProgress", "SweepResult", "core_count", "grid", "run"]
STALE_PROBE_SECONDS = 60.0
"""A sweep touches its probe file about every second: one this old was left by a sweep that was killed."""


@dataclass(frozen=True)
class SweepProgress:
    """The progress of a sweep of `total` cells: `done` now, `skipped` because they were stored before, `failed`."""

    done: int
    skipped: int
    failed: int
    total: int
    seconds: float

    @property
    def remaining(self) -> int:
        """Cells still to be computed."""
        return self.total - self.done - self.skipped - self.failed

    @property
    def seconds_left(self) -> float | None:
        """Estimated from the mean pace so far; None before the first cell."""
        finished = self.done + self.failed
        if self.remaining == 0:
            return 0.0
        return self.seconds / finished * self.remaining if finished else None


Progress = SweepProgress  # kept for code that uses the old name


@dataclass(frozen=True)
class Failure:
    """A cell that could not be computed, and the reason."""

    cell: dict[str, Any]
    error: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{canonical_json(self.cell)}: {self.error}: {self.message}"


@dataclass(frozen=True)
class SweepResult:
    """The outcome of each cell, in the given order."""

    store: Store
    completed: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    cells: list[dict[str, Any]] = field(default_factory=list)

    def datasets(self) -> Iterator[xr.Dataset]:
        """The stored results, read one at a time, in the order of the cells; failed cells are left out."""
        failed = {canonical_json(failure.cell) for failure in self.failed}
        for cell in self.cells:
            if canonical_json(cell) not in failed:
                dataset = self.store.load(cell)
                if dataset is None:
                    raise FileNotFoundError(
                        f"{self.store.path(cell)} was stored by this sweep and is gone or damaged; run it again."
                    )
                yield dataset


def grid(**axes: Any) -> list[dict[str, Any]]:
    """The cells of a grid: the product of the axes. The last axis varies fastest.

    An axis is a list, tuple, range or NumPy array of values. Anything else (a number, a string, None) is one value for
    all cells. Put a value that is itself a list inside a list.

    >>> grid(activation="erf", teachers=[5, 8])
    [{'activation': 'erf', 'teachers': 5}, {'activation': 'erf', 'teachers': 8}]
    >>> grid(partition=[(1, 4)])
    [{'partition': (1, 4)}]
    """
    values: list[list[Any]] = []
    for name, axis in axes.items():
        if hasattr(axis, "tolist"):
            axis = axis.tolist()  # a NumPy array
        values.append(list(axis) if isinstance(axis, list | tuple | range) else [axis])
        if not values[-1]:
            raise ValueError(f"The axis {name!r} is empty, so the grid has no cells; give it a value or leave it out.")
    return [dict(zip(axes, combination, strict=True)) for combination in itertools.product(*values)]


def run(
    function: Callable[[dict[str, Any]], xr.Dataset],
    cells: Sequence[Mapping[str, Any]],
    store: Store,
    *,
    cluster: str | None = None,
    scheduler_file: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
) -> SweepResult:
    """Compute and store `function(cell)` for every cell that `store` does not hold.

    **Arguments**

    - `function`: a function from a module that the workers can import. It gets the cell in JSON's types (lists for
      tuples).
    - `cluster`, `scheduler_file`: the address (`tcp://host:8786`) or the file of a running Dask scheduler, whose
      workers have this package. Without either, `workers` processes with one thread each are started here (default: one
      per core). As always with processes, such a script must keep its own code under `if __name__ == "__main__":`.
    - `progress`: called after every cell, and about every second in between.

    A failing cell does not stop the others; it is listed in the result's `failed`. A cell whose worker is killed is
    tried again, up to three times (on a running cluster up to twice its scheduler's `allowed-failures` plus one).
    KeyboardInterrupt stops the workers at once and is raised again. Finished cells stay stored.
    """
    clusters.check_place(cluster, scheduler_file, workers)
    # A cell that is given twice is computed once.
    unique: dict[str, dict[str, Any]] = {}
    for cell in cells:
        text = canonical_json(cell)
        unique[text] = json.loads(text)
        store.path(unique[text])  # refuses a bad `kind` before anything starts
    # `load` instead of a check of the file's name: it renames a damaged file, which is then kept for inspection.
    pending = {text: cell for text, cell in unique.items() if store.load(cell) is None}
    sweep = _Sweep(store, pending, skipped=len(unique) - len(pending), progress=progress)
    sweep.report()
    if pending:
        processes = min(workers or job_count(), len(pending))
        with clusters.connect(cluster, scheduler_file, processes) as client, _probe(store) as probe:
            sweep.compute(function, client, probe)
    return SweepResult(
        store=store,
        completed=[cell for text, cell in pending.items() if text not in sweep.failures],
        skipped=[cell for text, cell in unique.items() if text not in pending],
        failed=[sweep.failures[text] for text in pending if text in sweep.failures],
        cells=list(unique.values()),
    )


class _Sweep:
    """The client's side of one run: submits the cells and collects the outcomes."""

    def __init__(
        self,
        store: Store,
        pending: Mapping[str, dict[str, Any]],
        skipped: int,
        progress: Callable[[SweepProgress], None] | None,
    ):
        self.store = store
        self.pending = pending
        self.skipped = skipped
        self.progress = progress
        self.done = 0
        self.failures: dict[str, Failure] = {}
        self.started = time.monotonic()

    def report(self) -> None:
        if self.progress is not None:
            total = self.skipped + len(self.pending)
            seconds = time.monotonic() - self.started
            self.progress(SweepProgress(self.done, self.skipped, len(self.failures), total, seconds))

    def compute(self, function: Callable[[dict[str, Any]], xr.Dataset], client: Client, probe: Path) -> None:
        self.started = time.monotonic()
        work = partial(_compute_cell, function, str(self.store.directory), probe.name)
        texts = list(self.pending)

        def tick() -> None:
            probe.touch()  # a file that is not touched would count as left behind
            self.report()

        for position, outcome in clusters.compute(work, list(self.pending.values()), client, tick=tick):
            self._collect(texts[position], outcome)
            self.report()

    def _collect(self, text: str, outcome: xr.Dataset | WorkError | None) -> None:
        """Note the outcome of a cell: a dataset to store, an error, or None if the worker has stored it."""
        cell = self.pending[text]
        if outcome is not None and not isinstance(outcome, WorkError):
            try:
                self.store.save(cell, outcome)
            except Exception as error:  # a full disk, for instance
                outcome = WorkError.of(error)
        if isinstance(outcome, WorkError):
            self.failures[text] = Failure(cell, outcome.error, outcome.message, outcome.traceback)
        else:
            self.done += 1


def _compute_cell(
    function: Callable[[dict[str, Any]], xr.Dataset], directory: str, probe: str, cell: dict[str, Any]
) -> xr.Dataset | None:
    """Runs on the worker: computes one cell, and stores it if the worker sees the client's store."""
    import xarray as xr

    store = Store(directory) if (Path(directory) / probe).exists() else None
    # It may already be stored: by a worker that was killed before it could report, or by another sweep.
    if store is not None and store.load(cell) is not None:
        return None
    # Pass a copy: the result is stored under the given cell, even if `function` changes its argument.
    dataset = function(json.loads(json.dumps(cell)))
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(f"A sweep's function returns an xarray.Dataset; received {type(dataset).__name__}.")
    if store is None:
        return dataset.load()
    store.save(cell, dataset)
    return None


@contextmanager
def _probe(store: Store) -> Iterator[Path]:
    """A randomly named file in the store's directory, so that only processes that see the directory can find it."""
    store.directory.mkdir(parents=True, exist_ok=True)
    remove_stale(store.directory, STALE_PROBE_SECONDS, "probe.*")
    probe = temporary_name(store.directory / "probe")
    probe.touch()
    try:
        yield probe
    finally:
        probe.unlink(missing_ok=True)
