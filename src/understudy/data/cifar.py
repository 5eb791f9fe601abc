"""A part of CIFAR-10 from the user's own copy: its first training batch and the first 2,000 test images.

The data are verified byte by byte. They are searched for at the given path or in `$UNDERSTUDY_DATA`: a file
`cifar10_12k.npz` with arrays `x_train`, `y_train`, `x_test`, `y_test`, or a directory with the binary version's
`data_batch_1.bin` and `test_batch.bin` (directly or in `cifar-10-batches-bin`).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from understudy.data.checked import Images, read_npz, verify
from understudy.data.errors import MissingDataError, WrongDataError

TESTED = 2000
CONTENT = {
    "x_train": "fc115a3de050d667b88cbd5b0b9612ebf996c54230fe7758f3a14bb5af9a1c27",
    "y_train": "d829dbdf32167c9d7b3687cee66d92d80d46c441308b5aca0d11e8b69e27dac9",
    "x_test": "4946cb5ae9a2c68e6ca2da22e50da3b523358fd85ffaccfe834632e039845928",
    "y_test": "3902c3af7fa7672eec1fabac87b4a7d8e9846a916952a3f6b723ec75787df0f9",
}
"""SHA-256 of the bytes of each array, images in the order (N, 32, 32, 3)."""


def cifar10_part(path: str | Path | None = None, *, verified: bool = True) -> Images:
    """Read that part of CIFAR-10: 10,000 photographs of 32 × 32 pixels to train and 2,000 to test.

    Raises `MissingDataError` if it is not found, and `WrongDataError` if the files contain something else.
    """
    named = os.environ.get("UNDERSTUDY_DATA")
    places = [Path(path)] if path is not None else [Path(named)] if named else []
    for place in places:
        arrays = _read(place)
        if arrays is None:
            continue
        if verified:
            verify(arrays, CONTENT, "CIFAR-10", place)
        return Images(**arrays, place=place)
    looked = ", ".join(str(p) for p in places) or "nowhere, for UNDERSTUDY_DATA is not set"
    raise MissingDataError(
        f"CIFAR-10 is not there; looked in: {looked}. Set UNDERSTUDY_DATA to a directory with cifar10_12k.npz (arrays {', '.join(CONTENT)}) or with the binary "
        "version's data_batch_1.bin and test_batch.bin."
    )


def _read(place: Path) -> dict[str, np.ndarray] | None:
    file = place if place.is_file() else place / "cifar10_12k.npz"
    if file.is_file():
        return read_npz(file, list(CONTENT))
    for folder in (place, place / "cifar-10-batches-bin"):
        train, test = folder / "data_batch_1.bin", folder / "test_batch.bin"
        if train.is_file() and test.is_file():
            (x, y), (u, v) = _read_batch(train), _read_batch(test)
            return {"x_train": x, "y_train": y, "x_test": u[:TESTED], "y_test": v[:TESTED]}
    return None


def _read_batch(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """A batch of the binary version. Each record has one byte of label and 3 × 32 × 32 bytes of image."""
    raw = np.frombuffer(file.read_bytes(), np.uint8)
    if raw.size % 3073:
        raise WrongDataError(
            f"{file} has {raw.size} bytes, no multiple of 3073: it is no batch of CIFAR-10's binary version."
        )
    records = raw.reshape(-1, 3073)
    return np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), records[:, 0].copy()
