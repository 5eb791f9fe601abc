"""Running claims: verdicts, resuming, interrupts, progress, what is kept."""

import dataclasses

import numpy as np
import pytest

from understudy.papers import Measurement, close, reproduce
from understudy.papers.registry import PAPERS, claims_of
from understudy.papers.runner import TimeLeft, expected_seconds, time_left
from understudy.papers.workspace import Workspace

PASSES = close("passes", 1.0, 1.0, 0.1)


def statuses(run):
    return {name: result.status for name, result in run.results.items()}


def test_time_left_uses_what_is_known():
    assert time_left([10.0, None], (None, 3.0, 0.25)) == TimeLeft(19.0, 1)
    assert time_left([10.0], (20.0, 3.0, 0.0)) == TimeLeft(27.0, 0)
    assert time_left([], (2.0, 3.0, 0.0)) == TimeLeft(0.0, 0)
    assert time_left([None, 1.0], (None, 3.0, 0.0)) == TimeLeft(1.0, 2)
    assert time_left([], None) == TimeLeft(0.0, 0)


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_the_cost_of_every_claim_is_known_or_unknown_whatever_the_ledger_has(scale):
    """The settings of a recorded result may be of another form; `reproduce` raised a TypeError then."""
    for paper in PAPERS:
        seconds = expected_seconds(claims_of(paper), scale)
        assert all(value is None or value >= 0 for value in seconds.values())


def test_reproduce_gives_each_verdict(toy, tmp_path):
    run = reproduce("toy", out=tmp_path)
    assert statuses(run) == {
        "basel": "reproduced",
        "wrong": "differs",
        "misprint": "erratum",
        "raising": "failed",
    }
    assert not run.ok
    assert "the toy broke" in run.results["raising"].error
    assert run.results["basel"].settings == {"terms": 100}
    for suffix in (".png", ".svg"):
        assert (tmp_path / "toy" / "figures" / f"basel-quick{suffix}").stat().st_size > 1000


def test_a_wrong_value_of_the_paper_is_reported_as_differing(toy, tmp_path):
    """The same computation, with the paper's value changed, must not be called reproduced."""
    right = toy.module.CLAIMS[0]

    def measure(settings, progress):
        measured = right.measure(settings, progress)
        wrong = close("limit", 1.70, measured.measured["limit"], 0.02)
        return dataclasses.replace(measured, checks=[wrong, *measured.checks[1:]])

    toy.module.CLAIMS = (right, dataclasses.replace(right, id="changed", measure=measure))
    assert statuses(reproduce("toy", out=tmp_path)) == {"basel": "reproduced", "changed": "differs"}


def test_full_uses_full_settings_and_its_own_files(toy, tmp_path):
    quick = reproduce("toy", "basel", out=tmp_path)
    full = reproduce("toy", "basel", full=True, out=tmp_path)
    assert full.results["basel"].settings == {"terms": 1000}
    assert full.results["basel"].measured["limit"] > quick.results["basel"].measured["limit"]
    assert {p.name for p in (tmp_path / "toy").glob("basel-*.json")} == {
        "basel-quick.json",
        "basel-full.json",
    }


def test_finished_claims_are_kept_and_failed_ones_tried_again(toy, tmp_path):
    first = reproduce("toy", out=tmp_path)
    stages = []
    second = reproduce("toy", out=tmp_path, progress=lambda e: stages.append((e.claim.id, e.stage)))
    assert toy.calls == {"basel": 1, "wrong": 1, "misprint": 1, "raising": 2}
    assert second.results["basel"] == first.results["basel"]
    assert [s for s in stages if s[1] != "running"] == [
        ("basel", "kept"),
        ("wrong", "kept"),
        ("misprint", "kept"),
        ("raising", "start"),
        ("raising", "finished"),
    ]
    reproduce("toy", out=tmp_path, force=True)
    assert toy.calls["basel"] == 2


@pytest.mark.thorough
@pytest.mark.parametrize("damage", ["settings", "code", "cut short", "no arrays"])
def test_a_stored_result_of_something_else_is_measured_again(toy, tmp_path, monkeypatch, damage):
    reproduce("toy", "basel", out=tmp_path)
    stored = tmp_path / "toy" / "basel-quick.json"
    if damage == "settings":
        toy.module.CLAIMS = (dataclasses.replace(toy.module.CLAIMS[0], quick={"terms": 101}),)
    elif damage == "code":
        monkeypatch.setattr("understudy.papers.result.code_key", lambda _: "99")
    elif damage == "cut short":
        stored.write_bytes(stored.read_bytes()[:50])
    else:
        stored.with_suffix(".npz").unlink()
    reproduce("toy", "basel", out=tmp_path)
    assert toy.calls["basel"] == 2


