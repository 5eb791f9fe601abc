"""A grid of experiments on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import xarray as xr

from understudy.experiments.aligning.experiment import Experiment
from understudy.experiments.collecting import CollectProgress, Place, collect_rows
from understudy.store import Store


def collect_on_cluster(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    store: Store,
    *,
    cluster: str | None = None,
    scheduler_file: str | os.PathLike[str] | None = None,
    progress: Callable[[CollectProgress], None] | None = None,
) -> list[xr.Dataset]:
    """The rows of these seeds for every experiment, as `collect` returns and stores them.

    Raises `RuntimeError` if some could not be computed, and `OSError` if some could not be stored. The others are kept.
    """
    found = collect_rows(experiments, seeds, store, place=Place(cluster, scheduler_file), progress=progress)
    if found.failed:
        raise RuntimeError(f"{len(found.failed)} groups of seeds failed; the first: {found.failed[0]}")
    if found.unsaved is not None:
        raise OSError(f"Results could not be stored: {found.unsaved}")
    return [rows for rows in found.rows if rows is not None]
