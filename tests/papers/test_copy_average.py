"""The paper's claims: well formed, and the cheap ones measured; a deliberately wrong value is noticed."""

import dataclasses

import pytest

from cases import thorough_but
from understudy.papers import Progress, claims_of, find_claims

ROWS = [
    "interaction",
    "assumptions",
    "order-params",
    "span",
    "one-neuron",
    "no-others",
    "one-neuron-flows",
    "one-neuron-maps",
    "softplus-lemmas",
    "damped",
    "ca-critical",
    "ca-optimal",
    "ca-count",
    "regimes",
    "ca-hessian",
    "trajectories",
    "relu-structure",
    "saad-solla",
    "conjecture",
    "warm-start",
]
CHEAP = {
    "damped": "reproduced",
    "ca-optimal": "reproduced",
    "ca-count": "erratum",
    "saad-solla": "erratum",
    "loss-factor": "erratum",
    "erf-slope": "erratum",
    "unit-norms": "erratum",
    "one-neuron-formulas": "erratum",
    "softplus-lemmas": "erratum",
}


def measured(name, **changes):
    (claim,) = find_claims("copy-average", name)
    settings = {**claim.quick, **changes}
    return claim, claim.measure(settings, Progress())


def test_every_claim_of_the_paper_is_there():
    assert [claim.id for claim in claims_of("copy-average")][: len(ROWS)] == ROWS


@pytest.mark.parametrize(
    ("name", "status"), thorough_but(CHEAP.items(), set(CHEAP) - {"saad-solla", "ca-count", "ca-optimal", "damped"})
)
def test_cheap_claims(name, status):
    _, measurement = measured(name)
    failed = [check for check in measurement.checks if not check.ok]
    assert not failed
    assert measurement.status == status


@pytest.mark.thorough
def test_incomplete_partitions_make_the_theorem_an_erratum():
    _, measurement = measured("ca-critical", students=2, teachers=4, others=[])
    assert measurement.status == "erratum"
    assert measurement.measured["erf, incomplete: least ‖∇L‖"] > 0.5


@pytest.mark.thorough
def test_the_figure_is_drawn_from_what_was_measured():
    from matplotlib.figure import Figure

    claim, measurement = measured("ca-hessian", dense=[[2, 3]], near=22, points=5, further=[])
    assert measurement.status == "reproduced"
    figure = Figure()
    claim.figure(measurement, figure)
    assert len(figure.axes) == 2


def test_a_wrong_value_of_the_paper_differs(monkeypatch):
    from understudy.papers.copy_average import hessian

    original = hessian.equal
    monkeypatch.setattr(hessian, "equal", lambda name, paper, found: original(name, [7, 12, 20], found))
    _, measurement = measured("ca-hessian", dense=[[2, 3]], near=22, points=4, further=[])
    assert measurement.status == "differs"


def test_full_settings_are_at_the_papers_scale():
    (claim,) = find_claims("copy-average", "regimes")
    assert set(claim.full["grid"]) == {"8", "12", "16"}
    assert all(len(ks) >= 12 for ks in claim.full["grid"].values())
    assert claim.full["seeds"] == 20
    assert dataclasses.asdict(claim)["paper"] == "copy-average"
