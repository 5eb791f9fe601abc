"""`understudy.open`: read stored results as objects, with the task that they describe."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.branches import stored as stored_branches
from understudy.experiments.data_fit import describe_fit
from understudy.experiments.description import arrays_in
from understudy.experiments.exploring import open_graph
from understudy.experiments.flow_fit import FlowFit
from understudy.landscape.graph_file import KIND as EXPLORE
from understudy.results import Cells, Runs, from_dataset
from understudy.results.runs import FIT
from understudy.store import DamagedFileError, OtherFormatError, read_result
from understudy.tasks.task import Task

if TYPE_CHECKING:
    import xarray as xr


def open(path: str | os.PathLike[str], task: Task | None = None) -> Any:  # `open` is the public name
    """Open a stored result: a file of `fit` as `Runs`, a directory of them as `Cells`, a file of `continuation` as
    `Continuation`, of `explore` as a `Graph`, other files as datasets.

    An opened result has all that the fresh result had, and prints the same table. `task` is needed only for results of
    a task that was made in Python with a network of your own. Without it the parameters are flat vectors.

    Raises `OSError` if there is no such file, and `ValueError` (with the reason) if it is not a sound result.
    """
    place = Path(path)
    if place.is_dir():
        return _cells_in(place, task)
    dataset = read_result(place)
    kind = _configuration(dataset).get("kind")
    if kind == FIT:
        return _runs_in(dataset, task)
    if kind == EXPLORE:
        return open_graph(dataset, task)
    return stored_branches.from_dataset(dataset) if kind == stored_branches.KIND else dataset


def open_fit(path: str | os.PathLike[str]) -> tuple[FlowFit, Runs]:
    """The description in the file of a fit, and its runs; raises `ValueError` if the file is something else."""
    dataset = read_result(path)
    fit = _described(dataset) if _configuration(dataset).get("kind") == FIT else None
    if fit is None:
        raise ValueError(f"{path} does not say what was fitted; give a file that `understudy fit --out` wrote.")
    return fit, from_dataset(dataset, fit.task())


def _cells_in(directory: Path, task: Task | None) -> Cells:
    """The fits in a directory; files of other kinds and damaged ones are left out."""
    cells = []
    for file in sorted(directory.glob("*.nc")):
        try:
            dataset = read_result(file)
        except (DamagedFileError, OtherFormatError, OSError):
            continue
        if _configuration(dataset).get("kind") == FIT:
            cells.append(_runs_in(dataset, task))
    return Cells(cells)


def _runs_in(dataset: xr.Dataset, task: Task | None) -> Runs:
    fit = _described(dataset) if task is None else None
    return from_dataset(dataset, task if fit is None else fit.task())


def _described(dataset: xr.Dataset) -> FlowFit | None:
    """The description of a fit; None if it was saved from Python, and the task is not described."""
    configuration = _configuration(dataset)
    return None if set(configuration) == {"kind"} else describe_fit(configuration, arrays_in(dataset))


def _configuration(dataset: xr.Dataset) -> dict[str, Any]:
    return json.loads(dataset.attrs["configuration"])
