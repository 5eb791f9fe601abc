"""What a stored result says in a few lines: which points, how often, at which loss."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr


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


def summarise(rows: xr.Dataset, configuration: Mapping[str, Any], tolerance: float = 1e-7) -> list[Line]:
    """Group rows by verdict, label and loss (to a relative `tolerance`), most frequent first."""
    groups: list[list[int]] = []
    kinds, labels, losses = (rows[name].values for name in ("kind", "label", "loss"))
    for i in range(rows.sizes["seed"]):
        for group in groups:
            j = group[0]
            close = abs(losses[i] - losses[j]) <= tolerance * max(abs(losses[j]), 1e-9)
            if kinds[i] == kinds[j] and labels[i] == labels[j] and close:
                group.append(i)
                break
        else:
            groups.append([i])
    lines = []
    for group in sorted(groups, key=lambda g: (-len(g), losses[g[0]])):
        first = group[0]
        lines.append(
            Line(
                kind=str(kinds[first]),
                label=str(labels[first]),
                count=len(group),
                loss=float(losses[first]),
                predicted_loss=predicted_loss(str(labels[first]), configuration),
                least_eigenvalue=float(rows["least_eigenvalue"].values[group].min()),
                gradient_norm=float(rows["gradient_norm"].values[group].max()),
                flow_time=float(np.median(rows["flow_time"].values[group])),
                flat_dimension=int(rows["flat_dimension"].values[first]),
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
