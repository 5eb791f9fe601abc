"""`understudy online`: tables, JSON, stored result and figure, and bad input."""

import json

import pytest
from typer.testing import CliRunner

from understudy.cli import app

SHORT = ["online", "--until", "1200", "--dim", "100"]


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_tables_and_files(tmp_path):
    done = run(*SHORT, "--certify", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "Plateau 1: strict saddle" in done.output
    assert "…" not in done.output.replace("… as the", ""), "no number is cut off"
    assert {path.suffix for path in tmp_path.iterdir()} >= {".nc", ".png", ".svg"}


def test_json():
    done = run(*SHORT, "--json")
    told = json.loads(done.output)
    assert told["ending"] == "complete"
    assert told["plateaus"][0]["critical"]["index"] == 1
    assert len(told["times"]) == len(told["loss"]) == 401


def test_divergence_ends_with_one():
    done = run("online", "--activation", "linear", "--rate", "6", "--until", "50", "--json")
    assert done.exit_code == 1
    assert json.loads(done.output)["ending"] == "diverged"


def test_phases(tmp_path):
    arguments = ["online", "--noise", "0.1", "--phases", "0.1,3"]
    done = run(*arguments, "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "unstable" in done.output
    assert {path.suffix for path in tmp_path.iterdir()} >= {".nc", ".png", ".svg"}
    told = json.loads(run(*arguments, "--json").output)
    assert told["students"] == [2]
    assert told["errors"] == [[pytest.approx(3.841e-4, rel=1e-3)], [None]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rate", "-1"], "--rate must be finite and not negative"),
        (["--until", "0"], "--until is a positive time"),
        (["--outgoing", "none"], "--outgoing is 'trained' or 'fixed'"),
        (["--activation", "sine"], "Unknown activation"),
        (["--dim", "3"], "students + teachers"),
        (["--phases", "a"], "--phases is a number or several"),
        (["--phases", "0.2,0.1", "--noise", "0.1"], "that increase"),
        (["--phases", "0,1", "--noise", "0.1"], "positive learning rates"),
        (["--phases", "0.1"], "needs --noise above 0"),
        (["--phases", "0.1", "--noise", "0.1", "--student", "1"], "at least as many students"),
        (["--phases", "0.1", "--noise", "0.1", "--outgoing", "trained"], "fixed outgoing weights"),
        (["--phases", "0.1", "--noise", "0.1", "--activation", "relu"], "smooth activation with σ(0) = 0"),
    ],
)
def test_bad_input(arguments, words):
    done = run("online", *arguments)
    assert done.exit_code == 2
    assert words in done.output
