"""Rows of plain numbers and words as the cells of a claim, so that long claims continue where they were stopped."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr


def as_dataset(row: dict[str, Any]) -> "xr.Dataset":
    """A row of JSON values as the dataset that a store keeps.

    >>> as_rows([as_dataset({"k": 2, "minima": ["2-copy"]})])
    [{'k': 2, 'minima': ['2-copy']}]
    """
    import xarray as xr

    return xr.Dataset(attrs={"row": json.dumps(row)})


def as_rows(datasets: Iterable["xr.Dataset"]) -> list[dict[str, Any]]:
    """The rows again, in the same order."""
    return [json.loads(dataset.attrs["row"]) for dataset in datasets]
