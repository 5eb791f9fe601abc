"""`understudy fit` with a teacher from a file, biases, and inputs of any mean and covariance."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import understudy as us
from understudy.cli import app


@pytest.fixture
def teacher(tmp_path):
    np.savez(tmp_path / "teacher.npz", incoming=np.eye(2, 3), outgoing=[1.0, 2.0], bias=[0.5, -0.5], offset=0.25)
    np.savetxt(tmp_path / "covariance.csv", np.diag([1.0, 2.0, 1.0]), delimiter=",")
    np.savetxt(tmp_path / "bad.csv", np.ones((2, 3)), delimiter=",")
    return tmp_path


def test_the_teacher_of_a_file_is_learned_with_biases(teacher):
    words = ["fit", "--teacher", str(teacher / "teacher.npz"), "--student", "2", "--seeds", "2", "--bias", "trained"]
    words += ["--mean", "0,0.3,0", "--covariance", str(teacher / "covariance.csv")]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    source = us.Teacher(np.eye(2, 3), [1.0, 2.0], "erf", bias=[0.5, -0.5], offset=0.25)
    task = us.Population(source, 2, bias="trained", mean=[0, 0.3, 0], covariance=np.diag([1.0, 2.0, 1.0]))
    runs = us.fit(task, seeds=2)
    for stored, run in zip(told["runs"], runs, strict=True):
        assert stored["loss"] == pytest.approx(run.loss, abs=1e-12)
        assert (stored["kind"], stored["label"]) == (run.certificate.kind, run.structure.label)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--bias", "maybe"], "--bias is 'none' or 'trained'"),
        (["--mean", "1,2"], "mean"),
        (["--mean", "nowhere.csv"], "nowhere.csv"),
        (["--covariance", "{}/bad.csv"], "covariance"),
        (["--covariance", "{}/missing.csv"], "missing.csv"),
        (["--student-activation", "magic"], "magic"),
        (["--sphere", "--bias", "trained"], "sphere"),
    ],
)
def test_bad_options_are_named(teacher, options, word):
    chosen = [option.format(teacher) for option in options]
    done = CliRunner().invoke(app, ["fit", "--teacher", str(teacher / "teacher.npz"), "--student", "2", *chosen])
    assert done.exit_code == 2
    assert word in done.output


def test_a_teacher_of_any_format_snapshots_and_a_continued_fit(tmp_path):
    vectors = np.eye(2, 3)
    np.save(tmp_path / "teacher.npy", vectors)
    np.savetxt(tmp_path / "teacher.csv", vectors, delimiter=",")
    (tmp_path / "teacher.json").write_text(json.dumps(vectors.tolist()))
    losses = []
    for ending in ("npy", "csv", "json"):
        words = ["fit", "--teacher", str(tmp_path / f"teacher.{ending}"), "--student", "1", "--seeds", "1"]
        words += ["--max-time", "1", "--times", "0.1,1", "--out", str(tmp_path / "out"), "--json"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        (run,) = json.loads(done.stdout)["runs"]
        losses.append(run["loss"])
    assert losses[0] == losses[1] == losses[2]
    file = next((tmp_path / "out").glob("*.nc"))
    np.testing.assert_allclose(us.open(file).times, [0.1, 1.0])
    done = CliRunner().invoke(app, ["fit", "--continue", str(file), "--max-time", "1e6", "--json"])
    assert done.exit_code == 0, done.output
    (after,) = json.loads(done.stdout)["runs"]
    assert after["loss"] < losses[0]
    assert after["kind"] == "minimum"