def test_interrupt_keeps_what_is_finished(toy, tmp_path):
    toy.interrupt["at"] = "misprint"
    with pytest.raises(KeyboardInterrupt):
        reproduce("toy", out=tmp_path)
    assert "not yet" in (tmp_path / "toy" / "index.html").read_text()
    toy.interrupt["at"] = None
    reproduce("toy", out=tmp_path)
    assert toy.calls == {"basel": 1, "wrong": 1, "misprint": 2, "raising": 1}
    assert not list(tmp_path.rglob(".*"))  # no temporary files stay


def test_progress_counts_and_estimates(toy, tmp_path):
    events = []
    reproduce("toy", out=tmp_path, progress=events.append)
    assert events[0].stage == "start"
    assert (events[0].index, events[0].total, events[0].left.unknown) == (0, 4, 4)
    assert [e.fraction for e in events if e.stage == "running"] == [0, 0.25, 0.5, 0.75, 1]
    again = []
    reproduce("toy", out=tmp_path, force=True, progress=again.append)
    assert again[0].left.unknown == 1  # only the claim that failed was never timed


def test_a_measure_that_returns_or_stores_nonsense_has_failed(toy, tmp_path):
    toy.module.CLAIMS = (
        toy.claim("nothing", lambda settings, progress: None),
        toy.claim("objects", lambda settings, progress: Measurement([PASSES], 1.0, data={"a": [object()]})),
        toy.claim("fine", lambda settings, progress: Measurement([PASSES], 1.0)),
    )
    run = reproduce("toy", out=tmp_path)
    assert statuses(run) == {"nothing": "failed", "objects": "failed", "fine": "reproduced"}
    assert "must return a Measurement" in run.results["nothing"].error
    assert "data['a'] is not an array" in run.results["objects"].error


def test_measure_cannot_change_the_settings_of_the_claim(toy, tmp_path):
    def measure(settings, progress):
        settings["ks"].append(1)
        return Measurement([PASSES], 1.0)

    toy.module.CLAIMS = (toy.claim("greedy", measure, quick={"ks": []}),)
    result = reproduce("toy", out=tmp_path).results["greedy"]
    assert (result.status, result.settings) == ("reproduced", {"ks": []})
    assert toy.module.CLAIMS[0].quick == {"ks": []}


def test_a_figure_that_cannot_be_drawn_costs_no_result(toy, tmp_path):
    def draw(measurement, figure):
        raise ZeroDivisionError("no axes today")

    toy.module.CLAIMS = (toy.claim("sketch", lambda s, p: Measurement([PASSES], 1.0), draw),)
    run = reproduce("toy", out=tmp_path)
    assert statuses(run) == {"sketch": "reproduced"}
    assert "no axes today" in run.figure_errors["sketch"]
    assert not run.ok


def test_workspace_returns_what_was_saved(toy, tmp_path):
    run = reproduce("toy", "basel", out=tmp_path)
    claim = toy.module.CLAIMS[0]
    stored = Workspace(tmp_path, "toy").load(claim, "quick")
    assert stored is not None
    assert stored[0] == run.results["basel"]
    np.testing.assert_array_equal(stored[1]["n"], np.arange(1, 101))


def test_cells_are_kept_below_out_until_they_are_forced(toy, tmp_path, monkeypatch):
    """A claim interrupted after its second cell computes only the third when it goes on, and all with `force`."""
    import xarray as xr

    from understudy.papers.cells import cell_store

    computed = []

    def measure(settings, progress):
        store = cell_store(measure)
        for cell in range(3):
            if store.load({"cell": cell}) is None:
                if toy.interrupt["at"] == cell:
                    raise KeyboardInterrupt
                computed.append(cell)
                store.save({"cell": cell}, xr.Dataset({"x": float(cell)}))
        return Measurement([PASSES], 1.0)

    toy.module.CLAIMS = (toy.claim("in-parts", measure),)
    toy.interrupt["at"] = 2
    with pytest.raises(KeyboardInterrupt):
        reproduce("toy", out=tmp_path)
    toy.interrupt["at"] = None
    reproduce("toy", out=tmp_path)
    assert computed == [0, 1, 2]
    assert len(list((tmp_path / "toy" / "cells").glob("*/*.nc"))) == 3
    reproduce("toy", out=tmp_path, force=True)
    assert computed == [0, 1, 2, 0, 1, 2]
    assert cell_store(measure) is None
