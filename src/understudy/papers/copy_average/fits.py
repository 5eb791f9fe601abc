"""Fits at one (n, k), and what the claims need of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr


def fit_cell(cell: Mapping[str, Any]) -> xr.Dataset:
    """Fit one student to the unit-orthonormal teacher from random starts: `fit` with the settings in the cell."""
    import understudy as us
    from understudy.compilation import keep_compiled_programs
    from understudy.dynamics import FlowOptions

    keep_compiled_programs()
    teacher = us.Teacher.orthonormal(cell["teachers"], dim=cell["dim"], activation=cell["activation"])
    task = us.Population(teacher, width=cell["students"])
    options = FlowOptions(snapshots=cell.get("snapshots", 0), **cell.get("flow", {}))
    runs = us.fit(
        task, seeds=cell["seeds"], init_std=cell["init_std"], init=cell.get("init", "gaussian"), options=options
    )
    return describe(task, runs)


def describe(task: Any, runs: Any) -> xr.Dataset:
    """What the claims need of each run: loss, certificate, structure, order parameters at the end."""
    from understudy.tasks import order_parameters

    orders = [order_parameters(task, run.parameters) for run in runs]
    return xr.Dataset(
        {
            "loss": ("seed", [run.loss for run in runs]),
            "label": ("seed", [run.structure.label for run in runs]),
            "distance": ("seed", [run.structure.distance for run in runs]),
            "kind": ("seed", [run.certificate.kind for run in runs]),
            "gradient_norm": ("seed", [run.certificate.gradient_norm for run in runs]),
            "least_eigenvalue": ("seed", [run.certificate.least_eigenvalue for run in runs]),
            "flow_time": ("seed", [run.flow_time for run in runs]),
            "norms": (("seed", "student"), np.stack([np.asarray(o.norms) for o in orders])),
            "outgoing": (("seed", "student"), np.stack([np.asarray(o.outgoing) for o in orders])),
            "correlation": (
                ("seed", "student", "teacher"),
                np.stack([np.asarray(o.student_teacher) for o in orders]),
            ),
        },
        coords={"seed": [run.seed for run in runs]},
    )
