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
