"""How many teachers of an experiment were recovered, in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.alignment import recovery_interval
from understudy.experiments.aligning.experiment import Experiment
from understudy.files import finite_or_none

if TYPE_CHECKING:
    import xarray as xr


def summarise_recovery(experiment: Experiment, rows: xr.Dataset, threshold: float) -> dict[str, Any]:
    """The share of teachers that some student matches above `threshold`, with its interval, by layer and epoch.

    Numbers that are not finite are None; `loss` has the median over seeds on the evaluation samples.
    """
    layers = []
    for l, (teachers, students) in enumerate(zip(experiment.teacher, experiment.student, strict=True), start=1):
        best = rows[f"best_of_teacher_{l}"].values
        by_epoch = []
        for i, epoch in enumerate(rows["epoch"].values):
            share, low, high = recovery_interval(best[:, i] > threshold)
            by_epoch.append(
                {"epoch": float(epoch), "recovered": share, "low": finite_or_none(low), "high": finite_or_none(high)}
            )
        layers.append({"layer": l, "teachers": teachers, "students": students, "recovery": by_epoch})
    medians = np.median(rows["loss"].values, axis=0)
    return {
        "teacher": list(experiment.teacher),
        "over": experiment.over,
        "polarity": experiment.polarity,
        "seeds": int(rows.sizes["seed"]),
        "epochs": experiment.epochs,
        "layers": layers,
        "loss": [
            {"epoch": float(epoch), "median": finite_or_none(median)}
            for epoch, median in zip(rows["epoch"].values, medians, strict=True)
        ],
    }
