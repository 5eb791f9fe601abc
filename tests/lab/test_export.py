"""Exported code repeats what the lab has shown."""

import contextlib
import io

import pytest

from understudy.lab.export import as_command, as_python
from understudy.lab.question import read_question
from understudy.lab.watching import answer

ORTHONORMAL = {"kind": "orthonormal", "count": 2, "dim": 2}
VECTORS = {"kind": "vectors", "incoming": [[1.0, 0.2], [-0.3, 0.9]], "outgoing": [1.0, -2.0]}
QUESTIONS = {
    "sphere, pushed": {
        "activation": "hermite:6",
        "sphere": True,
        "students": 2,
        "teacher": ORTHONORMAL,
        "start": {"kind": "vectors", "incoming": [[0.9, 0.46], [0.9, -0.46]], "outgoing": [1.0, 1.0]},
        "then": [{"push": 0, "sign": 1}],
    },
    "angles, split and pushed": {
        "teacher": {"kind": "angles", "angles": [0.0, 2.0]},
        "then": [{"split": 0, "share": 0.3}, {"push": 0, "sign": -1}],
    },
    "random": {"teacher": {"kind": "random", "count": 2, "dim": 3, "seed": 1}},
    "vectors": {"teacher": VECTORS, "start": {"kind": "glorot", "std": 0.1, "seed": 3}},
    "biases": {"teacher": {**VECTORS, "bias": [0.5, -0.5]}, "bias": "trained"},
    "fixed": {"teacher": ORTHONORMAL, "outgoing": "fixed", "start": {"kind": "gaussian", "std": 0.3, "seed": 1}},
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", QUESTIONS)
def test_exported_python_gives_the_same_losses_and_verdicts(name):
    question, said, printed = read_question({"students": 1, **QUESTIONS[name]}), [], io.StringIO()
    answer(question, said.append)
    with contextlib.redirect_stdout(printed):
        exec(as_python(question), {})
    ends = [message for message in said if message["type"] == "end"]
    told = [line.split(" ", 1) for line in printed.getvalue().splitlines()]
    assert len(told) == len(ends) == 1 + len(question.then)
    for (loss, words), end in zip(told, ends, strict=True):
        assert float(loss) == pytest.approx(end["loss"], rel=1e-12, abs=1e-15)
        assert words.strip() == f"{end['kind']} {end['label']}".strip()


def test_the_command_is_said_where_there_is_one():
    assert "--teacher 2 --dim 2" in as_command(read_question({"teacher": ORTHONORMAL, "students": 1}))
    assert "--teacher teacher.json" in as_command(read_question({"teacher": VECTORS, "students": 1}))
    assert as_command(read_question({**QUESTIONS["random"], "students": 1})) is None
    assert as_command(read_question({**QUESTIONS["sphere, pushed"]})) is None
