"""A grid of experiments on a Dask cluster: a cell is one experiment and a group of seeds, as `sweeps` computes and keeps cells."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import xarray as xr

from understudy import sweeps
from understudy.experiments.aligning.experiment import Experiment
from understudy.experiments.aligning.runs import run, seed_groups
from understudy.results import SeedRows
from understudy.store import Store


def collect_on_cluster(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    store: Store,
    *,
    cluster: str | None = None,
    scheduler_file: str | os.PathLike[str] | None = None,
    progress: Callable[[sweeps.Progress], None] | None = None,
) -> list[xr.Dataset]:
    """Rows of these seeds for every experiment, as `collect` gives and stores them; groups that fail are in the error's message, the others are kept."""
    keepers = [SeedRows(store, e.configuration()) for e in experiments]
    parts = [
        (keeper, {**e.configuration(), "kind": "align-part", "seeds": group})
        for e, keeper in zip(experiments, keepers, strict=True)
        for group in seed_groups(keeper.missing(seeds))
    ]
    done = sweeps.run(
        train_part,
        [cell for _, cell in parts],
        store,
        cluster=cluster,
        scheduler_file=scheduler_file,
        progress=progress,
    )
    for keeper, cell in parts:
        rows = store.load(cell)
        if rows is not None:
            rows.attrs = {}
            keeper.add(rows)
            store.path(cell).unlink(missing_ok=True)
    if done.failed:
        raise RuntimeError(f"{len(done.failed)} of {len(parts)} groups of seeds failed; the first: {done.failed[0]}")
    found = []
    for keeper in keepers:
        stored = keeper.load()
        assert stored is not None
        found.append(stored.sel(seed=list(seeds)))
    return found


def train_part(cell: dict[str, Any]) -> xr.Dataset:
    """On a worker: the seeds of one cell, on as many threads as the worker has."""
    from distributed import get_worker

    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    return run(Experiment.of(cell), cell["seeds"], workers=get_worker().state.nthreads)
