"""`understudy align`: what it prints, stores, reuses and refuses."""

import json

import pytest
from typer.testing import CliRunner

from understudy.cli import app

SMALL = [
    "--teacher",
    "3",
    "--dim",
    "5",
    "--outputs",
    "2",
    "--samples",
    "40",
    "--steps",
    "10",
    "--batch",
    "4",
    "--epochs",
    "6",
    "--seeds",
    "2",
    "--init",
    "0.1",
]


def run(*arguments):
    return CliRunner().invoke(app, ["align", *SMALL, *map(str, arguments)])


@pytest.mark.thorough
def test_a_grid_is_trained_stored_and_reused(tmp_path):
    grid = ("--over", "1,2", "--polarity", "0.5,1", "--out", tmp_path)
    done = run(*grid, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [(c["over"], c["polarity"]) for c in told["cells"]] == [(1, 0.5), (2, 0.5), (1, 1), (2, 1)]
    last = told["cells"][1]["layers"][0]
    assert (last["teachers"], last["students"]) == (3, 6)
    assert [r["epoch"] for r in last["recovery"]] == [0, 1, 2, 3, 4, 5, 6]
    assert 0 <= last["recovery"][-1]["low"] <= last["recovery"][-1]["recovered"] <= last["recovery"][-1]["high"] <= 1
    files = {p: p.stat().st_mtime_ns for p in tmp_path.glob("align-*.nc")}
    assert len(files) == 4
    (figure,) = tmp_path.glob("align-*.png")
    assert figure.stat().st_size > 10_000
    again = run(*grid, "--json")
    assert {p: p.stat().st_mtime_ns for p in tmp_path.glob("align-*.nc")} == files
    assert json.loads(again.stdout)["cells"] == told["cells"]
    table = run(*grid)
    assert "recovered" in table.output
    assert "Figure" in table.output


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--over", "wide", "--over"),
        ("--over", "0", "times wider"),
        ("--polarity", "1,1", "distinct"),
        ("--teacher", "2.5", "whole numbers"),
        ("--epochs", "0", "epochs"),
        ("--threshold", "1.5", "between 0 and 1"),
        ("--optimizer", "newton", "'sgd' or 'adam'"),
        ("--batch", "41", "samples, 40"),
        ("--seeds", "none", "--seeds"),
        ("--jobs", "0", "--jobs"),
    ],
)
def test_bad_input_exits_with_2_and_says_why(option, value, said):
    done = run(option, value)
    assert done.exit_code == 2
    assert said in done.output


def test_an_interrupt_says_what_is_kept(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("understudy.experiments.aligning.collect", interrupted)
    done = run("--out", tmp_path)
    assert done.exit_code == 130
    assert "run the same command to continue" in done.output
    assert "nothing is kept" in run().output


@pytest.mark.thorough
def test_a_cluster_trains_the_same(tmp_path):
    from distributed import LocalCluster

    grid = ("--over", "1,2", "--polarity", "0.5", "--json", "--out")
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as dask:
        there = run(*grid, tmp_path / "there", "--cluster", dask.scheduler_address)
    assert there.exit_code == 0, there.output
    here = run(*grid, tmp_path / "here")
    assert json.loads(there.stdout)["cells"] == json.loads(here.stdout)["cells"]
    assert {p.name for p in (tmp_path / "there").glob("*.nc")} == {p.name for p in (tmp_path / "here").glob("*.nc")}
    again = run(*grid, tmp_path / "there", "--cluster", "tcp://127.0.0.1:9")  # nothing is left to do
    assert json.loads(again.stdout)["cells"] == json.loads(there.stdout)["cells"]


def test_a_cluster_needs_a_place_for_results_and_has_its_own_threads(tmp_path):
    for more, said in (((), "--out"), (("--out", tmp_path, "--workers", "2"), "received --jobs 2")):
        done = run("--cluster", "tcp://127.0.0.1:9", *more)
        assert done.exit_code == 2
        assert said in done.output
