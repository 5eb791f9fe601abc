"""What a stored result says in a few lines: which points, how often, at which loss."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from understudy.points.grouping import group_ends


@dataclass(frozen=True)
class Line:
    """Runs that ended in one kind of point; `first` is the row that stands for them."""

    kind: str
    label: str
    count: int
    loss: float
    predicted_loss: float | None
    least_eigenvalue: float
    gradient_norm: float
    flow_time: float
    flat_dimension: int
    first: int
    rows: tuple[int, ...]


def summarise(rows: xr.Dataset, configuration: Mapping[str, Any]) -> list[Line]:
    """Group rows by the point they ended in, up to symmetry, most frequent first."""
    kinds, labels, losses = (rows[name].values.tolist() for name in ("kind", "label", "loss"))
    flat_dimensions = rows["flat_dimension"].values.astype(int).tolist()
    lines = []
    for group in group_ends(kinds, labels, losses, flat_dimensions, list(rows["eigenvalue"].values)):
        first = group[0]
        lines.append(
            Line(
                kind=kinds[first],
                label=labels[first],
                count=len(group),
                loss=losses[first],
                predicted_loss=predicted_loss(labels[first], configuration),
                least_eigenvalue=float(rows["least_eigenvalue"].values[group].min()),
                gradient_norm=float(rows["gradient_norm"].values[group].max()),
                flow_time=float(np.median(rows["flow_time"].values[group])),
                flat_dimension=flat_dimensions[first],
                first=first,
                rows=tuple(group),
            )
        )
    return lines


def predicted_loss(label: str, configuration: Mapping[str, Any]) -> float | None:
    """The loss theory gives for a copy-average label of an erf student with trained outgoing weights, if any."""
    if (
        configuration.get("activation") != "erf"
        or configuration.get("outgoing") != "trained"
        or "sphere" in configuration
    ):
        return None
    teachers, students = int(configuration["teacher"]), int(configuration["student"])
    one_average = re.fullmatch(r"(?:(\d+)-copy)?-?(?:(1)-average)?", label)
    listed = re.fullmatch(r"\(([\d,]+)\)-copy-average", label)
    if listed:
        partition = tuple(int(x) for x in listed.group(1).split(","))
    elif one_average and label:
        copies = int(one_average.group(1) or 0)
        partition = (1,) * copies + ((teachers - copies,) if one_average.group(2) else ())
    else:
        return None
    if sum(partition) != teachers or len(partition) != students:
        return None
    from understudy.theory import copy_average_loss

    return float(copy_average_loss("erf", partition))
