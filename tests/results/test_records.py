"""Dataclasses as JSON and back."""

import json
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from understudy import activations
from understudy.activations import Activation
from understudy.results.records import from_record, to_record


class Setting(NamedTuple):
    activation: Activation
    teachers: int


@dataclass(frozen=True)
class Inner:
    numbers: tuple[float, ...]
    pair: tuple[int, str] = (1, "a")


@dataclass(frozen=True)
class Outer:
    name: str
    value: float
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    setting: Setting | None = None


@pytest.mark.parametrize(
    "value",
    [
        Outer("a", 1.5),
        Outer("ü", float("inf"), Inner((0.1, float("-inf")), (2, "b")), (Inner(()), Inner((3.0,)))),
        Outer("s", 0.0, setting=Setting(activations.get("erf"), 8)),
    ],
)
def test_there_and_back(value):
    assert from_record(Outer, json.loads(json.dumps(to_record(value)))) == value


def test_skipped_fields_are_given_and_unknown_ones_passed_over():
    record = to_record(Outer("a", 1.0), skip=("value",))
    assert "value" not in record
    assert from_record(Outer, {**record, "later": 3}, value=2.0) == Outer("a", 2.0)
    with pytest.raises(TypeError, match="value"):
        from_record(Outer, record)


def test_an_activation_of_the_users_own_is_not_known_again():
    own = to_record(Setting(activations.get("tanh:0.5"), 2))
    assert from_record(Setting, own).activation.name == "tanh:0.5"
    assert from_record(Setting, {**own, "activation": "mine"}) == Setting(None, 2)


def test_arrays_become_lists():
    assert to_record(Inner(np.array([1.0, np.nan]))) == {"numbers": [1.0, "nan"], "pair": [1, "a"]}
