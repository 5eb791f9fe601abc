"""Fits in words: checked when they are made, the same text wherever they are, and a key that new fields leave as it is."""

import json
from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from understudy.experiments import Fit
from understudy.experiments.continuing import continue_fit
from understudy.experiments.description import key_of
from understudy.experiments.estimates import TooMuchError, check_fit, memory_needed
from understudy.proofs import NoProof, verify
from understudy.results import Runs
from understudy.store import Store

OWN = {"teacher_incoming": [[1.0, 0.0], [0.6, 0.8]], "teacher_outgoing": [1.0, 2.0]}


def test_a_configuration_has_what_the_fit_uses_and_no_more():
    always = {"kind": "fit", "activation": "erf", "teacher": 3, "student": 2, "dim": 4, "tolerance": 1e-6}
    free = {"outgoing": "trained", "init": "gaussian", "init_std": 0.1}
    assert Fit(3, 2).configuration() == {**always, **free}
    assert Fit(3, 2, init="glorot").configuration() == {**always, "outgoing": "trained", "init": "glorot"}
    sphere = Fit(3, 2, activation="hermite:4", sphere=True).configuration()
    assert sphere == {**always, "activation": "hermite:4", "sphere": True}


def test_keys_stay():
    """A key that changes loses everybody's stored results."""
    assert key_of(Fit(8, 4)) == "aa90f42a50bef3cc"


@pytest.mark.parametrize(
    "fit",
    [
        Fit(),
        Fit(3, 2, init="glorot", dim=9),
        Fit(2, 2, activation="hermite:4", sphere=True),
        Fit(3, 2, times=(0.1, 1), max_time=100.0, outgoing="fixed"),
        Fit(student=2, arrays=OWN),
    ],
)
def test_there_and_back(fit):
    told = json.loads(json.dumps(fit.configuration()))
    again = Fit.of(told, fit.arrays)
    assert again == fit
    assert hash(again) == hash(fit)
    assert key_of(again) == key_of(fit)
    assert again.task().size == fit.task().size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"student": 0}, "student is a positive whole number of neurons; received 0"),
        ({"teacher": 2.5}, "teacher is a positive whole number"),
        ({"teacher": 9, "dim": 4}, "need at least 9 dimensions; received dim=4"),
        ({"activation": "sine"}, "Unknown activation 'sine'"),
        ({"init": "glorot", "init_std": 0.3}, "received init='glorot' and init_std=0.3"),
        ({"init_std": 0.0}, "init_std must be a positive number; received 0.0"),
        ({"sphere": True, "outgoing": "fixed"}, "received sphere=True and outgoing=fixed"),
        ({"tolerance": 1.0}, "tolerance must lie between"),
        ({"max_time": -1.0}, "max_time must be a positive number"),
        ({"times": (1.0, 0.5)}, "Snapshot times are increasing"),
        ({"arrays": {"inputs": [[1.0]]}}, "teacher_incoming and teacher_outgoing; received inputs"),
        (
            {"arrays": {**OWN, "teacher_outgoing": [1.0]}},
            "as many incoming vectors as outgoing weights; received 2 and 1",
        ),
        ({"arrays": {**OWN, "teacher_outgoing": [1.0, np.nan]}}, "teacher_outgoing has 1 or 2 axes of finite numbers"),
        ({"arrays": OWN, "dim": 7}, "The teacher has 2 inputs; received dim=7"),
    ],
)
def test_bad_descriptions_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Fit(**arguments)


def test_another_version_of_a_description_is_not_taken_for_this_one():
    with pytest.raises(ValueError, match="This version cannot read the description"):
        Fit.of({**Fit().configuration(), "later": 1})


def test_arrays_are_known_by_their_content():
    one, other = Fit(student=2, arrays=OWN), Fit(student=2, arrays={**OWN, "teacher_outgoing": [1.0, 2.5]})
    assert key_of(one) != key_of(other)
    assert one.configuration()["arrays"]["teacher_incoming"]["shape"] == [2, 2]
    with pytest.raises(ValueError, match="read-only"):
        one.arrays["teacher_incoming"][0] = 0.0


def test_what_does_not_fit_into_memory_is_refused_with_advice():
    check_fit(Fit(128, 64), 100)
    assert memory_needed(Fit(8, 4, dim=100_000), 20) == pytest.approx(8 * (8e5 + 2 * 20 * 4e5), rel=0.01)
    for fit, seeds, advice in (
        (Fit(5000, 5000), 1, "fewer teachers or students"),
        (Fit(8, 4, dim=10**11), 1, "smaller dim"),
        (Fit(8, 4, dim=10**6), 10**6, "fewer seeds"),
    ):
        with pytest.raises(TooMuchError, match=rf"GB of memory; this machine has .* GB\. Use .*{advice}"):
            check_fit(fit, seeds)


def test_a_continued_fit_begins_where_the_other_ended(tmp_path):
    before = Fit(2, 1, max_time=1.0, times=(0.5, 1.0))
    file = Store(tmp_path).save(before.configuration(), before.rows([0, 3]))
    after, ends, seeds = continue_fit(tmp_path, [3], max_time=1e6)
    assert seeds == [3]
    assert (after.max_time, after.begin) == (1e6, key_of(before))
    (run,) = after.follow(seeds, starts=np.stack([ends[3]]))
    (old,) = before.follow([3])
    assert run.certificate.kind == "minimum"
    assert old.certificate.kind == "unconverged"
    assert run.loss < old.loss
    with pytest.raises(ValueError, match=r"has the seeds 0, 3; received 1, which it has not"):
        continue_fit(file, [1, 3])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds 0 fits"):
        continue_fit(tmp_path / "empty")


def test_proofs_are_stored_with_the_runs(tmp_path):
    """The proof of a stored run is the one that was found, and its file is accepted; without one, the reason is
    kept."""
    proved = us.fit(us.Population(us.Teacher.orthonormal(3, dim=4), width=2), seeds=1, proof=True)
    again = us.open(proved.save(tmp_path / "runs.nc"))
    proof = again[0].certificate.proof
    assert json.dumps(proof.document()) == json.dumps(proved[0].certificate.proof.document())
    assert (proof.kind, verify(proof.save(tmp_path / "proof.json")).accepted) == ("strict minimum", True)
    failed = replace(proved[0], certificate=replace(proved[0].certificate, proof=NoProof("too wide")))
    kept = us.open(Runs([failed], proved.task, proved.times).save(tmp_path / "other.nc"))
    assert kept[0].certificate.proof == NoProof("too wide")
    assert "proof" not in Fit(teacher=3, student=2).configuration()
