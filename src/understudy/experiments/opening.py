"""`understudy.open`: read stored results as objects, with the task that they describe."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from understudy.branches import stored as stored_branches
from understudy.experiments.data_fit import describe_fit
from understudy.experiments.description import arrays_in
from understudy.experiments.exploring import open_graph
from understudy.experiments.flow_fit import FlowFit
from understudy.landscape.graph_file import KIND as EXPLORE
from understudy.results import Runs, from_dataset
from understudy.results.opening import FIT, open_results
from understudy.store import read_result
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
    opened = open_results(path, task, _task_of)
    if kind_of(opened) == EXPLORE:
        return open_graph(opened, task)
    return _OBJECTS.get(kind_of(opened), lambda dataset: dataset)(opened)


def open_fit(path: str | os.PathLike[str]) -> tuple[FlowFit, Runs]:
    """The description in the file of a fit, and its runs; raises `ValueError` if the file is something else."""
    dataset = read_result(path)
    configuration = json.loads(dataset.attrs["configuration"])
    if configuration.get("kind") != FIT or set(configuration) == {"kind"}:
        raise ValueError(f"{path} does not say what was fitted; give a file that `understudy fit --out` wrote.")
    fit = describe_fit(configuration, arrays_in(dataset))
    return fit, from_dataset(dataset, fit.task())


def _task_of(configuration: Mapping[str, Any], dataset: xr.Dataset) -> Task | None:
    if set(configuration) == {"kind"}:  # saved from Python: the task is not described
        return None
    return describe_fit(configuration, arrays_in(dataset)).task()


_OBJECTS: dict[str, Callable[[Any], Any]] = {stored_branches.KIND: stored_branches.from_dataset}
"""How files of other kinds than `fit` become objects again."""


def kind_of(opened: Any) -> str:
    """The kind in the configuration of an opened dataset; empty for other objects."""
    import xarray as xr

    if not isinstance(opened, xr.Dataset):
        return ""
    return str(json.loads(opened.attrs["configuration"]).get("kind", ""))
