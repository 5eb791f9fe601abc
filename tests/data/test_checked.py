"""Archives that are damaged, cut short or of another kind are explained, whatever NumPy or zipfile say about them."""

import numpy as np
import pytest

from understudy.data.checked import read_npz
from understudy.data.errors import WrongDataError

ARRAYS = {"x": np.arange(60, dtype=np.uint8).reshape(5, 12), "y": np.arange(5, dtype=np.uint8)}


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_a_damaged_archive_is_explained(write, tmp_path):
    file = tmp_path / "images.npz"
    write(file, **ARRAYS)
    sound = file.read_bytes()
    refused = 0
    for place in range(len(sound)):
        file.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
        try:
            read_npz(file, list(ARRAYS))  # a flipped date harms nobody
        except WrongDataError:
            refused += 1
    assert refused > len(sound) / 2


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04", b"no archive at all"])
def test_other_files_are_explained(content, tmp_path):
    file = tmp_path / "images.npz"
    file.write_bytes(content)
    with pytest.raises(WrongDataError, match="is not an npz file with the arrays x, y"):
        read_npz(file, list(ARRAYS))
