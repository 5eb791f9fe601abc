"""Cells: the parts of a long computation, here or on a cluster. Each is stored when it is done, so that an interrupted
claim continues where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.papers.claim import Progress
from understudy.papers.provenance import code_key

if TYPE_CHECKING:
    import xarray as xr

    from understudy.experiments.collecting import Place
    from understudy.store import Store


@dataclass
class Reused:
    """The seconds that it took to compute the cells which were read from the store instead of being computed again."""

    seconds: float = 0.0


_directory: ContextVar[Path | None] = ContextVar("directory", default=None)
_place: ContextVar[Place | None] = ContextVar("place", default=None)
_reused: ContextVar[Reused | None] = ContextVar("reused", default=None)


@contextmanager
def cells_in(directory: Path, place: Place | None = None) -> Iterator[Reused]:
    """Inside, claims keep their cells in this directory, and compute them on the cluster that `place` names.

    Yields what the cells cost that are only read.
    """
    reused = Reused()
    tokens = _directory.set(directory), _place.set(place), _reused.set(reused)
    try:
        yield reused
    finally:
        _directory.reset(tokens[0])
        _place.reset(tokens[1])
        _reused.reset(tokens[2])


def remote_place() -> Place | None:
    """The cluster that the running claim computes its cells on; None for this machine."""
    return _place.get()


def cell_store(function: Callable[..., Any]) -> Store | None:
    """Where the running claim keeps the cells that `function` computes: cells of other code are not found there."""
    from understudy.store import Store

    directory = _directory.get()
    return None if directory is None else Store(directory / code_key(function))


def compute(
    function: Callable[[dict[str, Any]], xr.Dataset],
    cells: Sequence[Mapping[str, Any]],
    progress: Progress,
    *,
    keep: bool,
    until: float = 1.0,
) -> list[xr.Dataset]:
    """The results of all cells, in order; `until`: the share of the claim's progress at their end.

    With `keep`, cells are computed on all cores, each is stored when it is done, and stored cells are skipped.
    Otherwise, or without a directory, they are computed in this process, one after another. A cluster is used in both
    cases.
    """
    from understudy.sweeps import run

    def tell(done: int, total: int) -> None:
        progress(until * done / max(total, 1), f"{done} of {total} cells")

    place = remote_place()
    store = cell_store(function) if keep or place is not None else None
    if store is None:
        results = []
        for i, cell in enumerate(cells):
            tell(i, len(cells))
            results.append(function(dict(cell)))
        tell(len(cells), len(cells))
        return results
    outcome = run(
        partial(_timed, function),
        cells,
        store,
        cluster=place.cluster if place else None,
        scheduler_file=place.scheduler_file if place else None,
        progress=lambda p: tell(p.done + p.skipped + p.failed, p.total),
    )
    if outcome.failed:
        raise RuntimeError(
            f"{len(outcome.failed)} of {len(cells)} cells failed; the first: {outcome.failed[0]}. Run it again to "
            "retry them."
        )
    if (reused := _reused.get()) is not None:
        kept = [store.load(cell) for cell in outcome.skipped]
        reused.seconds += sum(float(dataset.attrs.get("seconds", 0.0)) for dataset in kept if dataset is not None)
    return list(outcome.datasets())


def _timed(function: Callable[[dict[str, Any]], xr.Dataset], cell: dict[str, Any]) -> xr.Dataset:
    """Compute a cell; the attribute `seconds` of the result says how long it took."""
    since = time.perf_counter()
    dataset = function(cell)
    return dataset.assign_attrs(seconds=time.perf_counter() - since)
