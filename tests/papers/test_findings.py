"""Findings: judgements are data, and hold only as long as the measured checks bear them out."""

import pytest

from understudy.papers import Check
from understudy.papers.findings import (
    FAILING,
    PASSING,
    VERDICTS,
    Judgement,
    _named,
    borne_out,
    findings,
    judgements,
)
from understudy.papers.ledger import Entry, entries
from understudy.papers.registry import PAPERS
from understudy.papers.result import Result

PASSES, FAILS = (Check(name, 1.0, 1.0, 0.1, ok) for name, ok in (("passes", True), ("fails as printed", False)))
JUDGED = [(paper, name) for paper in PAPERS for name in judgements(paper)]


@pytest.mark.parametrize("status", VERDICTS)
def test_a_status_is_shown_only_if_its_checks_bear_it_out(status):
    passing, failing = borne_out(status, [PASSES]), borne_out(status, [PASSES, FAILS])
    assert passing == ("reproduced" if status in FAILING else status)
    assert failing == ("differs" if status in PASSING else status)


@pytest.mark.parametrize(("paper", "name"), JUDGED)
def test_every_judgement_has_evidence_in_the_ledger_that_bears_it_out(paper, name):
    (entry,) = [entry for entry in entries(paper) if entry.id == name]
    every = (*entry.best.checks, *entry.best.printed)
    parts = judgements(paper)[name]
    for part in parts:
        for beginning in part.checks:
            assert _named(every, (beginning,)), f"{beginning!r} is not the beginning of a check's name"
    found = [finding.status for finding in findings(entry, entry.best)]
    assert sorted(found) == sorted(part.status for part in parts)
    assert found == sorted(found, key=lambda status: status not in ("reproduced", "reproduced in part"))


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_wrong_as_printed_is_judged_by_name(paper):
    for entry in entries(paper):
        if entry.best and any(not check.ok for check in (*entry.best.checks, *entry.best.printed)):
            assert entry.id in judgements(paper), "say whether it is a misprint, a gap, a difference or false"


@pytest.mark.parametrize("paper", PAPERS)
def test_numbers_of_ours_are_never_shown_as_the_paper_s(paper):
    for entry in entries(paper):
        for finding in findings(entry, entry.best):
            row = finding.to_json()
            assert set(row) == {"paper", "id", "finding", "status", "scale", "paper_value", "measured", "check"}
            assert all("paper" not in check for check in row["check"])
            if finding.status == "extends":
                assert row["paper_value"] is None


def result(**changes):
    fields = {
        "paper": "toy",
        "claim": "sum",
        "scale": "full",
        "status": "erratum",
        "measured": 1.0,
        "checks": (PASSES,),
        "printed": (FAILS,),
        "erratum_note": "It is 2.",
        "notes": "",
        "when": "2026-01-01",
        "version": "0",
        "settings": {},
        "seconds": 1.0,
    }
    return Result(**{**fields, **changes})


ENTRY = Entry("toy", "sum", "Sec. 1", "The sum is 1.", 1.0, "Adding.", 0.1, "Rounding.")


def test_an_unjudged_claim_is_judged_by_its_checks():
    """Nobody has compared its scale with the paper's: it is reproduced in part at best."""
    assert [f.status for f in findings(ENTRY, result())] == ["reproduced in part", "misprint"]
    assert [f.status for f in findings(ENTRY, result(scale="quick"))] == ["reproduced in part", "misprint"]
    assert [f.status for f in findings(ENTRY, result(checks=(FAILS,), printed=()))] == ["differs"]
    assert [f.status for f in findings(ENTRY, None)] == ["not yet"]


@pytest.mark.parametrize(
    ("scale", "seeds", "status", "told"),
    [
        ("full", 32, "reproduced", "32 of 32 seeds; one width"),
        ("full", 8, "reproduced in part", "8 of 32 seeds; one width"),
        ("quick", 32, "reproduced in part", "quick settings, 32 of 32 seeds"),
    ],
)
def test_reproduced_needs_the_paper_s_scale(scale, seeds, status, told, monkeypatch):
    part = Judgement("The sum is 1.", "reproduced", scale="one width", of={"seeds": 32})
    monkeypatch.setattr("understudy.papers.findings.judgements", lambda paper: {"sum": (part,)})
    (found,) = findings(ENTRY, result(scale=scale, settings={"seeds": seeds}, printed=(), status="reproduced"))
    assert (found.status, found.scale) == (status, told)


def test_a_quick_run_reproduces_nothing_in_full():
    for paper in PAPERS:
        for entry in entries(paper):
            if "quick" in entry.results:
                assert "reproduced" not in [f.status for f in findings(entry, entry.results["quick"])], entry.id


def test_a_judgement_is_checked():
    with pytest.raises(ValueError, match="received"):
        Judgement("The sum is 1.", "erratum")
    with pytest.raises(ValueError, match="received"):
        Judgement(" ", "misprint")
