"""What a worker sends for a question: frames and verdicts, seeds, a stored result."""

import json

import pytest

import understudy as us
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


@pytest.mark.parametrize("then", [[], [{"split": 0, "share": 0.5}, {"push": 0, "sign": 1}]], ids=["run", "pushed"])
def test_a_stored_result_opens(tmp_path, then):
    question = {**TINY, "then": then}
    stored, _ = messages(question, store)
    (tmp_path / "run.nc").write_bytes(stored["content"])
    opened, end = us.open(tmp_path / "run.nc")[0], ends(messages(question))[-1]
    assert opened.structure.label == end["label"]
    assert opened.loss == pytest.approx(end["loss"], rel=1e-12, abs=1e-15)


def test_numbers_that_are_not_finite_can_be_sent():
    large = {"kind": "vectors", "incoming": [[1e6, 1e6]], "outgoing": [1e6]}
    question = {**TINY, "activation": "hermite:30", "teacher": {**large, "incoming": [[1e6, 0.0]]}, "start": large}
    found = messages(question)
    json.dumps(found, allow_nan=False)
    (end,) = ends(found)
    assert end["kind"] in ("unconverged", "diverging", "undecided")


@pytest.mark.parametrize(
    "question",
    [
        {"activation": "magic"},
        {"sphere": True},
        {**TINY, "then": [{"split": 5, "share": 0.5}]},
        {**TINY, "then": [{"push": 99, "sign": 1}]},
        {**TINY, "outgoing": "fixed", "then": [{"split": 0, "share": 0.5}]},
    ],
)
def test_what_cannot_be_answered_is_said(question):
    with pytest.raises(BadQuestionError):
        messages(question)
