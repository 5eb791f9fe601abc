"""Fits at one (n, k), kept in files so that an interrupted run at full scale goes on where it was."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from understudy.papers.claim import Progress
from understudy.store import Store
from understudy.sweeps import run

CELLS = Path("results") / "cells" / "copy-average"
"""Where finished cells are kept, below the working directory, as `reproduce` keeps its results."""


def fit_cell(cell: Mapping[str, Any]) -> xr.Dataset:
    """Fit one student to the unit-orthonormal teacher from random starts: `fit` with the settings in the cell."""
    import understudy as us
    from understudy.compilation import keep_compiled_programs
    from understudy.dynamics import FlowOptions

    keep_compiled_programs()
    teacher = us.Teacher.orthonormal(cell["teachers"], dim=cell["dim"], activation=cell["activation"])
    task = us.Population(teacher, width=cell["students"])
    options = FlowOptions(snapshots=cell.get("snapshots", 0), **cell.get("flow", {}))
    runs = us.fit(task, seeds=cell["seeds"], init_std=cell["init_std"], options=options)
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


def compute(
    cells: Sequence[Mapping[str, Any]],
    progress: Progress,
    *,
    keep: bool,
    function: Callable[[dict[str, Any]], xr.Dataset] = fit_cell,
    share: tuple[float, float] = (0.0, 1.0),
) -> list[xr.Dataset]:
    """The results of all cells, in order.

    `keep`: compute them on all cores and store each as soon as it is done, skipping those that are stored; otherwise
    here, one after another, storing nothing. `share`: between which fractions of the claim's progress this lies.
    """
    low, high = share

    def tell(done: int, total: int) -> None:
        progress(low + (high - low) * done / max(total, 1), f"{done} of {total} cells")

    if not keep:
        results = []
        for i, cell in enumerate(cells):
            tell(i, len(cells))
            results.append(function(dict(cell)))
        tell(len(cells), len(cells))
        return results
    outcome = run(function, cells, Store(CELLS), progress=lambda p: tell(p.done + p.skipped + p.failed, p.total))
    if outcome.failed:
        raise RuntimeError(
            f"{len(outcome.failed)} of {len(cells)} cells failed; the first: {outcome.failed[0]}. Run it again to "
            "retry them."
        )
    return list(outcome.datasets())


def order_for_display(correlation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orders of students and teachers that put copies on the diagonal and the average last, and make copies "
    "positive."""
    strength = np.abs(correlation).max(axis=1)
    students = np.argsort(-strength, kind="stable")
    teachers: list[int] = []
    for i in students:
        best = int(np.argmax(np.abs(correlation[i])))
        if best not in teachers and correlation[i, best] ** 2 > 0.5:
            teachers.append(best)
    teachers += [j for j in range(correlation.shape[1]) if j not in teachers]
    return students, np.array(teachers)
