"""The claims of alignment that need no long training, at small settings, with their figures."""

import pytest
from matplotlib.figure import Figure

from understudy.papers import claims_of
from understudy.papers.claim import Progress

CLAIMS = {claim.id: claim for claim in claims_of("alignment")}


@pytest.mark.parametrize(
    ("name", "settings", "status"),
    [
        (
            "recursion",
            {"depths": [3], "networks": 1, "samples": 32, "dim": 2, "widths": [3, 5], "outputs": 2},
            "reproduced",
        ),
        ("attraction", {"dim": 3, "pairs": 2, "samples": 50_000}, "erratum"),
        ("dynamics", {"flows": 1, "gaps": [0.03, 0.01, 0.003]}, "erratum"),
    ],
)
def test_claims_and_their_figures(name, settings, status):
    claim = CLAIMS[name]
    found = claim.measure(settings, Progress())
    assert found.status == status, [c for c in found.checks if not c.ok]
    if claim.figure is not None:
        claim.figure(found, Figure(layout="constrained"))
