"""Grids of tasks on Dask distributed: workers on this machine by default, resumable.

A sweep is a list of cells, each a JSON-able configuration; `run` computes `function(cell)` for every cell that its
store does not hold yet. One cell is one file, stored as soon as it is finished, so whatever stops a sweep (a failing
cell, a killed worker, Ctrl-C, `kill -9`) costs the cells in flight and nothing else: run it again and it goes on.

Who stores: the worker itself, if it sees the store's directory; a probe file, new for each run, tells. A worker
that does not see it (another machine without a shared file system) sends the dataset back, and the client stores it.
"""

import itertools
import json
import logging
import os
import queue
import signal
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from understudy.store import Store, canonical_json

if TYPE_CHECKING:
    from distributed import Client, Future

# Dask blames a worker's death on every cell assigned to it, also on those that wait. So a cell is tried again this
# often in company; if its workers still die, once more and as often again alone, where the blame is certain: three
# tries after the first.
ALLOWED_FAILURES = 1

# Seconds between looks at the cluster (and calls of `progress`) while no cell finishes.
TICK_SECONDS = 1.0

# A cluster without workers, or that cannot be reached, is given this long to come back.
PATIENCE_SECONDS = 60.0

# A scheduler that does not answer within this time is taken to be absent.
CONNECT_SECONDS = 10.0

# One worker, one core: threads of several workers on the same cores slow each other down a hundredfold (a batched LU of twenty
# 144 × 144 matrices takes 5 ms with one BLAS thread, 470 ms with contended ones).
# XLA reads NPROC for the size of its thread pool; the flag alone leaves the pool at the number of cores.
_WORKER_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",
}
_XLA_FLAG = "--xla_cpu_multi_thread_eigen=false"


@dataclass(frozen=True)
class Progress:
    """How far a sweep is: of `total` cells, `done` were computed now, `skipped` were stored before, `failed` failed."""

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


@dataclass(frozen=True)
class Failure:
    """A cell that could not be computed, and why."""

    cell: dict[str, Any]
    error: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{canonical_json(self.cell)}: {self.error}: {self.message}"


@dataclass(frozen=True)
class SweepResult:
    """What became of each cell, in the order given."""

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


@dataclass(frozen=True)
class _Outcome:
    """What a worker reports of a cell: a dataset for the client to store, an error, or neither (it is stored)."""

    dataset: xr.Dataset | None = None
    error: tuple[str, str, str] | None = None


def grid(**axes: Any) -> list[dict[str, Any]]:
    """The cells of a grid: the product of the axes, the last one running fastest.

    An axis is a list, tuple, range or NumPy array of values; anything else (a number, a string, None) is one value for
    all cells. A value that is itself a list goes in a list.

    >>> grid(activation="erf", teachers=[5, 8])
    [{'activation': 'erf', 'teachers': 5}, {'activation': 'erf', 'teachers': 8}]
    >>> grid(partition=[(1, 4)])
    [{'partition': (1, 4)}]
    """
    values: list[list[Any]] = []
    for name, axis in axes.items():
        if isinstance(axis, np.ndarray):
            axis = axis.tolist()
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
    progress: Callable[[Progress], None] | None = None,
) -> SweepResult:
    """Computes and stores `function(cell)` for every cell that `store` does not hold.

    - `function`: of a module that the workers can import. It gets the cell in JSON's types (lists for tuples).
    - `cluster`, `scheduler_file`: the address (`tcp://host:8786`) or the file of a running Dask scheduler, whose
      workers have this package. Without either, `workers` processes are started here (default: one per core), with
      one thread each. As always with processes, a script that does so keeps its own code under
      `if __name__ == "__main__":`.
    - `progress`: called after every cell, and about every second in between.

    A failing cell does not stop the rest; it is in the result's `failed`. A cell whose worker is killed is tried
    again, up to three times (on a running cluster up to twice its scheduler's `allowed-failures` plus one).
    KeyboardInterrupt stops the workers at once and is raised again; what is finished is stored.
    """
    if cluster is not None and scheduler_file is not None:
        raise ValueError(f"Give cluster or scheduler_file, not both; received {cluster!r} and {scheduler_file!r}.")
    if workers is not None and workers < 1:
        raise ValueError(f"A sweep needs at least one worker; received workers={workers}.")
    # A cell given twice is one cell.
    unique: dict[str, dict[str, Any]] = {}
    for cell in cells:
        text = canonical_json(cell)
        unique[text] = json.loads(text)
        store.path(unique[text])  # refuses a bad `kind` before anything starts
    # `load`, not `status`: it moves a damaged file aside, so that it stays to be looked at.
    pending = {text: cell for text, cell in unique.items() if store.load(cell) is None}
    sweep = _Sweep(store, pending, skipped=len(unique) - len(pending), progress=progress)
    sweep.report()
    if pending:
        if cluster is None and scheduler_file is None:
            client = _local_client(min(workers or core_count(), len(pending)))
        else:
            client = _remote_client(cluster, scheduler_file)
        with client as connected, _probe(store) as probe:
            sweep.compute(function, connected, probe)
    return SweepResult(
        store=store,
        completed=[cell for text, cell in pending.items() if text not in sweep.failures],
        skipped=[cell for text, cell in unique.items() if text not in pending],
        failed=[sweep.failures[text] for text in pending if text in sweep.failures],
        cells=list(unique.values()),
    )


