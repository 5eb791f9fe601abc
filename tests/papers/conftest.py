"""A toy paper of four claims: one that is reproduced, one that differs, one misprinted, one that raises."""

import math
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from understudy import papers
from understudy.papers import Claim, Measurement, Paper, close, equal


def _claim(name, measure, figure=None, **changes):
    said = {
        "where": f"Sec. 1, <{name}>",
        "statement": f"The series of {name} converges & its limit is known.",
        "paper_value": {"limit": math.pi**2 / 6},
        "measured_by": "Adding the terms from the smallest to the largest.",
        "tolerance": 0.02,
        "tolerance_reason": "The tail after N terms is below 1/N.",
        "quick": {"terms": 100},
        "full": {"terms": 1000},
    }
    return Claim(paper="toy", id=name, measure=measure, figure=figure, **{**said, **changes})


@pytest.fixture
def toy(monkeypatch):
    """The toy paper in the registry; ``toy.calls`` counts how often each claim was measured."""
    calls: dict[str, int] = {}
    interrupt = {"at": None}

    def counted(name):
        calls[name] = calls.get(name, 0) + 1
        if interrupt["at"] == name:
            raise KeyboardInterrupt

    def basel(settings, progress):
        counted("basel")
        n = settings["terms"]
        partial = np.cumsum(1.0 / np.arange(1, n + 1) ** 2)
        for step in progress.over([1, 2, 3, 4], "quarter"):
            assert step
        checks = [close("limit", math.pi**2 / 6, partial[-1], 0.02), equal("terms", n, partial.size)]
        data = {"n": np.arange(1, n + 1), "partial": partial}
        return Measurement(checks, {"limit": partial[-1]}, data=data, notes="Slow, but it arrives.")

    def draw(measurement, figure):
        ax = figure.subplots()
        ax.plot(measurement.data["n"], measurement.data["partial"], label="partial sums")
        ax.axhline(math.pi**2 / 6, color="C1", ls="--", label="π²/6")
        ax.set(xlabel="terms n", ylabel="Σ 1/j²", title="Partial sums of the Basel series")
        ax.legend()

    def wrong(settings, progress):
        counted("wrong")
        return Measurement([close("limit", 1.0, 1.5, 0.02)], 1.5)

    def misprint(settings, progress):
        counted("misprint")
        return Measurement(
            [close("Σ 2⁻ʲ from 0 is 2", 2.0, sum(2.0**-j for j in range(60)), 1e-12)],
            {"from 0": 2.0},
            printed=[close("Σ 2⁻ʲ from 0 is 1, as printed", 1.0, sum(2.0**-j for j in range(60)), 1e-12)],
            erratum_note="The sum from 0 is 2; the printed 1 is the sum from 1.",
        )

    def raising(settings, progress):
        counted("raising")
        raise RuntimeError("the toy broke <here>")

    module = ModuleType("toy_paper")
    module.CLAIMS = (
        _claim("basel", basel, draw),
        _claim("wrong", wrong, paper_value=1.0),
        _claim("misprint", misprint, paper_value="the sum is 1"),
        _claim("raising", raising),
    )
    monkeypatch.setitem(sys.modules, "toy_paper", module)
    monkeypatch.setitem(papers.PAPERS, "toy", Paper("toy", "Series & Sums", "Euler", module="toy_paper"))
    return SimpleNamespace(module=module, calls=calls, interrupt=interrupt, claim=_claim)
