"""Teachers and arrays from files of every kind, and files that are neither."""

import io
import json
import pickle

import numpy as np
import pytest

from understudy.networks.teacher_files import parse_array, parse_teacher, read_bytes

ROWS = [[1.0, 0.0], [0.5, -2.0]]


def as_npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def as_npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a file was executed",))


@pytest.mark.parametrize(
    ("name", "content", "others"),
    [
        ("a.json", json.dumps(ROWS).encode(), {}),
        ("a.json", json.dumps({"incoming": ROWS, "bias": [1, 2], "activation": "relu"}).encode(), {"bias": [1, 2]}),
        ("a.csv", b"1,0\n0.5,-2\n", {}),
        ("a.npy", as_npy(np.array(ROWS)), {}),
        ("a.npz", as_npz(incoming=ROWS, outgoing=[2.0, 3.0], offset=0.5), {"outgoing": [2.0, 3.0], "offset": 0.5}),
        ("a.npz", as_npz(W1=ROWS, W2=[[2.0, 3.0]], b1=[0.1, 0.2], b2=[1.0]), {"outgoing": [2, 3], "offset": 1.0}),
    ],
)
def test_a_teacher_is_read(name, content, others):
    found = parse_teacher(name, content)
    np.testing.assert_array_equal(found["incoming"], ROWS)
    for key, value in ({"outgoing": [1.0, 1.0]} | others).items():
        np.testing.assert_array_equal(found[key], value)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.pt", b"", "ends in"),
        ("a.json", b"{", "cannot be read"),
        ("a.json", b"[" * 100_000, "cannot be read"),
        ("a.json", b'{"outgoing": [1]}', "incoming"),
        ("a.json", b'{"incoming": [1, 2]}', "matrix"),
        ("a.json", b'{"incoming": [[1], [2, 3]]}', "equal length"),
        ("a.csv", b"a,b\n", "cannot be read"),
        ("a.npy", b"\x93NUMPY", "cannot be read"),
        ("a.npy", pickle.dumps(Evil()), "cannot be read"),
        ("a.npy", as_npy(np.array([Evil()], dtype=object), allow_pickle=True), "cannot be read"),
        ("a.npz", as_npz(incoming=ROWS)[:80], "cannot be read"),
        ("a.npz", as_npz(incoming=[[np.nan, 1.0]]), "NaN"),
        ("a.npz", as_npz(W1=ROWS, W2=ROWS, W3=ROWS), "hidden layer"),
        ("a.npz", as_npz(weights=ROWS), "incoming"),
        ("a.npz", as_npz(incoming=np.array(ROWS) * 1j), "real numbers"),
    ],
)
def test_what_is_no_teacher_is_refused_and_never_executed(name, content, word):
    with pytest.raises(ValueError, match=word):
        parse_teacher(name, content)


def test_a_vector_and_a_matrix_are_read():
    np.testing.assert_array_equal(parse_array("m.csv", b"1,2\n", 1), [1.0, 2.0])
    np.testing.assert_array_equal(parse_array("m.npz", as_npz(anything=ROWS), 2), ROWS)
    with pytest.raises(ValueError, match="2 axes"):
        parse_array("m.npy", as_npy(np.ones(3)), 2)


def test_a_missing_file_and_a_directory_are_named(tmp_path):
    for place in (tmp_path / "missing.npz", tmp_path):
        with pytest.raises(ValueError, match="Cannot read"):
            read_bytes(place)
