"""Work on Dask workers, of a running cluster or started here. Items are retried if their worker dies."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import signal
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.extras import need
from understudy.processes.cores import JOBS, unchanged_environment
from understudy.processes.cores import core_count as core_count
from understudy.processes.cores import job_count as job_count

if TYPE_CHECKING:
    from distributed import Client, Future

# Dask blames the death of a worker on every item assigned to it, including items that wait. So an item is retried this
# often alongside others. If its workers still die, it is tried alone, and retried as often again: then the item itself
# must be the cause. That makes three tries after the first.
ALLOWED_FAILURES = 1

# Seconds between looks at the cluster (and calls of `tick`) while nothing finishes.
TICK_SECONDS = 1.0

# A cluster without workers, or that cannot be reached, is given this long to come back.
PATIENCE_SECONDS = 60.0

# A scheduler that does not answer within this time counts as absent.
CONNECT_SECONDS = 10.0

# One worker, one core: threads of several workers on the same cores slow each other down a hundredfold (a batched LU
# of twenty 144 × 144 matrices takes 5 ms with one BLAS thread, 470 ms with contended ones).
# XLA reads NPROC for the size of its thread pool; the flag alone leaves the pool at the number of cores.
_WORKER_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",
    JOBS: "1",
}
_XLA_FLAG = "--xla_cpu_multi_thread_eigen=false"


@dataclass(frozen=True)
class WorkError:
    """The reason why an item could not be computed, as text, because an exception may not be picklable."""

    error: str
    message: str
    traceback: str = ""

    @classmethod
    def of(cls, error: BaseException) -> WorkError:
        """The description of an exception."""
        return cls(type(error).__name__, str(error), "".join(traceback.format_exception(error)))


@contextmanager
def connect(
    cluster: str | None = None,
    scheduler_file: str | os.PathLike[str] | None = None,
    workers: int | None = None,
) -> Iterator[Client]:
    """A client of the cluster at this address or in this file, or of `workers` new processes here (one per core)."""
    check_place(cluster, scheduler_file, workers)
    if cluster is None and scheduler_file is None:
        opened = _local_client(workers or job_count())
    else:
        opened = _remote_client(cluster, scheduler_file)
    with opened as client:
        yield client


def check_place(cluster: str | None, scheduler_file: str | os.PathLike[str] | None, workers: int | None) -> None:
    """Raise `ValueError` if the arguments that say where to compute contradict each other."""
    if cluster is not None and scheduler_file is not None:
        raise ValueError(f"Give cluster or scheduler_file, not both; received {cluster!r} and {scheduler_file!r}.")
    if workers is not None and workers < 1:
        raise ValueError(f"At least one worker is needed; received workers={workers}.")


def compute(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    client: Client,
    *,
    tick: Callable[[], None] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield (position, `function(item)`) for all items as they finish on the client's workers.

    `function` must be from a module that the workers can import. An item that fails yields a `WorkError` instead of a
    value. An item whose worker is killed is tried again, finally alone. `tick` is called about every second. When the
    iterator is closed, items that have not started are cancelled.
    """
    suspects = yield from _together(function, items, list(range(len(items))), client, tick)
    for position in suspects:
        again = yield from _together(function, items, [position], client, tick)
        yield from again.items()


def _together(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    positions: list[int],
    client: Client,
    tick: Callable[[], None] | None,
) -> Any:
    """One round of `compute`. Returns the items whose workers were killed, not necessarily because of these items."""
    from distributed import KilledWorker

    finished: queue.SimpleQueue[int] = queue.SimpleQueue()
    # The keys form one new group. Dask holds back the items of a large group until a worker is free. So waiting items
    # are not blamed for a death, and workers that join late get their share. The group is new, so that nothing is
    # reused from an earlier round or run on this cluster.
    group = f"item-{uuid.uuid4().hex}"
    keys = [(group, position) for position in positions]
    submitted = client.map(partial(_guarded, function), [items[p] for p in positions], key=keys, pure=False)
    futures: dict[int, Future] = dict(zip(positions, submitted, strict=True))
    del submitted  # a future without references frees its result
    for position, future in futures.items():
        future.add_done_callback(lambda _, position=position: finished.put(position))
    suspects: dict[int, WorkError] = {}
    healthy = time.monotonic()
    try:
        while futures:
            try:
                position = finished.get(timeout=TICK_SECONDS)
            except queue.Empty:
                if tick is not None:
                    tick()
                if _has_workers(client):
                    healthy = time.monotonic()
                elif time.monotonic() - healthy > PATIENCE_SECONDS:
                    advice = f"the cluster had no workers for {PATIENCE_SECONDS:.0f} s; start some and run it again"
                    yield from ((lost, WorkError("ClusterLost", advice)) for lost in list(futures))
                    return suspects
                continue
            future = futures.pop(position)
            try:
                outcome = future.result()
            except KilledWorker as error:
                suspects[position] = WorkError.of(error)
            except Exception as error:  # the worker could not report it; for instance, it cannot import `function`
                yield position, WorkError.of(error)
            else:
                yield position, outcome
    finally:
        if futures:
            client.cancel(list(futures.values()), force=True)
    return suspects


