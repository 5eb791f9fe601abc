"""A run agrees with the ledger if every check and every finding comes out as recorded; moved numbers are listed."""

from dataclasses import replace

import pytest

from understudy.papers import Check, Progress, Result, find_claims
from understudy.papers.agreement import agrees, compare, compare_checks, compare_statuses
from understudy.papers.findings import Judgement
from understudy.papers.ledger import Entry, entries
from understudy.papers.registry import PAPERS, claims_of
from understudy.papers.values import jsonable


@pytest.mark.parametrize(
    ("old", "near", "far"),
    [
        (Check("loss", "≤ 1e-08", 1.325e-11, None, True), 1.470e-11, 1e-9),
        (Check("share", "≥ 0.3", 0.5, None, True), 0.501, 0.51),
        (Check("value", 2.0, 2.01, 0.1, True), 2.0105, 2.02),
        (Check("values", 2.0, [2.01, 1.99], 0.1, True), [2.01, 1.99], [2.01, 2.01]),
        (Check("range", "in [0, 1]", "0.4 … 0.6", None, True), "0.4 … 0.601", "0.4 … 0.7"),
        (Check("long", "20 values", "20 values, largest deviation 1e-12", 1e-8, True),) * 1
        + ("20 values, largest deviation 3e-12", "20 values, largest deviation 5e-9"),
        (Check("kinds", ["minimum"], ["minimum"], "exact", True), ["minimum"], ["saddle"]),
    ],
)
def test_small_moves_agree_and_large_ones_do_not(old, near, far):
    for measured, same in ((near, True), (far, False)):
        assert agrees(old, Check(old.name, old.paper, measured, old.tolerance, True)) == same
    assert not agrees(old, Check(old.name, old.paper, near, old.tolerance, False))


def test_every_check_of_the_ledger_agrees_with_itself():
    for paper in PAPERS:
        for entry in entries(paper):
            for result in entry.results.values():
                assert all(agrees(check, check) for check in (*result.checks, *result.printed)), (paper, entry.id)


@pytest.mark.parametrize(
    "name",
    [
        "copy-average/erf-slope",
        "copy-average/unit-norms",
        "copy-average/ca-optimal",
        "few-neurons/multi-output",
        "few-neurons/unequal-correlations",
        "alignment/near-opposite",
        "alignment/both-layers",
    ],
)
def test_a_quick_run_agrees_with_the_ledger(name):
    """The claims of a second or less; `understudy reproduce PAPER --compare` does it for all."""
    paper, _, claim = name.partition("/")
    (found,) = find_claims(paper, claim)
    (known,) = [entry for entry in entries(paper) if entry.id == claim]
    new = Result.of(found, "quick", found.measure(dict(found.quick), Progress()), 0.0)
    compared = compare(known, new)
    assert (compared.differs, compared.moved) == ((), ())


FIVE = ("copy-average", "few-neurons", "alignment", "tight-balance", "attraction-repulsion")
RECORDED = [(paper, entry.id) for paper in FIVE for entry in entries(paper)]


@pytest.mark.parametrize(("paper", "name"), RECORDED)
def test_the_ledger_s_quick_result_agrees_with_its_full_one(paper, name):
    """Every claim has a quick result; its statuses are those of the full one, or the finding says what it needs."""
    (entry,) = [entry for entry in entries(paper) if entry.id == name]
    differs, _ = compare_statuses(entry, entry.results["quick"])
    assert differs == ()


@pytest.mark.parametrize("paper", FIVE)
def test_the_ledger_s_quick_results_have_the_claims_settings(paper):
    """Otherwise a quick run cannot be compared with the ledger."""
    recorded = {entry.id: entry.results["quick"].settings for entry in entries(paper)}
    assert {claim.id: jsonable(claim.quick) for claim in claims_of(paper)} == recorded


PASSES = Check("limit", 1.0, 1.0, 0.1, True)
QUICK = Result(
    "toy", "sum", "quick", "reproduced", 1.0, (PASSES,), (), "", "", "2026-01-01", "0", {"terms": 9}, 1.0
)  # fmt: skip
ENTRY = Entry("toy", "sum", "Sec. 1", "The sum is 1.", 1.0, "Adding.", 0.1, "Rounding.", {"quick": QUICK})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"checks": (replace(PASSES, measured=2.0, ok=False),), "status": "differs"}, "was 1, is 2 (fails)"),
        ({"checks": (replace(PASSES, name="sum"),)}, "limit: only in the ledger"),
        ({"settings": {"terms": 10}}, "other settings"),
        ({"status": "failed", "error": "Traceback\nValueError: no"}, "failed: ValueError: no"),
    ],
)
def test_what_does_not_agree_is_said(change, said):
    compared = compare(ENTRY, replace(QUICK, **change))
    assert not compared.agrees
    assert any(said in line for line in compared.differs)


def test_a_number_that_moved_is_no_disagreement():
    moved = replace(QUICK, checks=(replace(PASSES, measured=1.05),))
    assert compare_checks(QUICK, moved) == ((), ("limit: was 1, is 1.05",))
    assert compare(ENTRY, moved).agrees


def test_missing_data_are_no_disagreement():
    compared = compare(ENTRY, replace(QUICK, status="not yet", error="MNIST is not here"))
    assert compared.agrees
    assert compared.open == ("not yet: MNIST is not here",)


@pytest.mark.parametrize("reason", ["", "ten terms are too few"])
def test_a_quick_run_may_leave_open_what_needs_full_scale(reason, monkeypatch):
    """Without a reason, a quick result that contradicts the full one is a disagreement."""
    part = Judgement("The sum is 1.", "reproduced", needs_full=reason)
    monkeypatch.setattr("understudy.papers.findings.judgements", lambda paper: {"sum": (part,)})
    fails = replace(QUICK, checks=(replace(PASSES, measured=2.0, ok=False),), status="differs")
    entry = replace(ENTRY, results={"quick": fails, "full": replace(QUICK, scale="full")})
    differs, left = compare_statuses(entry, fails)
    if reason:
        assert (differs, left) == ((), (f"reproduced, needs full scale: {reason}: The sum is 1.",))
    else:
        assert (differs, left) == (("differs instead of reproduced: The sum is 1.",), ())
