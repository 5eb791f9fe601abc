"""`understudy split` and `understudy grow`: on a user's own teacher and on a stored result."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import understudy as us
from understudy.cli import app
from understudy.fitting import FitProgress

FAST = ["--activation", "erf", "--teacher", "3", "--dim", "4"]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.mark.thorough
def test_grow_own_teacher_with_table_json_and_figure(tmp_path):
    file = tmp_path / "teacher.json"
    # Of the shapes of FAST, so that programs are compiled once; the third teacher is silent.
    incoming = [[0.6, 0.8, 0.0, 0.0], [-0.8, 0.6, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    file.write_text(json.dumps({"incoming": incoming, "outgoing": [1.0, 1.0, 0.0], "activation": "erf"}))
    done = invoke("grow", "--teacher-file", file, "--student", "2", "--json", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [s["width"] for s in told["stages"]] == [1, 2]
    assert told["stages"][1]["loss"] < 1e-12
    assert told["stages"][1]["kind"] == "minimum"
    (kept,) = tmp_path.glob("grow-*.json")
    assert json.loads(kept.read_text())["stages"] == told["stages"]
    assert kept.with_suffix(".png").exists()


@pytest.mark.thorough
def test_split_of_a_stored_result(tmp_path):
    fitted = invoke("fit", *FAST, "--student", "1", "--seeds", "1", "--out", tmp_path, "--json")
    assert fitted.exit_code == 0, fitted.output
    (file,) = tmp_path.glob("*.nc")
    done = invoke("split", "--result", file, "--mus=0,0.5", "--follow", "--json", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    (row,) = told["neurons"]
    assert row["scenario"] == "degenerate", "with erf Y vanishes along the average itself"
    assert row["least_of_Y"] < -0.1
    assert [s["kind"] for s in row["splits"]] == ["non-strict saddle", "strict saddle"]
    assert [d["mu"] for d in row["destinations"]] == [0.5, 0.5], "from a non-strict saddle nothing is followed"
    (kept,) = tmp_path.glob("split-*.json")
    assert kept.with_suffix(".png").exists()
    table = invoke("split", "--result", file, "--mus", "0.5")
    assert table.exit_code == 0, table.output
    assert "scenario" in table.output
    assert "…" not in table.output, "all of it can be read in 80 columns"
    grown = invoke("grow", *FAST, "--student", "2")
    assert "1-copy-1-average" in grown.output
    assert "…" not in grown.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["split", "--mus", "a"], "--mus is a number or several separated by commas"),
        (["split", "--mus", "0.5,nan"], "--mus are finite numbers; received '0.5,nan'"),
        (["split", "--mus=-inf"], "--mus are finite numbers; received '-inf'"),
        (["split", "--result", "none.nc"], "There is no stored result none.nc"),
        (["split", "--angles", "x"], "--angles are numbers in units of π"),
        (["grow", "--mu", "1"], "silent neuron"),
        (["grow", "--push", "-1"], "positive length"),
        (["grow", "--push", "nan"], "positive length"),
        (["grow", "--teacher-file", "none.json"], "Cannot read the teacher in none.json"),
        (["grow", "--angles", "0", "--teacher-file", "x"], "not both"),
    ],
)
def test_bad_input_exits_2_with_a_clear_message(arguments, message):
    done = invoke(*arguments)
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.output.split())


SPLITS = [{"mu": 0.5, "kind": "minimum", "index": 0, "least_eigenvalue": 0.1, "lower_bound": None, "upper_bound": 0.2}]
NEURON = {"neuron": 0, "outgoing": [1.0, 2.0], "norm": 1.0, "scenario": "i", "least_of_Y": 0.1, "largest_of_Y": 0.2}
POINT = {"kind": "minimum", "loss": 0.1, "gradient_norm": 1e-15, "least_eigenvalue": 0.1}
REPORT = {"json": {"point": POINT, "neurons": [{**NEURON, "splits": SPLITS}]}, "lines": []}
STAGE = {"width": 1, "kind": "minimum", "label": "", "loss": 0.1, "norms": [1.0], "outgoing": [1.0], "averaging": 0,
         "split_neuron": None, "scenario": None, "pushed_along": None, "correlations_with_averaging": [1.0]}  # fmt: skip


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".npz"])
def test_split_reads_every_format_of_a_teacher_and_shows_progress(suffix, tmp_path, monkeypatch):
    rows, file, seen = np.array([[1.0, 0.5], [0.0, 2.0]]), tmp_path / f"V{suffix}", []
    with file.open("wb") as stream:
        {".npy": np.save, ".csv": lambda f, x: np.savetxt(f, x, delimiter=",")}.get(
            suffix, lambda f, x: np.savez(f, incoming=x)
        )(stream, rows)

    def found(task, seed, watch):
        seen.append(np.asarray(task.teacher.incoming))
        watch(FitProgress(3, 8, 100, 20.0))
        return us.TwoLayer(np.eye(2), [1, 1]), 0

    monkeypatch.setattr("understudy.commands.progress.FIRST_LINE_SECONDS", 0.0)
    monkeypatch.setattr("understudy.experiments.splitting.find_minimum", found)
    monkeypatch.setattr("understudy.experiments.splitting.split_report", lambda *_, **__: REPORT)
    done = invoke("split", "--teacher-file", file)
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(seen[0], rows)
    assert "3 of 8 starts after 0 s, flow to a minimum, t ≤ 20" in done.stderr


@pytest.mark.parametrize("command", ["split", "grow", "layers", "merge"])
def test_a_full_disk_is_one_line(command, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("understudy.plots.style.save", full)
    monkeypatch.setattr("understudy.plots.split_figure.split", lambda *_: None)
    monkeypatch.setattr(
        "understudy.experiments.splitting.find_minimum", lambda *_, **__: (us.TwoLayer(np.eye(2, 6), [1, 1]), 0)
    )
    monkeypatch.setattr("understudy.experiments.splitting.split_report", lambda *_, **__: REPORT)
    monkeypatch.setattr("understudy.experiments.growing.collect_stages", lambda *_: [STAGE])
    np.savez(tmp_path / "net.npz", W1=np.eye(2), W2=np.ones((1, 2)), inputs=np.eye(2), targets=np.ones(2))
    file = [tmp_path / "net.npz"] if command in ("layers", "merge") else []
    file += ["--activation", "relu"] if command == "merge" else []
    done = invoke(command, *file, "--out", tmp_path / "results")
    assert done.exit_code == 1, done.output
    assert done.stderr.splitlines()[-1] == (
        "Results could not be stored: [Errno 28] No space left on device. Name another place with --out."
    )
    assert not isinstance(done.exception, OSError)
    assert done.stdout, "what was computed is on the screen"


def test_a_disk_that_fills_up_leaves_no_broken_archive(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("understudy.files.os.fsync", full)
    np.savez(tmp_path / "net.npz", W1=np.eye(2), W2=np.ones((1, 2)), inputs=np.eye(2), targets=np.ones(2))
    done = invoke("layers", tmp_path / "net.npz", "--out", tmp_path / "results")
    assert done.exit_code == 1, done.output
    file = tmp_path / "results" / "net-layers.npz"
    assert done.stderr.splitlines()[-1] == (
        f"Results could not be stored: [Errno 28] No space left on device: '{file}'. Name another place with --out."
    )
    assert list((tmp_path / "results").iterdir()) == []
