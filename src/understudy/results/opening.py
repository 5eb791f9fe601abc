"""Open stored results: `understudy.open`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.results.cells import Cells
from understudy.results.dataset import from_dataset
from understudy.results.runs import Runs
from understudy.store import DamagedFileError, OtherFormatError, read_result, write_result
from understudy.tasks.task import Task

if TYPE_CHECKING:
    import xarray as xr

FIT = "fit"


def save_runs(runs: Runs, path: Path) -> Path:
    """Write runs to one sealed file; see `Runs.save`."""
    file = path if path.suffix == ".nc" else path.with_name(path.name + ".nc")
    return write_result(file, runs.configuration or {"kind": FIT}, runs.to_dataset())


def open_results(
    path: str | os.PathLike[str],
    task: Task | None = None,
    task_of: Callable[[Mapping[str, Any], xr.Dataset], Task | None] = lambda _, __: None,
) -> Any:
    """Open a stored result: a file of a fit as `Runs`, a directory as `Cells`, other files as datasets.

    `task`: what was fitted, for files that do not say so. `task_of(configuration, dataset)`: the task that a file
    describes.
    """
    place = Path(path)
    if not place.is_dir():
        return _open_file(place, task, task_of)
    cells = []
    for file in sorted(place.glob("*.nc")):
        try:
            opened = _open_file(file, task, task_of)
        except (DamagedFileError, OtherFormatError, OSError):
            continue
        if isinstance(opened, Runs):
            cells.append(opened)
    return Cells(cells)


def _open_file(file: Path, task: Task | None, task_of: Callable[[Mapping[str, Any], xr.Dataset], Task | None]) -> Any:
    dataset = read_result(file)
    configuration = json.loads(dataset.attrs["configuration"])
    if configuration.get("kind") != FIT:
        return dataset
    return from_dataset(dataset, task_of(configuration, dataset) if task is None else task)
