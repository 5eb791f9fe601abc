"""`understudy branch`: tables, JSON, files, and bad input."""

import json

import pytest
from typer.testing import CliRunner

import understudy as us
from understudy.cli import app

runner = CliRunner()
RELU = ["branch", "--activation", "relu", "--from", "2.0", "--to", "2.5", "--seeds", "1", "--step", "0.1"]


def test_json_files_and_figure(tmp_path):
    result = runner.invoke(app, [*RELU, "--json", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    (special,) = record["special_points"]
    assert (special["kind"], special["certified"]) == ("pitchfork", True)
    assert special["parameter"] == pytest.approx(2.2256696309, abs=1e-9)
    assert {path.suffix for path in tmp_path.iterdir()} == {".nc", ".png", ".svg"}
    assert us.open(tmp_path / "branch-angle.nc").special_points[0].kind == "pitchfork"


def test_tables_name_branches_and_their_ends():
    result = runner.invoke(app, [*RELU, "--along", "outgoing", "--from", "0.8", "--to", "1.0"])
    assert result.exit_code == 0, result.output
    assert "end of interval" in " ".join(result.stdout.split())
    assert "No special points" in result.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--along", "colour"], "--along is one of"),
        (["--from", "2", "--to", "1"], "the first one smaller"),
        (["--start", "9"], "--start lies between"),
        (["--seeds", "0"], "--seeds is a positive"),
        (["--step", "3"], "--step is a share"),
        (["--teacher", "1"], "neurons 0 to 0"),
        (["--along", "sharpness", "--from", "-1", "--to", "1"], "sharpness of softplus is positive"),
    ],
)
def test_bad_input_ends_with_code_two(options, words):
    result = runner.invoke(app, ["branch", "--seeds", "1", *options])
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
