"""`understudy sweep`: seeds are rows that `fit` and later sweeps reuse, and what a grid's figure is called."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from understudy.cli import app
from understudy.commands.sweep import make_cells, parse_numbers
from understudy.experiments import Fit
from understudy.store import Store


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store with two seeds of two small fits, computed here."""
    store = Store(tmp_path_factory.mktemp("sweep"))
    for cell in (Fit(3, 2), Fit(3, 2, outgoing="fixed")):
        store.save(cell.configuration(), cell.rows([0, 1]))
    return store


def sweep(stored, *arguments):
    done = run("sweep", "--teacher", 3, "--student", 2, "--out", stored.directory, "--seeds", *arguments)
    assert done.exit_code == 0, done.output
    return done


def test_seeds_that_fit_has_stored_are_not_computed_again(stored):
    told = json.loads(sweep(stored, 2, "--json").stdout)
    (cell,) = told["cells"]
    assert (cell["runs"], cell["points"][0]["label"]) == (2, "1-copy-1-average")
    assert cell["best_loss"] == pytest.approx(0.023221681, abs=1e-9)
    assert told["failed"] == []


def test_the_table_shows_what_the_cells_differ_in(stored):
    table = sweep(stored, 2, "--outgoing", "trained,fixed").output
    assert all(
        word in table for word in ("outgoing", "trained", "fixed", "2 cells", "0 seeds computed, 4 stored before")
    )
    assert "init" not in table
    assert "outgoing" not in sweep(stored, 2).output


def test_grids_in_one_directory_have_figures_of_their_own(stored):
    for path in stored.directory.glob("sweep-*"):
        path.unlink()
    for outgoing in ("trained", "trained,fixed", "trained,fixed"):
        sweep(stored, 2, "--outgoing", outgoing)
    assert len(list(stored.directory.glob("sweep-*.png"))) == 2


def test_biases_are_an_axis(stored):
    """Both cells are stored: the one with biases is made here, without computing anything."""
    axes = {"activation": ["erf"], "teacher": [3], "student": [2], "dim": ["k+1"], "bias": ["none", "trained"]}
    plain, biased = make_cells(axes, [0], 1e-6)
    assert plain == Fit(3, 2)
    assert biased == Fit(3, 2, bias="trained")
    assert biased.task().size == plain.task().size + 3
    done = run("sweep", "--bias", "maybe", "--out", stored.directory)
    assert done.exit_code == 2
    assert "--bias is 'none' or 'trained'" in done.output


def test_teachers_and_inputs_come_from_files(tmp_path):
    file, spread = tmp_path / "V.npy", tmp_path / "S.csv"
    np.save(file, [[1.0, 0.5, 0.0], [0.0, 2.0, 0.0]])
    np.savetxt(spread, np.diag([1.0, 2.0, 3.0]), delimiter=",")
    axes = {"activation": ["erf", "tanh"], "teacher": [file], "student": [1, 2], "dim": ["k+1"]}
    cells = make_cells(axes, [0], 1e-6, "0,0.5,0", spread)
    assert [(c.activation, c.teacher, c.student, c.dim) for c in cells] == [
        (name, 2, n, 3) for name in ("erf", "tanh") for n in (1, 2)
    ]
    task = cells[0].task()
    np.testing.assert_array_equal(task.teacher.incoming, np.load(file))
    np.testing.assert_array_equal(task.mean, [0, 0.5, 0])
    np.testing.assert_allclose(task.root @ task.root, np.diag([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--teacher", "none.npy"], "Cannot read the teacher in none.npy: No such file"),
        (["--mean", "none.csv"], "Cannot read the mean in none.csv"),
        (["--teacher", "3", "--mean", "1,2", "--student", "1"], "mean of the inputs must be 4 finite numbers"),
    ],
)
def test_bad_files_are_named(arguments, message, tmp_path):
    done = run("sweep", *arguments, "--out", tmp_path)
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.output.split())


@pytest.mark.thorough
def test_more_seeds_are_added_and_fit_reuses_them(stored):
    assert "2 seeds computed, 2 stored before" in sweep(stored, 4, "--workers", 1).output
    assert "0 seeds computed, 4 stored before" in sweep(stored, 4).output
    done = run("fit", "--teacher", 3, "--student", 2, "--seeds", 5, "--out", stored.directory)
    assert "5 runs" in done.output
    assert "4 seeds reused" in done.output
    assert "0 seeds computed, 5 stored before" in sweep(stored, 5).output


@pytest.mark.parametrize(
    ("text", "numbers"), [("4", [4]), ("2,8", [2, 8]), ("2-4", [2, 3, 4]), ("8-16:4", [8, 12, 16])]
)
def test_lists_and_ranges(text, numbers):
    assert parse_numbers(text, "--teacher") == numbers


@pytest.mark.parametrize("text", ["", "4-", "-4", "0", "2-4:", "a", "1-10000000000"])
def test_bad_lists_end_with_a_message(text, tmp_path):
    done = run("sweep", "--teacher", text, "--out", tmp_path)
    assert done.exit_code == 2
    assert "--teacher" in done.output
