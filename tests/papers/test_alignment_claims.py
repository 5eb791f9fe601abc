"""The claims of alignment that need no long training, at small settings, with their figures."""

import pytest
from matplotlib.figure import Figure

from cases import thorough_but
from understudy.experiments.aligning import Experiment, schedule
from understudy.papers import claims_of
from understudy.papers.alignment.students import experiment_of
from understudy.papers.claim import Progress
from understudy.papers.runner import reproduce

SMALL = {
    "teacher": [6], "dim": 12, "outputs": 6, "samples": 600, "evaluation": 400, "steps": 200, "epochs": 12, "seeds": 8, "keep": False, "rate": 0.02,
}  # fmt: skip
CLAIMS = {claim.id: claim for claim in claims_of("alignment")}


@pytest.mark.parametrize(
    ("name", "settings", "status"),
    thorough_but(
        [
            (
                "recursion",
                {"depths": [3], "networks": 1, "samples": 32, "dim": 2, "widths": [3, 5], "outputs": 2},
                "reproduced",
            ),
            ("attraction", {"dim": 3, "pairs": 2, "samples": 50_000}, "erratum"),
            ("dynamics", {"flows": 1, "gaps": [0.03, 0.01, 0.003]}, "erratum"),
            ("interpolation", {"samples": 5, "batch": 2, "depths": [2], "networks": 1}, "reproduced"),
            ("recovery", SMALL | {"overs": [1.0, 5.0], "polarities": [0.5, 2.0]}, "reproduced"),
            ("loss-curves", SMALL | {"overs": [1.0, 5.0], "polarities": [0.5, 2.0]}, "reproduced"),
            ("l-shape", SMALL | {"overs": [1.0, 5.0], "polarities": [0.5, 2.0]}, "reproduced"),
            (
                "align-2layer",
                SMALL | {"teacher": [3], "seeds": 5, "over": 2.0, "polarity": 0.0, "below": 1e-10, "iterations": 500},
                "erratum",
            ),
        ],
        ["attraction", "dynamics"],
    ),
)
def test_claims_and_their_figures(name, settings, status):
    claim = CLAIMS[name]
    found = claim.measure(settings, Progress())
    assert found.status == status, [c for c in found.checks if not c.ok]
    if claim.figure is not None:
        claim.figure(found, Figure(layout="constrained"))


def test_without_data_cifar_is_not_yet(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_DATA", str(tmp_path))
    run = reproduce("alignment", "cifar", out=tmp_path / "out", results=tmp_path / "ledger", record=True)
    result = run.results["cifar"]
    assert result.status == "not yet"
    assert "UNDERSTUDY_DATA" in result.error
    assert run.ok
    again = reproduce(
        "alignment", "cifar", out=tmp_path / "out", results=tmp_path / "ledger"
    )  # asked again, tried again
    assert again.results["cifar"].when >= result.when
    assert "Data are missing" in run.page.read_text(encoding="utf-8")


def test_the_experiment_of_the_command_is_that_of_the_claim():
    full = CLAIMS["recovery"].full
    cell = experiment_of(full, over=10.0, polarity=1.5)
    assert cell == Experiment(teacher=(20,), over=10.0, polarity=1.5, record=schedule(100))
