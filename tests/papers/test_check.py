"""Checks, the verdicts that follow from them, and values as text."""

import dataclasses
import json

import numpy as np
import pytest

from understudy.papers import Measurement, at_least, at_most, between, close, equal, holds
from understudy.papers.values import duration, jsonable, text

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("check", "ok"),
    [
        (lambda: close("x", 1.0, 1.05, 0.05 + 1e-12), True),
        (lambda: close("x", 1.0, 1.06, 0.05), False),
        (lambda: close("x", 100.0, 104.0, 0.05, relative=True), True),
        (lambda: close("x", 100.0, 106.0, 0.05, relative=True), False),
        (lambda: close("x", 1.0, NAN, 10.0), False),
        (lambda: close("x", NAN, NAN, 10.0), False),
        (lambda: close("x", INF, INF, 1.0), False),
        (lambda: close("x", [1, 2], np.array([1.0, 2.0]), 0), True),
        (lambda: close("x", [1, 2], [1.0, 2.1], 0.05), False),
        (lambda: close("x", 0.0, np.zeros(50), 1e-12), True),
        (lambda: close("x", np.zeros(50), np.r_[np.zeros(49), 1.0], 1e-12), False),
        (lambda: equal("x", 3, np.int64(3)), True),
        (lambda: equal("x", "copy", "average"), False),
        (lambda: equal("x", [1, 2], (1, 2)), True),
        (lambda: equal("x", NAN, NAN), False),
        (lambda: at_most("x", [1e-13, 1e-12], bound=1e-12), True),
        (lambda: at_most("x", [1e-13, 2e-12], bound=1e-12), False),
        (lambda: at_most("x", [0.0, NAN], bound=1.0), False),
        (lambda: at_least("x", 0.3, bound=0.3), True),
        (lambda: at_least("x", [0.3, 0.2], bound=0.3), False),
        (lambda: at_least("x", NAN, bound=0.3), False),
        (lambda: between("x", [1, 2], low=1, high=2), True),
        (lambda: between("x", [1, 3], low=1, high=2), False),
        (lambda: between("x", [1, NAN], low=1, high=2), False),
        (lambda: holds("x", np.bool_(True), "evidence"), True),
        (lambda: holds("x", False, {"counterexamples": 3}), False),
    ],
)
def test_checks_compare(check, ok):
    made = check()
    assert made.ok is ok
    json.dumps(dataclasses.asdict(made), allow_nan=False)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: close("x", 1.0, [], 0.1), "a check over nothing would pass"),
        (lambda: close("x", [1.0, 2.0], 1.0, 0.1), "equal shapes"),
        (lambda: close("x", 1.0, 1.0, -1.0), "received -1.0"),
        (lambda: close("x", 1.0, 1.0, INF), "finite"),
        (lambda: close("x", 1.0, 1.0, NAN), "finite"),
        (lambda: close("x", 1.0, 1j, 0.1), "real numbers"),
        (lambda: close(" ", 1.0, 1.0, 0.1), "needs a name"),
        (lambda: at_most("x", np.array([]), bound=1.0), "empty"),
        (lambda: between("x", 1, low=2, high=1), "low ≤ high"),
        (lambda: equal("x", None, None), "nothing to compare"),
        (lambda: holds("x", "yes", "evidence"), "one boolean"),
        (lambda: holds("x", np.array([True, True]), "evidence"), "one boolean"),
        (lambda: holds("x", True, ""), "give the evidence"),
    ],
)
def test_checks_refuse_what_compares_nothing(mistake, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mistake()


PASSES, FAILS = close("passes", 1.0, 1.0, 0.1), close("fails", 1.0, 2.0, 0.1)


@pytest.mark.parametrize(
    ("checks", "printed", "status"),
    [
        ([PASSES], [], "reproduced"),
        ([PASSES, FAILS], [], "differs"),
        ([PASSES], [FAILS], "erratum"),
        ([PASSES], [PASSES, FAILS], "erratum"),
        ([PASSES], [PASSES], "reproduced"),
        ([FAILS], [FAILS], "differs"),
        ([FAILS], [PASSES], "differs"),
    ],
)
def test_verdict_follows_from_checks(checks, printed, status):
    note = "corrected" if printed else ""
    assert Measurement(checks, 1.0, printed=printed, erratum_note=note).status == status


def test_nothing_is_reproduced_without_checks():
    with pytest.raises(ValueError, match="at least one check"):
        Measurement([], 1.0)
    with pytest.raises(ValueError, match="at least one check"):
        Measurement([], 1.0, printed=[FAILS], erratum_note="wrong as printed")


def test_erratum_needs_both_its_check_and_its_note():
    with pytest.raises(ValueError, match="needs both"):
        Measurement([PASSES], 1.0, printed=[FAILS])
    with pytest.raises(ValueError, match="needs both"):
        Measurement([PASSES], 1.0, erratum_note="wrong as printed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paper_value": None}, "no paper_value"),
        ({"statement": " "}, "no statement"),
        ({"tolerance_reason": ""}, "no tolerance_reason"),
        ({"quick": {"f": object()}}, r"quick\['f'\] cannot be kept as JSON"),
    ],
)
def test_claims_say_what_they_must(toy, change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        toy.claim("basel", None, **change)
    with pytest.raises(ValueError, match="joined by hyphens"):
        toy.claim("One Neuron", None)


def test_values_as_json_and_text():
    assert jsonable({1: np.float64(0.5), "a": np.arange(2), "b": (NAN, -INF)}) == {
        "1": 0.5,
        "a": [0, 1],
        "b": ["nan", "-inf"],
    }
    assert (
        text({"γ1": 0.4600000001, "n": [8, 12], "in": {"a": None}, "g": "≤ 1"})
        == "γ1 = 0.46, n = [8, 12], in = (a = –), g ≤ 1"
    )
    assert [duration(s) for s in (0.01, 0.44, 9.96, 59.7, 185, 7800)] == [
        "under 0.1 s",
        "0.4 s",
        "10 s",
        "1 min 00 s",
        "3 min 05 s",
        "2 h 10 min",
    ]
