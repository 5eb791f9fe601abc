"""Labelled images from a file, and a check that they are those of a data set, byte by byte."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.data.errors import WrongDataError

UNREADABLE = (OSError, EOFError, LookupError, MemoryError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error)
"""What NumPy, zipfile and gzip raise for a file that is damaged, or of another kind: every one was met by flipping
bits.

MemoryError comes from a header that promises more numbers than fit. RuntimeError is how zipfile says that it has no way
to unpack: a method it does not know, a password it was not given.
"""


@dataclass(frozen=True)
class Images:
    """Training and test images (N, height, width) or (N, height, width, 3), labels (N,), and the place they come from.

    Images and labels are unsigned bytes.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    place: Path


def read_npz(file: Path, parts: Sequence[str]) -> dict[str, np.ndarray]:
    """Read these arrays from an npz file."""
    try:
        # The file is opened here, because NumPy does not close a damaged archive that it has opened itself.
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            return {part: stored[part] for part in parts}
    except UNREADABLE as error:
        raise WrongDataError(f"{file} is not an npz file with the arrays {', '.join(parts)} ({error}).") from error


def verify(arrays: Mapping[str, np.ndarray], content: Mapping[str, str], name: str, place: Path) -> None:
    """Compare the SHA-256 of each array's bytes with those in `content`."""
    for part, wanted in content.items():
        array = arrays[part]
        found = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        if array.dtype != np.uint8 or found != wanted:
            raise WrongDataError(
                f"{part} in {place} is not that of {name}: shape {array.shape}, {array.dtype}, SHA-256 {found[:16]}… "
                f"where {wanted[:16]}… was expected. Nothing else is used in its place: point UNDERSTUDY_DATA to a "
                "sound copy."
            )
