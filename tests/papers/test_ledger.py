"""The ledger's file and the registry of papers."""

import dataclasses
import json
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import understudy.papers
from understudy import papers
from understudy.papers import entries, reproduce
from understudy.papers.ledger import PACKAGED


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
        understudy.__version__ = "0"
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
    assert list(dict.fromkeys(row["id"] for row in json.loads(done.stdout))) == [
        "basel",
        "wrong",
        "misprint",
        "raising",
    ]
