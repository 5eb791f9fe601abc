"""Uploaded teachers become part of a question."""

import pytest

from understudy.lab.question import BadQuestionError
from understudy.lab.teacher_files import read


def test_a_teacher_is_read():
    found = read("a.csv", b"1,0\n0.5,-2\n")
    assert found == {"kind": "vectors", "incoming": [[1.0, 0.0], [0.5, -2.0]], "outgoing": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"{", "cannot be read"),
        (b'{"incoming": [[1]], "bias": [1e9]}', "1e6"),
        (b'{"incoming": [[1]], "outgoing": [[1, 2]]}', "one output"),
        (b'{"incoming": [[1e9]]}', "1e6"),
    ],
)
def test_what_the_lab_cannot_show_is_refused(content, word):
    with pytest.raises(BadQuestionError, match=word):
        read("a.json", content)