def _guarded(function: Callable[[Any], Any], item: Any) -> Any:
    """Runs on the worker."""
    try:
        return function(item)
    except (Exception, SystemExit) as error:
        return WorkError.of(error)


def _has_workers(client: Client) -> bool:
    if client.status != "running" or client.scheduler is None:
        return False
    try:
        return bool(client.sync(client.scheduler.ncores, callback_timeout=CONNECT_SECONDS))
    except (OSError, TimeoutError):
        return False


@contextmanager
def _local_client(workers: int) -> Iterator[Client]:
    """A client of `workers` new processes on this machine, with one thread each. A worker that dies is replaced."""
    need("cluster")
    import dask
    from distributed import Client, LocalCluster

    environment = dict(_WORKER_ENVIRONMENT, XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {_XLA_FLAG}".strip())
    settings = {
        "distributed.scheduler.allowed-failures": ALLOWED_FAILURES,
        # No more than one item on a worker at a time.
        "distributed.scheduler.worker-saturation": 1.0,
        **{f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in environment.items()},
    }
    changed = {*dask.config.get("distributed.nanny.pre-spawn-environ"), *environment, "PYTHONHASHSEED"}
    with (
        unchanged_environment(changed),  # Dask sets the workers' environment in this process too, and leaves it so
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
            # A graceful close would wait for the items in flight, which are no longer needed.
            for nanny in cluster.workers.values():
                nanny.close_gracefully()  # it will not start another worker
                if nanny.pid is not None:
                    os.kill(nanny.pid, signal.SIGKILL)
            raise


@contextmanager
def _remote_client(cluster: str | None, scheduler_file: str | os.PathLike[str] | None) -> Iterator[Client]:
    """A client of a running cluster. Closing it cancels items that have not started; the cluster keeps running."""
    need("cluster")
    from distributed import Client

    where = cluster if scheduler_file is None else str(scheduler_file)
    try:
        address = cluster if scheduler_file is None else _address_in(scheduler_file)
        # A program that is not a scheduler may accept the connection and never answer; `Client` would then wait for
        # ever.
        asyncio.run(_ask(str(address)))
        client = Client(address, timeout=CONNECT_SECONDS)
    except FileNotFoundError:
        raise
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        reason = str(error) or f"no answer within {CONNECT_SECONDS:g} s"
        raise ConnectionError(
            f"No Dask scheduler answers at {where}: {reason}. Start one with `dask scheduler` and "
            "`dask worker ADDRESS`, or name no cluster to use this machine."
        ) from error
    with client:
        _check_installations(client)
        yield client


def _address_in(scheduler_file: str | os.PathLike[str]) -> str:
    if not Path(scheduler_file).is_file():
        raise FileNotFoundError(
            f"There is no scheduler file {scheduler_file}; start the scheduler with "
            f"`dask scheduler --scheduler-file {scheduler_file}`, or name no cluster to use this machine."
        )
    try:
        return str(json.loads(Path(scheduler_file).read_text())["address"])
    except (ValueError, KeyError, TypeError):
        raise ValueError("the file holds no address of a scheduler") from None


async def _ask(address: str) -> None:
    from distributed.core import rpc

    scheduler = rpc(address, timeout=CONNECT_SECONDS)
    try:
        await asyncio.wait_for(scheduler.identity(), CONNECT_SECONDS)
    finally:
        await scheduler.close_rpc()


def _check_installations(client: Client) -> None:
    """Raise `RuntimeError` if a worker cannot use this package, or has another version of it."""
    from understudy import __version__

    found = client.run(_installed_version, on_error="return")
    wrong = {worker: version for worker, version in found.items() if version != __version__}
    if wrong:
        worker, version = next(iter(wrong.items()))
        told = f"{type(version).__name__}: {version}" if isinstance(version, BaseException) else f"version {version}"
        raise RuntimeError(
            f"{len(wrong)} of {len(found)} workers cannot compute this; {worker} says: {told}. "
            f"Install understudy {__version__} in the workers' environment."
        )


def _installed_version() -> str:
    from understudy import __version__

    return __version__
