"""Two measurements of a claim agree if every check has its outcome and moved by little."""

import pytest

from understudy.papers import Check, Progress, Result, find_claims
from understudy.papers.agreement import agrees, disagreements
from understudy.papers.ledger import entries
from understudy.papers.registry import PAPERS


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
    (known,) = [entry.results["quick"] for entry in entries(paper) if entry.id == claim]
    new = Result.of(found, "quick", found.measure(dict(found.quick), Progress()), 0.0)
    assert disagreements(known, new) == []