class _Sweep:
    """The client's side of one run: submits the cells, collects the outcomes, watches the cluster."""

    def __init__(
        self,
        store: Store,
        pending: Mapping[str, dict[str, Any]],
        skipped: int,
        progress: Callable[[Progress], None] | None,
    ):
        self.store = store
        self.pending = pending
        self.skipped = skipped
        self.progress = progress
        self.done = 0
        self.failures: dict[str, Failure] = {}
        self.suspects: dict[str, Failure] = {}  # cells whose workers were killed, perhaps not by them
        self.started = time.monotonic()

    def report(self) -> None:
        if self.progress is not None:
            total = self.skipped + len(self.pending)
            seconds = time.monotonic() - self.started
            self.progress(Progress(self.done, self.skipped, len(self.failures), total, seconds))

    def compute(self, function: Callable[[dict[str, Any]], xr.Dataset], client: "Client", probe: Path) -> None:
        self.started = time.monotonic()
        task = partial(_compute_cell, function, str(self.store.directory), probe.name)
        self._compute_together(task, list(self.pending), client, probe)
        suspects, self.suspects = self.suspects, {}
        for text in suspects:
            self._compute_together(task, [text], client, probe)
        for text, failure in self.suspects.items():
            self.failures[text] = failure
        self.report()

    def _compute_together(
        self, task: Callable[[dict[str, Any]], "_Outcome"], texts: list[str], client: "Client", probe: Path
    ) -> None:
        finished: queue.SimpleQueue[str] = queue.SimpleQueue()
        # Keys of one new group: Dask keeps the cells of a large group back until a worker is free, which spares
        # waiting cells the blame and lets workers that join late have their share. New, so that nothing
        # is reused from an earlier round or run on this cluster.
        group = f"cell-{uuid.uuid4().hex}"
        keys = [(group, index) for index in range(len(texts))]
        submitted = client.map(task, [self.pending[text] for text in texts], key=keys, pure=False)
        futures: dict[str, Future] = dict(zip(texts, submitted, strict=True))
        del submitted  # a future that nobody holds frees its result
        for text, future in futures.items():
            future.add_done_callback(lambda _, text=text: finished.put(text))
        healthy = time.monotonic()
        while futures:
            try:
                text = finished.get(timeout=TICK_SECONDS)
            except queue.Empty:
                probe.touch()  # keeps it from counting as left behind
                if _has_workers(client):
                    healthy = time.monotonic()
                elif time.monotonic() - healthy > PATIENCE_SECONDS:
                    advice = f"the cluster had no workers for {PATIENCE_SECONDS:.0f} s; start some and run it again"
                    for text in futures:
                        self._fail(text, "ClusterLost", advice)
                    return
            else:
                self._collect(text, futures.pop(text))
            self.report()

    def _collect(self, text: str, future: "Future") -> None:
        from distributed import KilledWorker

        try:
            outcome: _Outcome = future.result()
            if outcome.dataset is not None:
                self.store.save(self.pending[text], outcome.dataset)
        except KilledWorker as error:
            self.suspects[text] = Failure(self.pending[text], *_describe(error))
        except Exception as error:
            # What the worker could not report: `function` is not importable there, the disk is full.
            self._fail(text, *_describe(error))
        else:
            if outcome.error is not None:
                self._fail(text, *outcome.error)
            else:
                self.done += 1

    def _fail(self, text: str, error: str, message: str, trace: str = "") -> None:
        self.failures[text] = Failure(self.pending[text], error, message, trace)


