"""The ledger: checks, verdicts, running, resuming, recording, and the two commands."""

import dataclasses
import json
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import understudy.papers
from understudy import papers
from understudy.commands.claims import claims as claims_command
from understudy.commands.reproduce import reproduce as reproduce_command
from understudy.papers import Measurement, at_least, at_most, between, close, entries, equal, holds, reproduce
from understudy.papers.ledger import PACKAGED
from understudy.papers.runner import TimeLeft, time_left
from understudy.papers.values import duration, jsonable, text
from understudy.papers.workspace import Workspace

KEYS = {"paper", "id", "status", "paper_value", "measured", "tolerance", "where", "statement"} | {
    "scale",
    "when",
    "version",
    "settings",
}
NAN, INF = float("nan"), float("inf")


def statuses(run):
    return {name: result.status for name, result in run.results.items()}


# Checks


@pytest.mark.parametrize(
    ("check", "ok"),
    [
        (lambda: close("x", 1.0, 1.05, 0.05 + 1e-12), True),
        (lambda: close("x", 1.0, 1.06, 0.05), False),
        (lambda: close("x", 100.0, 104.0, 0.05, relative=True), True),
        (lambda: close("x", 100.0, 106.0, 0.05, relative=True), False),
        (lambda: close("x", 1.0, NAN, 10.0), False),
        (lambda: close("x", NAN, NAN, 10.0), False),
        (lambda: close("x", INF, INF, 1.0), False),
        (lambda: close("x", [1, 2], np.array([1.0, 2.0]), 0), True),
        (lambda: close("x", [1, 2], [1.0, 2.1], 0.05), False),
        (lambda: close("x", 0.0, np.zeros(50), 1e-12), True),
        (lambda: close("x", np.zeros(50), np.r_[np.zeros(49), 1.0], 1e-12), False),
        (lambda: equal("x", 3, np.int64(3)), True),
        (lambda: equal("x", "copy", "average"), False),
        (lambda: equal("x", [1, 2], (1, 2)), True),
        (lambda: equal("x", NAN, NAN), False),
        (lambda: at_most("x", [1e-13, 1e-12], bound=1e-12), True),
        (lambda: at_most("x", [1e-13, 2e-12], bound=1e-12), False),
        (lambda: at_most("x", [0.0, NAN], bound=1.0), False),
        (lambda: at_least("x", 0.3, bound=0.3), True),
        (lambda: at_least("x", [0.3, 0.2], bound=0.3), False),
        (lambda: at_least("x", NAN, bound=0.3), False),
        (lambda: between("x", [1, 2], low=1, high=2), True),
        (lambda: between("x", [1, 3], low=1, high=2), False),
        (lambda: between("x", [1, NAN], low=1, high=2), False),
        (lambda: holds("x", np.bool_(True), "evidence"), True),
        (lambda: holds("x", False, {"counterexamples": 3}), False),
    ],
)
def test_checks_compare(check, ok):
    made = check()
    assert made.ok is ok
    json.dumps(dataclasses.asdict(made), allow_nan=False)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: close("x", 1.0, [], 0.1), "a check over nothing would pass"),
        (lambda: close("x", [1.0, 2.0], 1.0, 0.1), "equal shapes"),
        (lambda: close("x", 1.0, 1.0, -1.0), "received -1.0"),
        (lambda: close("x", 1.0, 1.0, INF), "finite"),
        (lambda: close("x", 1.0, 1.0, NAN), "finite"),
        (lambda: close("x", 1.0, 1j, 0.1), "real numbers"),
        (lambda: close(" ", 1.0, 1.0, 0.1), "needs a name"),
        (lambda: at_most("x", np.array([]), bound=1.0), "empty"),
        (lambda: between("x", 1, low=2, high=1), "low ≤ high"),
        (lambda: equal("x", None, None), "nothing to compare"),
        (lambda: holds("x", "yes", "evidence"), "one boolean"),
        (lambda: holds("x", np.array([True, True]), "evidence"), "one boolean"),
        (lambda: holds("x", True, ""), "give the evidence"),
    ],
)
def test_checks_refuse_what_compares_nothing(mistake, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mistake()


# Verdicts

PASSES, FAILS = close("passes", 1.0, 1.0, 0.1), close("fails", 1.0, 2.0, 0.1)


@pytest.mark.parametrize(
    ("checks", "printed", "status"),
    [
        ([PASSES], [], "reproduced"),
        ([PASSES, FAILS], [], "differs"),
        ([PASSES], [FAILS], "erratum"),
        ([PASSES], [PASSES, FAILS], "erratum"),
        ([PASSES], [PASSES], "reproduced"),
        ([FAILS], [FAILS], "differs"),
        ([FAILS], [PASSES], "differs"),
    ],
)
def test_verdict_follows_from_checks(checks, printed, status):
    note = "corrected" if printed else ""
    assert Measurement(checks, 1.0, printed=printed, erratum_note=note).status == status


def test_nothing_is_reproduced_without_checks():
    with pytest.raises(ValueError, match="at least one check"):
        Measurement([], 1.0)
    with pytest.raises(ValueError, match="at least one check"):
        Measurement([], 1.0, printed=[FAILS], erratum_note="wrong as printed")


def test_erratum_needs_both_its_check_and_its_note():
    with pytest.raises(ValueError, match="needs both"):
        Measurement([PASSES], 1.0, printed=[FAILS])
    with pytest.raises(ValueError, match="needs both"):
        Measurement([PASSES], 1.0, erratum_note="wrong as printed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paper_value": None}, "no paper_value"),
        ({"statement": " "}, "no statement"),
        ({"tolerance_reason": ""}, "no tolerance_reason"),
        ({"quick": {"f": object()}}, r"quick\['f'\] cannot be kept as JSON"),
    ],
)
def test_claims_say_what_they_must(toy, change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        toy.claim("basel", None, **change)
    with pytest.raises(ValueError, match="joined by hyphens"):
        toy.claim("One Neuron", None)


# Values


def test_values_as_json_and_text():
    assert jsonable({1: np.float64(0.5), "a": np.arange(2), "b": (NAN, -INF)}) == {
        "1": 0.5,
        "a": [0, 1],
        "b": ["nan", "-inf"],
    }
    assert (
        text({"γ1": 0.4600000001, "n": [8, 12], "in": {"a": None}, "g": "≤ 1"})
        == "γ1 = 0.46, n = [8, 12], in = (a = –), g ≤ 1"
    )
    assert [duration(s) for s in (0.01, 0.44, 9.96, 59.7, 185, 7800)] == [
        "under 0.1 s",
        "0.4 s",
        "10 s",
        "1 min 00 s",
        "3 min 05 s",
        "2 h 10 min",
    ]


def test_time_left_uses_what_is_known():
    assert time_left([10.0, None], (None, 3.0, 0.25)) == TimeLeft(19.0, 1)
    assert time_left([10.0], (20.0, 3.0, 0.0)) == TimeLeft(27.0, 0)
    assert time_left([], (2.0, 3.0, 0.0)) == TimeLeft(0.0, 0)
    assert time_left([None, 1.0], (None, 3.0, 0.0)) == TimeLeft(1.0, 2)
    assert time_left([], None) == TimeLeft(0.0, 0)


# Running


def test_reproduce_gives_each_verdict(toy, tmp_path):
    run = reproduce("toy", out=tmp_path)
    assert statuses(run) == {
        "basel": "reproduced",
        "wrong": "differs",
        "misprint": "erratum",
        "raising": "failed",
    }
    assert not run.ok
    assert "the toy broke" in run.results["raising"].error
    assert run.results["basel"].settings == {"terms": 100}
    for suffix in (".png", ".svg"):
        assert (tmp_path / "toy" / "figures" / f"basel-quick{suffix}").stat().st_size > 1000


def test_a_wrong_value_of_the_paper_is_reported_as_differing(toy, tmp_path):
    """The same computation, with the paper's value changed, must not be called reproduced."""
    right = toy.module.CLAIMS[0]

    def measure(settings, progress):
        measured = right.measure(settings, progress)
        wrong = close("limit", 1.70, measured.measured["limit"], 0.02)
        return dataclasses.replace(measured, checks=[wrong, *measured.checks[1:]])

    toy.module.CLAIMS = (right, dataclasses.replace(right, id="changed", measure=measure))
    assert statuses(reproduce("toy", out=tmp_path)) == {"basel": "reproduced", "changed": "differs"}


def test_full_uses_full_settings_and_its_own_files(toy, tmp_path):
    quick = reproduce("toy", "basel", out=tmp_path)
    full = reproduce("toy", "basel", full=True, out=tmp_path)
    assert full.results["basel"].settings == {"terms": 1000}
    assert full.results["basel"].measured["limit"] > quick.results["basel"].measured["limit"]
    assert {p.name for p in (tmp_path / "toy").glob("basel-*.json")} == {
        "basel-quick.json",
        "basel-full.json",
    }


def test_finished_claims_are_kept_and_failed_ones_tried_again(toy, tmp_path):
    first = reproduce("toy", out=tmp_path)
    stages = []
    second = reproduce("toy", out=tmp_path, progress=lambda e: stages.append((e.claim.id, e.stage)))
    assert toy.calls == {"basel": 1, "wrong": 1, "misprint": 1, "raising": 2}
    assert second.results["basel"] == first.results["basel"]
    assert [s for s in stages if s[1] != "running"] == [
        ("basel", "kept"),
        ("wrong", "kept"),
        ("misprint", "kept"),
        ("raising", "start"),
        ("raising", "finished"),
    ]
    reproduce("toy", out=tmp_path, force=True)
    assert toy.calls["basel"] == 2


@pytest.mark.parametrize("damage", ["settings", "version", "cut short", "no arrays"])
def test_a_stored_result_of_something_else_is_measured_again(toy, tmp_path, monkeypatch, damage):
    reproduce("toy", "basel", out=tmp_path)
    stored = tmp_path / "toy" / "basel-quick.json"
    if damage == "settings":
        toy.module.CLAIMS = (dataclasses.replace(toy.module.CLAIMS[0], quick={"terms": 101}),)
    elif damage == "version":
        monkeypatch.setattr("understudy.papers.result.version", lambda _: "99")
    elif damage == "cut short":
        stored.write_bytes(stored.read_bytes()[:50])
    else:
        stored.with_suffix(".npz").unlink()
    reproduce("toy", "basel", out=tmp_path)
    assert toy.calls["basel"] == 2


def test_interrupt_keeps_what_is_finished(toy, tmp_path):
    toy.interrupt["at"] = "misprint"
    with pytest.raises(KeyboardInterrupt):
        reproduce("toy", out=tmp_path)
    assert "not yet" in (tmp_path / "toy" / "index.html").read_text()
    toy.interrupt["at"] = None
    reproduce("toy", out=tmp_path)
    assert toy.calls == {"basel": 1, "wrong": 1, "misprint": 2, "raising": 1}
    assert not list(tmp_path.rglob(".*"))  # no temporary files stay


def test_progress_counts_and_estimates(toy, tmp_path):
    events = []
    reproduce("toy", out=tmp_path, progress=events.append)
    assert events[0].stage == "start"
    assert (events[0].index, events[0].total, events[0].left.unknown) == (0, 4, 4)
    assert [e.fraction for e in events if e.stage == "running"] == [0, 0.25, 0.5, 0.75, 1]
    again = []
    reproduce("toy", out=tmp_path, force=True, progress=again.append)
    assert again[0].left.unknown == 1  # only the claim that failed was never timed


def test_a_measure_that_returns_or_stores_nonsense_has_failed(toy, tmp_path):
    toy.module.CLAIMS = (
        toy.claim("nothing", lambda settings, progress: None),
        toy.claim("objects", lambda settings, progress: Measurement([PASSES], 1.0, data={"a": [object()]})),
        toy.claim("fine", lambda settings, progress: Measurement([PASSES], 1.0)),
    )
    run = reproduce("toy", out=tmp_path)
    assert statuses(run) == {"nothing": "failed", "objects": "failed", "fine": "reproduced"}
    assert "must return a Measurement" in run.results["nothing"].error
    assert "data['a'] is no array" in run.results["objects"].error


def test_measure_cannot_change_the_settings_of_the_claim(toy, tmp_path):
    def measure(settings, progress):
        settings["ks"].append(1)
        return Measurement([PASSES], 1.0)

    toy.module.CLAIMS = (toy.claim("greedy", measure, quick={"ks": []}),)
    assert reproduce("toy", out=tmp_path).results["greedy"].settings == {"ks": []}
    assert toy.module.CLAIMS[0].quick == {"ks": []}


def test_a_figure_that_cannot_be_drawn_costs_no_result(toy, tmp_path):
    def draw(measurement, figure):
        raise ZeroDivisionError("no axes today")

    toy.module.CLAIMS = (toy.claim("sketch", lambda s, p: Measurement([PASSES], 1.0), draw),)
    run = reproduce("toy", out=tmp_path)
    assert statuses(run) == {"sketch": "reproduced"}
    assert "no axes today" in run.figure_errors["sketch"]
    assert not run.ok


# The ledger's file


def test_record_round_trip(toy, tmp_path):
    run = reproduce("toy", out=tmp_path / "out", record=True, results=tmp_path / "ledger")
    stored = entries("toy", tmp_path / "ledger")
    assert [entry.id for entry in stored] == ["basel", "wrong", "misprint", "raising"]
    for entry in stored[:3]:
        assert entry.results == {"quick": run.results[entry.id]}
    assert stored[3].results == {}  # a failure is no value
    full = reproduce("toy", "basel", full=True, out=tmp_path / "out", record=True, results=tmp_path / "ledger")
    updated = entries("toy", tmp_path / "ledger")[0]
    assert updated.results == {"quick": run.results["basel"], "full": full.results["basel"]}
    assert updated.best == full.results["basel"]


def test_several_writers_may_record_one_paper(toy, tmp_path):
    """Each thread reads, changes and writes the file again and again; no result may be lost."""
    run = reproduce("toy", out=tmp_path / "out")
    kept = [result for result in run.results.values() if result.status != "failed"]
    with ThreadPoolExecutor(len(kept)) as pool:
        for _ in range(10):
            (tmp_path / "toy.json").unlink(missing_ok=True)
            list(pool.map(lambda result: papers.record("toy", [result], tmp_path), kept))
            assert [bool(entry.results) for entry in entries("toy", tmp_path)] == [True, True, True, False]


def test_nothing_is_written_to_the_package_unless_asked(toy, tmp_path):
    reproduce("toy", out=tmp_path)
    assert not (PACKAGED / "toy.json").exists()


def test_a_verdict_written_by_hand_is_refused(toy, tmp_path):
    reproduce("toy", out=tmp_path / "out", record=True, results=tmp_path)
    path = tmp_path / "toy.json"
    path.write_text(path.read_text().replace('"status": "differs"', '"status": "reproduced"'))
    with pytest.raises(papers.BadRecordError, match=r"its checks give 'differs'"):
        entries("toy", tmp_path)


def test_outdated_statements_are_found_and_refreshed(toy, tmp_path):
    reproduce("toy", out=tmp_path / "out", record=True, results=tmp_path)
    assert papers.outdated("toy", tmp_path) == []
    before = entries("toy", tmp_path)
    changed = dataclasses.replace(toy.module.CLAIMS[1], statement="Said better.")
    toy.module.CLAIMS = (toy.module.CLAIMS[0], changed)
    assert papers.outdated("toy", tmp_path) == ["misprint", "raising", "wrong"]
    papers.record("toy", directory=tmp_path)
    after = entries("toy", tmp_path)
    assert [entry.statement for entry in after] == [before[0].statement, "Said better."]
    assert after[1].results == before[1].results


@pytest.mark.parametrize("paper", list(papers.PAPERS))
def test_packaged_statements_are_those_of_the_code(paper):
    assert papers.outdated(paper) == [], f"run `understudy claims {paper} --refresh`"


def test_registry_refuses_twins_and_strangers(toy):
    first = toy.module.CLAIMS[0]
    toy.module.CLAIMS = (first, first)
    with pytest.raises(ValueError, match="two claims named 'basel'"):
        papers.claims_of("toy")
    toy.module.CLAIMS = (dataclasses.replace(first, paper="other"),)
    with pytest.raises(ValueError, match="of paper 'other'"):
        papers.claims_of("toy")


def test_a_paper_not_written_yet_has_no_claims_but_a_broken_one_raises(toy, monkeypatch, tmp_path):
    monkeypatch.setitem(papers.PAPERS, "later", papers.Paper("later", "Later", "Nobody"))
    assert papers.claims_of("later") == ()
    (tmp_path / "broken_paper.py").write_text("import does_not_exist_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(papers.PAPERS, "broken", papers.Paper("broken", "Broken", "Nobody", "broken_paper"))
    with pytest.raises(ModuleNotFoundError, match="does_not_exist_at_all"):
        papers.claims_of("broken")


def test_listing_stored_claims_imports_neither_jax_nor_the_paper(toy, tmp_path):
    reproduce("toy", out=tmp_path / "out", record=True, results=tmp_path)
    # The package's own __init__ is left out: what it imports is not the ledger's doing.
    package = Path(understudy.papers.__file__).parents[1]
    code = f"""
        import sys, types
        understudy = types.ModuleType("understudy")
        understudy.__path__ = [{str(package)!r}]
        sys.modules["understudy"] = understudy
        from understudy.papers.registry import PAPERS, Paper
        PAPERS.clear()
        PAPERS["toy"] = Paper("toy", "Series", "Euler", "a_module_that_does_not_exist")
        from pathlib import Path
        from understudy.commands.claims import claims
        claims(json_=True, results=Path({str(tmp_path)!r}))
        heavy = {{"jax", "matplotlib", "numpy", "scipy"}} & set(sys.modules)
        assert not heavy, heavy
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in json.loads(done.stdout)["claims"]] == [
        "basel",
        "wrong",
        "misprint",
        "raising",
    ]


# The commands


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
    rows = json.loads(listed.stdout)["claims"]
    assert all(set(row) >= KEYS for row in rows)
    assert [(row["id"], row["status"], row["scale"]) for row in rows] == [
        ("basel", "reproduced", "full"),
        ("wrong", "differs", "quick"),
        ("misprint", "erratum", "quick"),
        ("raising", "not yet", None),
    ]
    both = json.loads(run_command("claims", "toy", "--json", "--all-scales", "--results", str(tmp_path)).stdout)
    assert [(row["id"], row["scale"]) for row in both["claims"]][:3] == [
        ("basel", "quick"),
        ("basel", "full"),
        ("wrong", "quick"),
    ]
    table = run_command("claims", "--results", str(tmp_path)).stdout
    for word in ("toy", "basel", "✓ reproduced", "≠ differs", "✎ erratum", "… not yet"):
        assert word in table


def test_claims_command_before_anything_is_measured(run_command, tmp_path):
    rows = json.loads(run_command("claims", "toy", "--json", "--results", str(tmp_path)).stdout)["claims"]
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
    assert "the toy broke" in printed["claims"][3]["error"]
    assert Path(printed["pages"][0]).exists()
    assert entries("toy", tmp_path / "ledger")[0].results["quick"].status == "reproduced"
    assert "[1/4] toy/basel  ✓ reproduced" in done.stderr
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


def test_workspace_returns_what_was_saved(toy, tmp_path):
    run = reproduce("toy", "basel", out=tmp_path)
    claim = toy.module.CLAIMS[0]
    stored = Workspace(tmp_path, "toy").load(claim, "quick")
    assert stored is not None
    assert stored[0] == run.results["basel"]
    np.testing.assert_array_equal(stored[1]["n"], np.arange(1, 101))
