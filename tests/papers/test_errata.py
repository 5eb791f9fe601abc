"""The page of errata and the judgements of the ledger list the same findings."""

import re
from pathlib import Path

import pytest

from understudy.papers.findings import FAILING, judgements

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"
SECTIONS = {
    "copy-average": "Should Under-parameterized",
    "few-neurons": "Towards a Complete Theory",
    "tight-balance": "Gradient Flow Dynamics",
    "attraction-repulsion": "Feature Learning",
    "alignment": "Over-parameterization as a Catalyst",
}


def rows_of(paper):
    """The (claim, status) pairs of a paper's tables, without "perhaps of the scan"."""
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")
    section = next(part for part in parts if part.startswith(SECTIONS[paper]))
    found = re.findall(r"^\| `([\w-]+)` \| ([^|]+?) \|", section, re.M)
    return {(claim, status.split(",")[0]) for claim, status in found}


@pytest.mark.parametrize("paper", SECTIONS)
def test_the_page_has_a_row_for_each_finding_against_a_paper_and_no_others(paper):
    judged = {(claim, p.status) for claim, parts in judgements(paper).items() for p in parts if p.status in FAILING}
    assert rows_of(paper) == judged
