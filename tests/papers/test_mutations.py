"""Every claim has a changed number under which one of its checks, and what is said of the claim, come out otherwise."""

import pytest

from understudy.papers import Check
from understudy.papers.findings import findings
from understudy.papers.ledger import entries
from understudy.papers.mutations import Mutation, failing, mutations, retold, rule
from understudy.papers.registry import PAPERS, claims_of

LEDGER = {(paper, entry.id): entry for paper in PAPERS for entry in entries(paper)}
CHECKS = [
    (f"{paper}/{name}", check)
    for (paper, name), entry in LEDGER.items()
    for result in entry.results.values()
    for check in (*result.checks, *result.printed)
]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_has_a_mutation(paper):
    claims = {claim.id for claim in claims_of(paper)}
    missing, strangers = claims - set(mutations(paper)), set(mutations(paper)) - claims
    assert not missing, f"add to papers/mutations/{paper}.toml a changed number that fails: {sorted(missing)}"
    assert not strangers, f"papers/mutations/{paper}.toml names claims that do not exist: {sorted(strangers)}"


@pytest.mark.parametrize(("paper", "name"), [(paper, name) for paper in PAPERS for name in mutations(paper)])
def test_the_mutation_turns_the_check_and_the_finding(paper, name):
    entry, mutation = LEDGER[paper, name], mutations(paper)[name]
    if entry.best is None:
        pytest.skip("not measured yet")
    before = mutation.of((*entry.best.checks, *entry.best.printed))
    assert before is not None, f"no check begins with {mutation.check!r}"
    assert mutation.changed(before).ok != before.ok
    changed = findings(entry, mutation.applied(entry.best))
    assert [f.status for f in changed] != [f.status for f in findings(entry, entry.best)]


def test_what_the_ledger_says_of_each_check_follows_from_its_numbers():
    """Every stored check is compared again from what is stored; statements without a number are few."""
    statements = 0
    for name, check in CHECKS:
        statements += rule(check) == "holds"
        known = "deviation" not in str(check.measured) or "relative" not in f"{check.tolerance}"
        if rule(check) != "holds" and known:
            assert retold(check).ok == check.ok, (name, check)
        assert ("fails" if check.ok else "passes") in failing(check), name
    assert statements <= len(CHECKS) / 20


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        (Check("bound", "≤ 1", 0.5, None, True), 1.1),
        (Check("bound", "≥ -1e-12", [0.0, 2.0], None, True), [0.0, -1.0]),
        (Check("range", "in [0.5, 1]", "0.6 … 0.9", None, True), [0.6, 1.2]),
        (Check("value", 2.0, 2.01, 0.1, True), 2.2),
        (Check("value", [1.0, 2.0], [1.0, 2.0], "0.01 relative", True), [1.0, 2.1]),
        (Check("values", "20 values", "20 values, largest deviation 1e-9", 1e-8, True), 1e-7),
        (Check("kinds", ["minimum"], ["minimum"], "exact", True), ["saddle"]),
    ],
)
def test_a_stored_check_is_compared_again(check, wrong):
    assert retold(check).ok
    assert not retold(check, measured=wrong).ok


def test_a_statement_without_a_number_cannot_be_compared_again():
    with pytest.raises(ValueError, match="cannot be repeated"):
        retold(Check("it holds", "holds", "yes", None, True), measured="no")


def test_a_mutation_says_one_change_and_a_reason():
    with pytest.raises(ValueError, match="one of measured"):
        Mutation("norm", "a longer neuron", measured=2.0, times=2.0)
    with pytest.raises(ValueError, match="a reason"):
        Mutation("norm", " ", measured=2.0)
