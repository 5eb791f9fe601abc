"""Runs on the sphere from uniform starts, stored seed by seed: what the claims about wider networks share."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr


def sphere_cell(cell: dict[str, Any]) -> xr.Dataset:
    """Fit n students on the sphere to k orthonormal teachers of degree ρ; label, verdict, loss and ends of each seed."""
    import understudy as us
    from understudy.compilation import keep_compiled_programs
    from understudy.tasks.sphere import Sphere

    keep_compiled_programs()
    n, k, d, degree = cell["size"]
    runs = us.fit(Sphere(us.Teacher.orthonormal(k, d, f"hermite:{degree}"), n), cell["seeds"])
    return xr.Dataset(
        {
            "label": ("seed", [run.structure.label for run in runs]),
            "kind": ("seed", [run.certificate.kind for run in runs]),
            "loss": ("seed", [float(run.loss) for run in runs]),
            "end": (("seed", "student", "dim"), np.stack([np.asarray(run.parameters.incoming) for run in runs])),
        },
        coords={"seed": [run.seed for run in runs]},
    )


def sphere_cells(sizes: list[list[int]], seeds: int) -> list[dict[str, Any]]:
    """One cell for each (n, k, d, ρ)."""
    return [{"kind": "sphere", "size": list(size), "seeds": seeds} for size in sizes]
