"""Teachers from uploaded files, and files that are no teachers."""

import io
import json
import pickle

import numpy as np
import pytest

from understudy.lab.question import BadQuestionError
from understudy.lab.teacher_files import read

ROWS = [[1.0, 0.0], [0.5, -2.0]]


def as_npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def as_npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "outgoing"),
    [
        ("a.json", json.dumps({"incoming": ROWS, "outgoing": [1, -1]}).encode(), [1.0, -1.0]),
        ("a.json", json.dumps(ROWS).encode(), [1.0, 1.0]),
        ("a.csv", b"1,0\n0.5,-2\n", [1.0, 1.0]),
        ("a.npy", as_npy(np.array(ROWS)), [1.0, 1.0]),
        ("a.npz", as_npz(incoming=ROWS, outgoing=[2.0, 3.0]), [2.0, 3.0]),
    ],
)
def test_a_teacher_is_read(name, content, outgoing):
    assert read(name, content) == {"kind": "vectors", "incoming": ROWS, "outgoing": outgoing}


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a file was executed",))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pt", b""),
        ("", b""),
        ("a.json", b"{"),
        ("a.json", b'{"outgoing": [1]}'),
        ("a.json", b"[" * 100_000),
        ("a.csv", b"a,b\n"),
        ("a.npy", b"\x93NUMPY"),
        ("a.npy", pickle.dumps(Evil())),
        ("a.npy", as_npy(np.array([Evil()], dtype=object), allow_pickle=True)),
        ("a.npz", as_npz(incoming=ROWS)[:80]),
        ("a.npz", as_npz(incoming=[[np.nan, 1.0]])),
        ("../../a.npz", as_npz(weights=ROWS)),
    ],
)
def test_what_is_no_teacher_is_refused_and_never_executed(name, content):
    with pytest.raises(BadQuestionError):
        read(name, content)
