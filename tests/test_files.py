"""Files that several processes write: whole or not at all, one writer at a time, named by what they hold."""

import multiprocessing
import os
import time

import numpy as np
import pytest

from understudy import files
from understudy.files import canonical_json, check_regular, content_hash, jsonable, locked, write_atomically


def add_one(path, times, without_flock):
    if without_flock:
        files.fcntl = None
    for _ in range(times):
        with locked(path):
            number = int(path.read_text())
            time.sleep(0.001)
            write_atomically(path, str(number + 1))


@pytest.mark.parametrize("without_flock", [False, True])
def test_one_process_at_a_time_changes_a_file(tmp_path, without_flock):
    path = write_atomically(tmp_path / "number", "0")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add_one, args=(path, 40, without_flock)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert path.read_text() == "120"
    assert os.listdir(tmp_path) == ["number"]


def test_a_lock_that_was_left_behind_is_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    left = tmp_path / ".number.held"
    left.touch()
    os.utime(left, (0, 0))
    with locked(tmp_path / "number"):
        assert left.exists()
    assert not left.exists()


@pytest.mark.parametrize("content", ["übrig\n", b"\x00\xff"])
def test_content_is_written_as_given(tmp_path, content):
    path = write_atomically(tmp_path / "below" / "file", content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path, monkeypatch):
    path = write_atomically(tmp_path / "file", "old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*file"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_directory_is_not_replaced(tmp_path):
    with pytest.raises(IsADirectoryError, match="Name another place"):
        write_atomically(tmp_path, "x")


def test_what_is_not_a_regular_file_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, reason in (("pipe", "named pipe"), (".", "directory"), ("loop", "symbolic links"), ("none", "No such")):
        with pytest.raises(OSError, match=reason):
            check_regular(tmp_path / name)
    assert check_regular(write_atomically(tmp_path / "file", "x")) == tmp_path / "file"


def test_json_of_arrays_and_numbers_that_json_does_not_have():
    assert jsonable({"a": np.array([1.0, np.inf]), 2: np.float64(0.5)}) == {"a": [1.0, "inf"], "2": 0.5}
    with pytest.raises(TypeError, match=r"value\['a'\]\[1\]"):
        jsonable({"a": [1, object()]})
    assert canonical_json({"b": np.arange(2), "a": (0.1,)}) == '{"a":[0.1],"b":[0,1]}'
    with pytest.raises(ValueError, match=r"told\['a'\] is nan"):
        canonical_json({"a": float("nan")}, "told")
    assert content_hash(b"") == "e3b0c44298fc1c14"
    assert content_hash({"a": 1}) != content_hash({"a": 1.0})
