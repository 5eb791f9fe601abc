"""Graphs in files: written by `Graph.save`, read by `understudy.open`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from understudy.files import jsonable
from understudy.landscape.graph import Completeness, Connection, CriticalPoint, Graph
from understudy.points import Certificate
from understudy.tasks.task import Task

if TYPE_CHECKING:
    import xarray as xr

KIND = "explore"

_PLAIN = tuple(
    f.name
    for f in fields(Certificate)
    if f.name
    not in ("eigenvalues", "multiplicities", "evidence", "higher_order", "way_down", "proof", "radii", "rounding",
    "directions")
)  # fmt: skip
"""Fields of a certificate that are numbers or words."""


def to_dataset(graph: Graph) -> xr.Dataset:
    """Numbers of the points as variables; the rest as JSON in the attributes."""
    import xarray as xr

    points = graph.points
    if graph.task is None:
        vectors = np.stack([np.asarray(p.parameters, float) for p in points])
    else:
        vectors = np.stack([np.asarray(graph.task.flatten(p.parameters)) for p in points])
    data: dict[str, Any] = {
        "vector": (("point", "parameter"), vectors),
        "loss": ("point", [p.loss for p in points]),
        "index": ("point", [p.index for p in points]),
        "kind": ("point", [p.kind for p in points]),
        "label": ("point", [p.label for p in points]),
        "orbit": ("point", [-1 if p.orbit is None else p.orbit for p in points]),
        "family": ("point", [p.family for p in points]),
        "degenerate": ("point", [p.degenerate for p in points]),
        "found": ("point", [p.found for p in points]),
        "reached": ("point", [p.reached for p in points]),
        "eigenvalues": (("point", "mode"), _padded([p.certificate.eigenvalues for p in points])),
        "multiplicities": (("point", "mode"), _padded([p.certificate.multiplicities for p in points])),
    }
    words = graph.to_dict()
    extra = {
        "about": dict(graph.about),
        "connections": words["connections"],
        "completeness": words["completeness"],
        "notes": list(graph.notes),
        "indices": [list(p.indices) for p in points],
        "certificates": [
            {**{name: getattr(p.certificate, name) for name in _PLAIN}, "evidence": list(p.certificate.evidence)}
            for p in points
        ],
    }
    told = {} if graph.task is None else {n: v for n, v in graph.task.givens().items()}
    return xr.Dataset({**data, **told}, attrs={"graph": json.dumps(jsonable(extra))})


def from_dataset(dataset: xr.Dataset, task: Task | None, configuration: Mapping[str, Any] | None = None) -> Graph:
    """The graph in a dataset. Without a task, parameters are flat vectors."""
    extra = json.loads(dataset.attrs["graph"])
    points = tuple(_point(dataset, extra, i, task) for i in range(dataset.sizes["point"]))
    connections = tuple(
        Connection(c["saddle"], (c["ends"][0], c["ends"][1]), c["certified"], (c["words"][0], c["words"][1]))
        for c in extra["connections"]
    )
    known = {f.name for f in fields(Completeness)}
    completeness = Completeness(**{k: v for k, v in extra["completeness"].items() if k in known})
    return Graph(points, connections, completeness, task, extra["about"], tuple(extra["notes"]), configuration)


def _point(data: xr.Dataset, extra: Mapping[str, Any], i: int, task: Task | None) -> CriticalPoint:
    row = data.isel(point=i)
    vector = row["vector"].values
    orbit = int(row["orbit"])
    told = {k: _number(v) for k, v in extra["certificates"][i].items()}
    values, multiplicities = row["eigenvalues"].values, row["multiplicities"].values
    there = np.isfinite(multiplicities)
    certificate = Certificate(
        **{**told, "evidence": tuple(told["evidence"])},
        eigenvalues=values[there],
        multiplicities=multiplicities[there].astype(int),
    )
    return CriticalPoint(
        number=i,
        loss=float(row["loss"]),
        index=int(row["index"]),
        kind=str(row["kind"].values),
        label=str(row["label"].values),
        parameters=vector if task is None else task.unflatten(jnp.asarray(vector)),
        orbit=None if orbit < 0 else orbit,
        family=int(row["family"]),
        degenerate=bool(row["degenerate"]),
        indices=tuple(extra["indices"][i]),
        found=int(row["found"]),
        reached=int(row["reached"]),
        certificate=certificate,
    )


def _number(value: Any) -> Any:
    """Numbers that JSON cannot hold are stored as words or as null."""
    if value is None:
        return float("nan")
    return float(value) if isinstance(value, str) and value in ("inf", "-inf", "nan") else value


def _padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    length = max(len(row) for row in rows)
    return np.stack([np.pad(np.asarray(row, float), (0, length - len(row)), constant_values=np.nan) for row in rows])
