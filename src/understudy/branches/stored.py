"""Continuations in files: one row per point, readable with plain xarray."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.branches.result import Branch, Continuation, Side, SpecialPoint

if TYPE_CHECKING:
    import xarray as xr

KIND = "continuation"


def to_dataset(result: Continuation) -> xr.Dataset:
    """Points of all branches along the dimension `row`, special points along `special`."""
    import xarray as xr

    branches = result.branches
    numbers = np.concatenate([np.full(len(b), i) for i, b in enumerate(branches)])
    data: dict[str, Any] = {
        "branch": ("row", numbers),
        "parameter_value": ("row", np.concatenate([b.parameters for b in branches])),
        "point": (("row", "entry"), np.concatenate([b.points for b in branches])),
        "loss": ("row", np.concatenate([b.losses for b in branches])),
        "index": ("row", np.concatenate([b.index for b in branches])),
        "least_eigenvalue": ("row", np.concatenate([b.least_eigenvalue for b in branches])),
    }
    about = result.to_dict()
    for record in about["branches"]:
        for name in ("parameters", "losses", "index", "least_eigenvalue", "points"):
            del record[name]
    return xr.Dataset(data, attrs={KIND: json.dumps(about), "parameter": result.parameter})


def from_dataset(dataset: xr.Dataset) -> Continuation:
    """The continuation that `to_dataset` has described, without its family."""
    if KIND not in dataset.attrs:
        raise ValueError("This is not a stored continuation.")
    about = json.loads(dataset.attrs[KIND])
    numbers = dataset["branch"].values
    names = ("parameter_value", "point", "loss", "index", "least_eigenvalue")
    branches = [
        Branch(*(dataset[name].values[numbers == i] for name in names), **record)
        for i, record in enumerate(about["branches"])
    ]
    error = about["slope_error"]
    return Continuation(
        tuple(branches),
        tuple(map(_special, about["special_points"])),
        about["parameter"],
        tuple(about["interval"]),
        about["slope"],
        float("nan") if error is None else error,
    )


def _special(record: dict[str, Any]) -> SpecialPoint:
    sides = {name: None if record[name] is None else Side(**record[name]) for name in ("before", "after")}
    return SpecialPoint(
        kind=record["kind"],
        parameter=record["parameter"],
        error=record["error"],
        point=np.asarray(record["point"], float),
        loss=record["loss"],
        null=np.asarray(record["null"], float),
        branches=tuple(record["branches"]),
        **sides,
    )