def _describe(error: BaseException) -> tuple[str, str, str]:
    return type(error).__name__, str(error), "".join(traceback.format_exception(error))


def _compute_cell(
    function: Callable[[dict[str, Any]], xr.Dataset], directory: str, probe: str, cell: dict[str, Any]
) -> _Outcome:
    """Runs on the worker: computes one cell, and stores it if the worker sees the client's store."""
    visible = (Path(directory) / probe).exists()
    try:
        store = Store(directory) if visible else None
        # It may be stored by now: by a worker that was killed before it could say so, or by another sweep.
        if store is not None and store.load(cell) is not None:
            return _Outcome()
        # A copy: the result is stored under the cell as given, whatever `function` does to it.
        dataset = function(json.loads(json.dumps(cell)))
        if not isinstance(dataset, xr.Dataset):
            raise TypeError(f"A sweep's function returns an xarray.Dataset; received {type(dataset).__name__}.")
        if store is None:
            return _Outcome(dataset=dataset.load())
        store.save(cell, dataset)
        return _Outcome()
    except (Exception, SystemExit) as error:
        # As text: an exception that cannot be pickled would be lost on the way.
        return _Outcome(error=_describe(error))


@contextmanager
def _probe(store: Store) -> Iterator[Path]:
    """A file in the store's directory whose name nobody can know who does not see the directory."""
    store.directory.mkdir(parents=True, exist_ok=True)
    probe = store._temporary("probe")
    probe.touch()
    try:
        yield probe
    finally:
        probe.unlink(missing_ok=True)


def core_count() -> int:
    """How many cores this process may use."""
    from dask.system import CPU_COUNT  # counts what a container or an affinity mask leaves us

    return int(CPU_COUNT)


def _has_workers(client: "Client") -> bool:
    if client.status != "running" or client.scheduler is None:
        return False
    try:
        return bool(client.sync(client.scheduler.ncores, callback_timeout=10))
    except (OSError, TimeoutError):
        return False


@contextmanager
def _local_client(workers: int) -> Iterator["Client"]:
    """A client of `workers` new processes on this machine, one thread each; a worker that dies is replaced."""
    import dask
    from distributed import Client, LocalCluster

    environment = dict(_WORKER_ENVIRONMENT, XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {_XLA_FLAG}".strip())
    settings = {
        "distributed.scheduler.allowed-failures": ALLOWED_FAILURES,
        # No more than one cell on a worker at a time.
        "distributed.scheduler.worker-saturation": 1.0,
        **{f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in environment.items()},
    }
    changed = {*dask.config.get("distributed.nanny.pre-spawn-environ"), *environment, "PYTHONHASHSEED"}
    before = {name: os.environ.get(name) for name in changed}
    try:
        with (
            dask.config.set(settings),
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # None would still take port 8787, and warn if it is taken
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            try:
                yield client
            except BaseException:
                # Closing politely waits for the cells in flight. They are not wanted any more.
                for nanny in cluster.workers.values():
                    nanny.close_gracefully()  # it will not start another worker
                    if nanny.pid is not None:
                        os.kill(nanny.pid, signal.SIGKILL)
                raise
    finally:
        # Dask sets the workers' environment in this process too, and leaves it so.
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _remote_client(cluster: str | None, scheduler_file: str | os.PathLike[str] | None) -> Iterator["Client"]:
    """A client of a running cluster; the cluster is left running. Closing it cancels the cells not yet begun."""
    from distributed import Client

    if scheduler_file is not None and not Path(scheduler_file).is_file():
        raise FileNotFoundError(
            f"There is no scheduler file {scheduler_file}; start the scheduler with "
            f"`dask scheduler --scheduler-file {scheduler_file}`, or name no cluster to use this machine."
        )
    where = cluster if scheduler_file is None else scheduler_file
    try:
        client = Client(
            cluster, scheduler_file=None if scheduler_file is None else str(scheduler_file), timeout=CONNECT_SECONDS
        )
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"No Dask scheduler answers at {where}: {error}. Start one with `dask scheduler` and "
            "`dask worker ADDRESS`, or name no cluster to use this machine."
        ) from error
    with client:
        yield client
