"""Uploaded teachers become part of a question."""

import io
import zipfile

import numpy as np
import pytest

from understudy.lab.question import BadQuestionError
from understudy.lab.teacher_files import read


def test_a_teacher_is_read():
    found = read("a.csv", b"1,0\n0.5,-2\n")
    teacher = {"kind": "vectors", "incoming": [[1.0, 0.0], [0.5, -2.0]], "outgoing": [1.0, 1.0]}
    assert found == {"teacher": teacher, "activation": None}


def test_a_teacher_brings_its_activation():
    found = read("a.json", b'{"incoming": [[1, 0]], "activation": "softplus"}')
    assert found["activation"] == "softplus"
    assert found["teacher"]["incoming"] == [[1.0, 0.0]]


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


def test_an_archive_that_unpacks_to_too_much_is_refused():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("incoming.npy", "w") as member:
        for _ in range(80):
            member.write(bytes(1 << 20))
    assert len(packed.getvalue()) < 1 << 20
    with pytest.raises(BadQuestionError, match="unpacks to"):
        read("a.npz", packed.getvalue())


def test_an_array_larger_than_memory_is_refused():
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)})
    with pytest.raises(BadQuestionError, match=r"memory|cannot be read"):
        read("a.npy", header.getvalue())
