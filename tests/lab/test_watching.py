"""What a worker sends for a question: frames and verdicts, seeds, a stored result, code."""

import numpy as np
import pytest

import understudy as us
from understudy.lab.export import as_command, as_python
from understudy.lab.question import BadQuestionError, read_question
from understudy.lab.watching import CancelledError, answer, answer_seeds, store

TINY = {"teacher": {"kind": "orthonormal", "count": 2, "dim": 2}, "students": 1}


def messages(question, act=answer, *more):
    found = []
    act(read_question(question), *more, found.append)
    return found


def ends(found):
    return [message for message in found if message["type"] == "end"]


def test_a_run_is_the_run_of_fit():
    (end,) = ends(messages(TINY))
    run = us.fit(us.Population(us.Teacher.orthonormal(2, dim=2), width=1), seeds=1)[0]
    assert end["loss"] == pytest.approx(run.loss, rel=1e-12)
    assert (end["kind"], end["label"]) == (run.certificate.kind, run.structure.label)
    assert end["theory"] == pytest.approx(run.loss, rel=1e-12)


def test_a_split_keeps_the_loss_and_a_push_lowers_it():
    first, second, third = ends(messages({**TINY, "then": [{"split": 0, "share": 0.5}, {"push": 0, "sign": 1}]}))
    assert second["loss"] == pytest.approx(first["loss"], rel=1e-9)
    assert third["loss"] < first["loss"] / 2
    assert len(third["outgoing"]) == 2


def test_the_same_question_gives_the_same_run_to_the_last_digit():
    start = {"kind": "vectors", "incoming": [[0.3, 0.1]], "outgoing": [0.2]}
    one, two = (ends(messages({**TINY, "start": start}))[0] for _ in range(2))
    assert one == two


def test_seeds_are_those_of_fit():
    found = messages(TINY, lambda question, send: answer_seeds(question, [0, 1], send))
    assert [message["type"] for message in found] == ["seed", "seed", "done"]
    assert {message["seed"] for message in found[:2]} == {0, 1}


def test_a_cancelled_run_stops():
    with pytest.raises(CancelledError):
        answer(read_question(TINY), lambda message: None, lambda: True)


def test_a_stored_result_opens(tmp_path):
    stored, _ = messages(TINY, store)
    (tmp_path / "run.nc").write_bytes(stored["content"])
    assert us.open(tmp_path / "run.nc")[0].structure.label == "1-average"


@pytest.mark.parametrize(
    "question",
    [
        {"activation": "magic"},
        {"sphere": True},
        {**TINY, "then": [{"split": 5, "share": 0.5}]},
        {**TINY, "outgoing": "fixed", "then": [{"split": 0, "share": 0.5}]},
    ],
)
def test_what_cannot_be_answered_is_said(question):
    with pytest.raises(BadQuestionError):
        messages(question)


@pytest.mark.parametrize(
    "teacher",
    [
        {"kind": "angles", "angles": [0.0, 2.0]},
        {"kind": "random", "count": 2, "dim": 3, "seed": 1},
        {"kind": "vectors", "incoming": [[1.0, 0.0]], "outgoing": [2.0]},
    ],
)
def test_exported_code_makes_the_same_task(teacher):
    asked = read_question({"teacher": teacher, "students": 1, "then": [{"split": 0, "share": 0.3}]})
    names = {}
    lines = as_python(asked).splitlines()
    exec("\n".join(line for line in lines[:5]), names)
    assert names["task"].width == 1
    assert "us.surgery.split" in as_python(asked)
    assert as_command(asked) is None
    assert np.ndim(names["teacher"].incoming) == 2
