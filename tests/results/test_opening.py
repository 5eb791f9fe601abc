"""A result that is opened again has what the fresh one had: numbers, verdicts, meaning, flow and table."""

import dataclasses
import json
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.dynamics import FlowOptions
from understudy.experiments import Fit
from understudy.results import Cells, Runs
from understudy.store import Store


def assert_equal(first, second):
    """Dataclasses with the same values; arrays compared entry by entry, NaN equal to itself."""
    for field in dataclasses.fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=field.name)
        else:
            assert one == other or (one != one and other != other), field.name  # NaN is not equal to itself


def assert_same_runs(opened, fresh):
    assert repr(opened) == repr(fresh)
    assert opened._repr_html_() == fresh._repr_html_()
    assert opened.groups() == fresh.groups()
    assert opened.seeds == fresh.seeds
    np.testing.assert_array_equal(opened.times, fresh.times)
    for one, other in zip(opened, fresh, strict=True):
        assert one.summary() == other.summary()
        assert_equal(one.certificate, other.certificate)
        assert_equal(one.trajectory, other.trajectory)
        assert one.structure == other.structure


def population(dim, activation="erf", width=2, **options):
    return us.Population(us.Teacher.orthonormal(3, dim=dim, activation=activation), width, **options)


CASES = {
    "plain": lambda: population(4),
    "span": lambda: population(20),
    "outputs": lambda: us.Population(us.Teacher(np.eye(3)[:2], np.eye(2), "erf"), 2),
    "relu": lambda: population(3, "relu"),
    "covariance": lambda: population(3, covariance=np.diag([1.0, 2.0, 0.5])),
    "empirical": lambda: us.Empirical(
        us.TwoLayer(np.zeros((2, 2)), np.zeros(2)), np.arange(12.0).reshape(6, 2) / 9 - 0.5, np.sin(np.arange(6.0)), activation="tanh"
    ),
}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("case", CASES)
def test_what_is_saved_is_what_is_opened(case, tmp_path):
    task = CASES[case]()
    fresh = us.fit(task, seeds=2, options=FlowOptions(snapshots=(0.1, 1.0, 10.0), max_steps=200))
    path = fresh.save(tmp_path / "runs")
    assert path == tmp_path / "runs.nc"
    opened = us.open(path, task=task)
    assert_same_runs(opened, fresh)
    for one, other in zip(opened, fresh, strict=True):
        np.testing.assert_array_equal(task.flatten(one.parameters), task.flatten(other.parameters))
        kept = jnp.asarray(other.trajectory.snapshots)
        np.testing.assert_array_equal(one.flow_task.loss(kept), other.flow_task.loss(kept))
    without = us.open(path)
    assert_same_runs(without, fresh)
    assert without.task is None


def test_weights_are_in_the_basis_of_the_input_and_the_teacher_is_there():
    task = population(20)
    runs = us.fit(task, seeds=2, options=FlowOptions(snapshots=(0.1, 1.0)))
    data = runs.to_dataset()
    np.testing.assert_array_equal(data["incoming"][1], runs[1].parameters.incoming)
    np.testing.assert_array_equal(data["teacher_incoming"], task.teacher.incoming)
    assert data.attrs == {"task": "Population", "activation": "erf", "students": 2, "teachers": 3, "dim": 20}
    assert list(data["time"].values) == [0.1, 1.0]
    assert "span of teachers" in data["snapshot"].attrs["basis"]
    assert float(task.loss(us.TwoLayer(data["incoming"][1].values, data["outgoing"][1].values))) == pytest.approx(
        float(data["loss"][1]), abs=1e-14
    )


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    given = {"teacher_incoming": [[1.0, 0.0], [0.6, 0.8]], "teacher_outgoing": [1.0, 2.0]}
    for fit in (Fit(2, 1), Fit(2, 1, outgoing="fixed"), Fit(student=1, arrays=given)):
        store.save(fit.configuration(), fit.rows([0, 1]))
    return store


def test_a_stored_fit_knows_its_task(stored):
    fit = Fit(2, 1)
    opened = us.open(stored.path(fit.configuration()))
    assert isinstance(opened, Runs)
    assert opened.configuration == fit.configuration()
    assert opened.task.width == 1
    assert opened[0].flow_task is not None


def test_a_store_gives_all_cells(stored, tmp_path):
    cells = us.open(stored.directory)
    assert isinstance(cells, Cells)
    assert len(cells) == 3
    assert sorted(cell.configuration["outgoing"] for cell in cells) == ["fixed", "trained", "trained"]
    (own,) = [cell for cell in cells if "arrays" in cell.configuration]
    np.testing.assert_array_equal(own.task.teacher.incoming, [[1.0, 0.0], [0.6, 0.8]])
    assert "where the runs end" in repr(cells)
    assert "<table>" in cells._repr_html_()
    assert list(us.open(tmp_path)) == []


def test_data_frames(stored):
    cells = us.open(stored.directory)
    frame = cells.to_dataframe()
    assert len(frame) == 6
    assert {"activation", "teacher", "outgoing", "seed", "loss", "kind", "label"} <= set(frame.columns)
    assert set(frame["kind"]) <= {"minimum", "strict saddle", "non-strict saddle", "unconverged", "undecided"}
    one = cells[0].to_dataframe()
    assert list(one.index) == [0, 1]


def test_without_pandas_there_is_advice(stored, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        us.open(stored.directory)[0].to_dataframe()


def test_a_file_that_lacks_variables_says_so(stored, tmp_path):
    fit = Fit(2, 1)
    rows = stored.load(fit.configuration()).drop_vars(["certificate", "final"])
    path = Store(tmp_path).save(fit.configuration(), rows)
    with pytest.raises(ValueError, match="not a result of `fit`: it has no certificate, final"):
        us.open(path)


@pytest.mark.parametrize(("name", "error"), [("none.nc", FileNotFoundError), ("text.nc", ValueError)])
def test_what_is_not_a_result_is_refused(name, error, tmp_path):
    (tmp_path / "text.nc").write_text("no result" * 30)
    with pytest.raises(error, match=name):
        us.open(tmp_path / name)


def test_a_fit_from_the_shell_imports_only_what_it_uses():
    code = (
        "import sys, json; from typer.testing import CliRunner; from understudy.cli import app;"
        "r = CliRunner().invoke(app, ['fit', '--teacher', '2', '--student', '1', '--seeds', '1', '--json']);"
        "assert r.exit_code == 0, r.output;"
        "print(json.dumps([m for m in ('matplotlib', 'dask', 'distributed', 'xarray', 'pandas') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(done.stdout) == [], done.stderr
