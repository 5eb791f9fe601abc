"""`understudy claims` and `understudy reproduce` on a toy paper."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from understudy import papers
from understudy.cli import app
from understudy.commands.claims import claims as claims_command
from understudy.commands.reproduce import reproduce as reproduce_command
from understudy.papers import entries, reproduce

KEYS = {"paper", "id", "finding", "status", "check", "paper_value", "measured", "tolerance", "where", "statement"} | {
    "scale",
    "when",
    "version",
    "settings",
}


@pytest.fixture
def run_command(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    app = typer.Typer()
    app.command()(claims_command)
    app.command()(reproduce_command)
    return lambda *words: CliRunner().invoke(app, [*words])


def test_claims_command(toy, run_command, tmp_path):
    reproduce("toy", out=tmp_path / "out", record=True, results=tmp_path)
    reproduce("toy", "basel", full=True, out=tmp_path / "out", record=True, results=tmp_path)
    listed = run_command("claims", "toy", "--json", "--results", str(tmp_path))
    assert listed.exit_code == 0
    rows = json.loads(listed.stdout)
    assert all(set(row) >= KEYS for row in rows)
    assert [(row["id"], row["status"], row["scale"]) for row in rows] == [
        ("basel", "reproduced in part", "full: terms = 1000"),
        ("wrong", "differs", "quick: terms = 100"),
        ("misprint", "reproduced in part", "quick: terms = 100"),
        ("misprint", "misprint", "quick: terms = 100"),
        ("raising", "not yet", ""),
    ]
    assert rows[3]["check"][0]["ok"] is False
    both = json.loads(run_command("claims", "toy", "--json", "--all-scales", "--results", str(tmp_path)).stdout)
    assert [(row["id"], row["settings_of"]) for row in both][:3] == [
        ("basel", "quick"),
        ("basel", "full"),
        ("wrong", "quick"),
    ]
    table = run_command("claims", "--results", str(tmp_path)).stdout
    for word in ("toy", "basel", "◐ reproduced in part", "≠ differs", "✎ misprint", "… not yet"):
        assert word in table


def test_claims_command_before_anything_is_measured(run_command, tmp_path):
    rows = json.loads(run_command("claims", "toy", "--json", "--results", str(tmp_path)).stdout)
    assert {row["status"] for row in rows} == {"not yet"}
    assert run_command("claims", "toy", "--refresh", "--results", str(tmp_path)).exit_code == 0
    assert (tmp_path / "toy.json").exists()


@pytest.mark.parametrize(
    ("target", "code"),
    [("toy/basel", 0), ("toy/misprint", 0), ("toy/wrong", 1), ("toy/raising", 1), ("toy", 1)],
)
def test_reproduce_exit_codes(run_command, tmp_path, target, code):
    done = run_command("reproduce", target, "--out", str(tmp_path))
    assert done.exit_code == code, done.output
    assert (tmp_path / "toy" / "index.html").as_uri() in done.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("claims", "tpy"), ["'tpy'", "Did you mean 'toy'", "copy-average"]),
        (("reproduce", "nonsense"), ["'nonsense'", "copy-average", "toy"]),
        (("reproduce", "toy/bassel"), ["'bassel'", "Did you mean 'basel'", "misprint"]),
        (("reproduce", "toy/"), ["''", "basel"]),
        (("reproduce",), ["received neither", "copy-average"]),
        (("reproduce", "toy", "--all"), ["received 'toy' and --all"]),
    ],
)
def test_bad_input_is_exit_code_2_and_says_what_exists(run_command, tmp_path, words, said):
    if words[0] == "reproduce":
        words = (*words, "--out", str(tmp_path / "out"))
    done = run_command(*words)
    assert done.exit_code == 2
    for part in said:
        assert part in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_broken_ledger_file_is_exit_code_2(run_command, tmp_path):
    (tmp_path / "toy.json").write_text('{"claims": [')
    done = run_command("claims", "toy", "--results", str(tmp_path))
    assert done.exit_code == 2
    assert "toy.json is not JSON" in done.stderr


def test_reproduce_json_and_record(toy, run_command, tmp_path):
    words = ["--out", str(tmp_path / "out"), "--results", str(tmp_path / "ledger")]
    done = run_command("reproduce", "toy", "--json", "--record", *words)
    assert done.exit_code == 1
    printed = json.loads(done.stdout)
    assert all(set(row) >= KEYS for row in printed["claims"])
    assert "the toy broke" in printed["claims"][-1]["error"]
    assert Path(printed["pages"][0]).exists()
    assert entries("toy", tmp_path / "ledger")[0].results["quick"].status == "reproduced"
    assert "[1/4] toy/basel  ◐ reproduced in part" in done.stderr
    assert "Claim 2 of 4: wrong" in done.stderr


def test_reproduce_all_and_interrupt(toy, run_command, tmp_path, monkeypatch):
    for handle in list(papers.PAPERS):
        if handle != "toy":
            monkeypatch.delitem(papers.PAPERS, handle)
    done = run_command("reproduce", "--all", "--out", str(tmp_path))
    assert done.exit_code == 1
    assert 'href="toy/index.html"' in (tmp_path / "index.html").read_text()
    toy.interrupt["at"] = "raising"
    done = run_command("reproduce", "toy", "--out", str(tmp_path))
    assert done.exit_code == 130
    assert "the same command" in done.stderr


@pytest.mark.parametrize("target", ["tight-balance/even-mnist", "alignment/cifar"])
@pytest.mark.parametrize("place", [None, "nowhere"])
def test_missing_data_are_not_yet_and_named(target, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("UNDERSTUDY_DATA", raising=False)
    if place is not None:
        monkeypatch.setenv("UNDERSTUDY_DATA", str(tmp_path / place))
    done = CliRunner().invoke(app, ["reproduce", target, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "Traceback" not in done.output
    assert "… not yet" in done.stdout
    for part in (f"{target}: not yet, data are missing.", "UNDERSTUDY_DATA", place or ""):
        assert part in done.stderr


def test_other_settings_are_used_and_their_cost_is_told(toy, run_command, tmp_path):
    ledger = ("--results", str(tmp_path / "ledger"))
    reproduce("toy", out=tmp_path / "out", record=True, results=tmp_path / "ledger")
    done = run_command(
        "reproduce", "toy/basel", "--set", "terms=200", "--json", "--out", str(tmp_path / "out"), *ledger
    )
    (row,) = json.loads(done.stdout)["claims"]
    assert row["settings"] == {"terms": 200}
    assert row["check"][1]["measured"] == 200
    told = run_command("reproduce", "toy/basel", "--cost", *ledger)
    assert "toy/basel: about" in told.stdout
    assert toy.calls["basel"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "terms"), "name=value"),
        (("--set", "term=3"), "it has: terms"),
        (("--set", "terms=0.5"), "Give the same type"),
        (("--cluster", "tcp://127.0.0.1:9", "--scheduler-file", "s.json"), "not both"),
        (("--scheduler-file", "nowhere.json"), "There is no scheduler file"),
    ],
)
def test_bad_settings_and_places_are_refused(toy, run_command, tmp_path, words, message):
    done = run_command("reproduce", "toy/basel", *words, "--out", str(tmp_path))
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not toy.calls


def test_a_run_is_compared_with_the_ledger(toy, run_command, tmp_path):
    common = ("--results", str(tmp_path / "ledger"), "--out", str(tmp_path / "out"), "--compare")
    none = run_command("reproduce", "toy/basel", *common)
    assert "no result at quick scale" in none.output
    reproduce("toy", "basel", out=tmp_path / "out", record=True, results=tmp_path / "ledger")
    assert "toy/basel: agrees with the ledger" in run_command("reproduce", "toy/basel", *common).output
    path = tmp_path / "ledger" / "toy.json"
    stored = json.loads(path.read_text())
    stored["claims"][0]["results"]["quick"]["checks"][0]["measured"] = 1.64
    path.write_text(json.dumps(stored))
    changed = run_command("reproduce", "toy/basel", *common)
    assert changed.exit_code == 0
    assert "~ moved: limit: was 1.64, is 1.634" in changed.output
    assert "toy: 1 of 1 claims agree with the ledger (quick, " in changed.output
    stored["claims"][0]["results"]["quick"]["settings"] = {"terms": 99}
    path.write_text(json.dumps(stored))
    other = run_command("reproduce", "toy/basel", *common)
    assert other.exit_code == 1
    assert "toy/basel: does not agree with the ledger" in other.output
