"""`understudy sweep`: how a cell is told in numbers, and what a grid's figure is called."""

import json

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from understudy.cli import app
from understudy.commands.sweep import make_cells, summarise_cell
from understudy.store import Store


def cell(teacher, outgoing="trained"):
    (made,) = make_cells(["erf"], [teacher], [2], ["k+1"], [0, 1], [outgoing], ["gaussian"], [0.1], 1e-6)
    return made


def runs(losses):
    """Two runs as a cell stores them."""
    same = {
        name: ("seed", np.zeros(2)) for name in ("least_eigenvalue", "gradient_norm", "flow_time", "flat_dimension")
    }
    names = {"kind": ("seed", ["minimum"] * 2), "label": ("seed", ["odd"] * 2)}
    spectra = {"eigenvalue": (("seed", "mode"), np.ones((2, 3)))}
    return xr.Dataset({"loss": ("seed", losses), **names, **same, **spectra}, coords={"seed": [0, 1]})


@pytest.mark.parametrize(
    ("losses", "best"), [([0.2, 0.1], 0.1), ([np.nan, 0.2], 0.2), ([0.2, np.nan], 0.2), ([np.nan, np.nan], None)]
)
def test_the_best_loss_is_a_number_or_nothing(losses, best):
    assert summarise_cell(cell(3), runs(losses))["best_loss"] == best


def test_grids_in_one_directory_have_figures_of_their_own(tmp_path):
    for teacher in (3, 4):
        Store(tmp_path).save(cell(teacher), runs([np.nan, np.nan] if teacher == 3 else [0.1, 0.2]))
    for teachers, best in (("3", [None]), ("3-4", [None, 0.1]), ("3-4", [None, 0.1])):
        grid = ["sweep", "--teacher", teachers, "--student", "2", "--seeds", "2", "--out", str(tmp_path)]
        done = CliRunner().invoke(app, [*grid, "--json"])
        assert done.exit_code == 0, done.output
        assert [row["best_loss"] for row in json.loads(done.stdout)["cells"]] == best
    assert len(list(tmp_path.glob("sweep-*.png"))) == 2
    table = CliRunner().invoke(app, grid)
    assert "not a number" in table.output
    assert len(list(tmp_path.glob("sweep-*.png"))) == 2


def test_the_table_shows_what_the_cells_differ_in(tmp_path):
    for outgoing in ("trained", "fixed"):
        Store(tmp_path).save(cell(3, outgoing), runs([0.1, 0.2]))
    grid = ["sweep", "--teacher", "3", "--student", "2", "--seeds", "2", "--out", str(tmp_path), "--outgoing"]
    table = CliRunner().invoke(app, [*grid, "trained,fixed"]).output
    assert all(word in table for word in ("outgoing", "trained", "fixed", "2 cells"))
    assert "init" not in table
    assert "outgoing" not in CliRunner().invoke(app, [*grid, "trained"]).output
