"""`understudy certify` and `understudy verify`: what they print, their files and exit codes."""

import json

import numpy as np
import pytest
from tests.proofs.cases import default_case, tight_balance
from typer.testing import CliRunner

import understudy as us
from understudy.cli import app
from understudy.commands.certify import _show_ends

runner = CliRunner()


def point_file(tmp_path, name="point.json", case=None):
    _, point = default_case() if case is None else case
    incoming = np.asarray(getattr(point, "incoming", point))
    content = {
        "incoming": incoming.tolist(),
        "outgoing": np.asarray(getattr(point, "outgoing", np.ones(len(incoming)))).tolist(),
    }
    path = tmp_path / name
    if name.endswith(".npz"):
        np.savez(path, **content)
    else:
        path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.parametrize("name", ["point.json", "point.npz"])
def test_a_point_is_certified_and_proved_and_its_proof_verified(name, tmp_path):
    out = tmp_path / "proof.json"
    done = runner.invoke(app, ["certify", point_file(tmp_path, name), "--teacher", "8", "--proof", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "minimum" in done.output
    assert "strict" in done.output
    checked = runner.invoke(app, ["verify", str(out)])
    assert checked.exit_code == 0, checked.output
    assert checked.output.startswith("Accepted: The population loss of 4 erf students")
    out.write_text(out.read_text().replace('"positive": 40', '"positive": 39'))
    refused = runner.invoke(app, ["verify", str(out), "--json"])
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["accepted"] is False


def test_without_a_proof_the_verdict_stays_and_the_exit_code_is_1(tmp_path):
    teacher = tmp_path / "teacher.json"
    teacher.write_text(
        json.dumps({"incoming": [[1.0, 0.0], [0.0, 1.0]], "outgoing": [1.0, 1.0], "activation": "hermite:4"})
    )
    file = point_file(tmp_path, case=tight_balance(4))
    done = runner.invoke(app, ["certify", file, "--teacher", str(teacher), "--sphere", "--proof", "--json"])
    assert done.exit_code == 1, done.output
    content = json.loads(done.stdout)
    assert content["kind"] == us.certify(*tight_balance(4)).kind
    assert content["proof"]["holds"] is False
    assert "degenerate" in content["proof"]["statement"]


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        (None, ["--teacher", "8"], "Cannot read the point"),
        ("[]", ["--teacher", "8"], "A point is"),
        ('{"incoming": [1, 2]}', ["--teacher", "8"], "form a matrix"),
        ('{"incoming": [[1, 2]], "outgoing": [1]}', ["--teacher", "none.json"], "teacher"),
        ('{"incoming": [[1, 2]], "outgoing": [1]}', ["--teacher", "8"], "dim=2"),
        ('{"incoming": [[1, 2]], "outgoing": [1]}', ["--teacher", "2", "--out", "x.json"], "--proof"),
        ('{"incoming": [[1, 2]], "outgoing": [1]}', ["--teacher", "2", "--proof", "--out", "."], "directory"),
        ('{"incoming": [[1, 2]], "outgoing": [1]}', ["--teacher", "2", "--activation", "no"], "Unknown activation"),
    ],
)
def test_bad_input_is_told_with_exit_code_2(content, options, word, tmp_path):
    file = tmp_path / "point.json"
    if content is not None:
        file.write_text(content)
    done = runner.invoke(app, ["certify", str(file), *options])
    assert done.exit_code == 2
    assert word in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("content", [None, "{}"])
def test_verify_tells_files_that_are_no_proof(content, tmp_path):
    file = tmp_path / "proof.json"
    if content is not None:
        file.write_text(content)
    done = runner.invoke(app, ["verify", str(file)])
    assert done.exit_code == 2
    assert "Error: " in done.output


@pytest.mark.parametrize(("kind", "words"), [("unconverged", "is not critical"), ("minimum", "No direction is known")])
def test_where_nothing_is_followed_the_reason_is_said(kind, words, capsys):
    _show_ends([], 0, kind)
    assert words in capsys.readouterr().out
