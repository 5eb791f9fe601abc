"""`understudy sweep`: how a cell is told in numbers."""

import numpy as np
import pytest
import xarray as xr

from understudy.commands.sweep import make_cells, summarise_cell

(CELL,) = make_cells(["erf"], [3], [2], ["k+1"], [0, 1], ["trained"], ["gaussian"], [0.1], 1e-6)


@pytest.mark.parametrize(
    ("losses", "best"), [([0.2, 0.1], 0.1), ([np.nan, 0.2], 0.2), ([0.2, np.nan], 0.2), ([np.nan, np.nan], None)]
)
def test_the_best_loss_is_a_number_or_nothing(losses, best):
    same = {
        name: ("seed", np.zeros(2)) for name in ("least_eigenvalue", "gradient_norm", "flow_time", "flat_dimension")
    }
    names = {"kind": ("seed", ["minimum"] * 2), "label": ("seed", ["odd"] * 2)}
    told = summarise_cell(CELL, xr.Dataset({"loss": ("seed", losses), **names, **same}, coords={"seed": [0, 1]}))
    assert told["best_loss"] == best
