"""Claim `conjecture`: a search for anything better than n-1 copies and one average."""

from typing import Any

import numpy as np
import xarray as xr

from understudy.papers.cells import compute
from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def search_cell(cell: dict[str, Any]) -> xr.Dataset:
    """Fits of one (n, k) from Gaussian starts of several sizes and from perturbed copy-average points of every "
    "partition."""
    import understudy as us
    from understudy.compilation import keep_compiled_programs
    from understudy.dynamics import FlowOptions
    from understudy.dynamics.starts import gaussian, perturbed
    from understudy.papers.copy_average.fits import describe
    from understudy.theory.copy_average import copy_average, partitions

    keep_compiled_programs()
    n, k = cell["students"], cell["teachers"]
    task = us.Population(us.Teacher.orthonormal(k, dim=k + 1), width=n)
    begin = [np.asarray(task.flatten(gaussian(task, cell["seeds"], std))) for std in cell["stds"]]
    sizes = sorted(partitions(k, n))
    chosen = [sizes[i] for i in np.unique(np.linspace(0, len(sizes) - 1, cell["partitions"]).astype(int))]
    for size in chosen:
        point = task.flatten(copy_average("erf", size, dim=k + 1))
        begin.append(np.asarray(perturbed(task, point, cell["nudges"], 0.3)))
    starts = np.concatenate(begin)
    runs = us.fit(task, seeds=len(starts), init=starts, options=FlowOptions(snapshots=0))
    return describe(task, runs)[["loss", "label", "gradient_norm", "kind"]]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory import one_neuron

    configurations = [
        {"kind": "search", "students": n, "teachers": k, **settings["starts"]} for n, k in settings["cells"]
    ]
    found = compute(search_cell, configurations, progress, keep=settings["keep"])
    margins, measured, total, worst = [], {}, 0, 0.0
    for (n, k), result in zip(settings["cells"], found, strict=True):
        target = one_neuron("erf", k - n + 1).loss
        loss = result["loss"].values
        total += len(loss)
        converged = result["gradient_norm"].values <= 1e-10
        worst = max(worst, float(result["gradient_norm"].values[converged].max()))
        margins.append(float(loss[converged].min() - target))
        labels = result["label"].values.astype(str)[loss > target + 1e-9]
        measured[f"n = {n}, k = {k}"] = {
            "starts": len(loss),
            "least loss - L*": margins[-1],
            "at L*": int(np.sum(np.abs(loss - target) < 1e-9)),
            "above": dict(zip(*(x.tolist() for x in np.unique(labels, return_counts=True)), strict=True))
            if len(labels)
            else "none",
        }
    checks = [
        at_least("least loss found minus L*(k-n+1)", margins, bound=-1e-11),
        at_most("L*(k-n+1) was reached in every case", margins, bound=1e-11),
        at_most("gradient norms of converged runs", worst, bound=1e-10),
    ]
    return Measurement(
        checks,
        {"starts": total, **measured},
        notes=f"{total} starts; nothing below L*(k-n+1) was found. This is evidence, not a proof.",
    )


CLAIM = Claim(
    paper="copy-average",
    id="conjecture",
    where="Eq. 20, Sec. 5.2",
    statement="If n/k is small, no student of n neurons has a loss below L*(k-n+1).",
    paper_value="L*(n, k) = L*(k-n+1) for n < γ0 k",
    measured_by="Flows from Gaussian starts of three sizes and from perturbed copy-average points of many partitions.",
    tolerance=1e-11,
    tolerance_reason="Losses of polished points are exact to rounding.",
    quick={
        "cells": [[3, 8]],
        "starts": {"seeds": 5, "stds": [0.1, 1.0], "partitions": 3, "nudges": 2},
        "keep": False,
    },
    full={
        "cells": [[2, 5], [2, 8], [2, 16], [3, 8], [3, 12], [4, 10], [4, 16], [5, 16], [6, 18], [8, 24]],
        "starts": {"seeds": 40, "stds": [0.1, 0.5, 1.5], "partitions": 12, "nudges": 5},
        "keep": True,
    },
    measure=_measure,
)
