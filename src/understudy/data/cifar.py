"""CIFAR-10 from the user's own copy: all of it, or a part that is verified byte by byte.

The data are searched for at the given path or in `$UNDERSTUDY_DATA`: a directory with the binary version's
`data_batch_1.bin` … `data_batch_5.bin` and `test_batch.bin` (directly or in `cifar-10-batches-bin`), or a file
`cifar10_12k.npz` with arrays `x_train`, `y_train`, `x_test`, `y_test`.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from understudy.data.checked import Images, read_npz, verify
from understudy.data.errors import MissingDataError, WrongDataError

TRAINED, TESTED = 10_000, 2_000
CONTENT = {
    "x_train": "fc115a3de050d667b88cbd5b0b9612ebf996c54230fe7758f3a14bb5af9a1c27",
    "y_train": "d829dbdf32167c9d7b3687cee66d92d80d46c441308b5aca0d11e8b69e27dac9",
    "x_test": "4946cb5ae9a2c68e6ca2da22e50da3b523358fd85ffaccfe834632e039845928",
    "y_test": "3902c3af7fa7672eec1fabac87b4a7d8e9846a916952a3f6b723ec75787df0f9",
}
"""SHA-256 of the bytes of the first 10,000 training and 2,000 test images and labels, in the order (N, 32, 32, 3)."""


def cifar10(path: str | Path | None = None, *, verified: bool = True) -> Images:
    """Read all that the copy has: up to 50,000 photographs of 32 × 32 pixels to train and 10,000 to test.

    The first training batch and the first 2,000 test images are verified byte by byte; of the other files the size and
    the labels are checked. Raises `MissingDataError` if no copy is found, and `WrongDataError` for other contents.
    """
    named = os.environ.get("UNDERSTUDY_DATA")
    places = [Path(path)] if path is not None else [Path(named)] if named else []
    for place in places:
        arrays = _read(place)
        if arrays is None:
            continue
        if verified:
            verify(_part(arrays), CONTENT, "CIFAR-10", place)
        return Images(**arrays, place=place)
    looked = ", ".join(str(p) for p in places) or "nowhere, for UNDERSTUDY_DATA is not set"
    raise MissingDataError(
        f"CIFAR-10 was not found; looked in: {looked}. Set UNDERSTUDY_DATA to a directory with the binary version's "
        "data_batch_1.bin … data_batch_5.bin and test_batch.bin, or with cifar10_12k.npz (arrays "
        f"{', '.join(CONTENT)})."
    )


def cifar10_part(path: str | Path | None = None, *, verified: bool = True) -> Images:
    """Read the part of CIFAR-10 that every copy has: 10,000 photographs to train and 2,000 to test; see `cifar10`."""
    found = cifar10(path, verified=verified)
    arrays = {name: getattr(found, name) for name in CONTENT}
    return Images(**_part(arrays), place=found.place)


def _part(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The first images and labels, those whose bytes are known."""
    return {name: values[: TRAINED if name.endswith("train") else TESTED] for name, values in arrays.items()}


def _read(place: Path) -> dict[str, np.ndarray] | None:
    for folder in (place, place / "cifar-10-batches-bin"):
        test = folder / "test_batch.bin"
        batches = [file for i in range(1, 6) if (file := folder / f"data_batch_{i}.bin").is_file()]
        if batches and batches[0].name == "data_batch_1.bin" and test.is_file():
            images, labels = zip(*(_read_batch(file) for file in batches), strict=True)
            tested, named = _read_batch(test)
            return {
                "x_train": np.concatenate(images),
                "y_train": np.concatenate(labels),
                "x_test": tested,
                "y_test": named,
            }
    file = place if place.is_file() else place / "cifar10_12k.npz"
    return read_npz(file, list(CONTENT)) if file.is_file() else None


def _read_batch(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """A batch of the binary version. Each record has one byte of label and 3 × 32 × 32 bytes of image."""
    raw = np.frombuffer(file.read_bytes(), np.uint8)
    if raw.size % 3073:
        raise WrongDataError(
            f"{file} has {raw.size} bytes, not a multiple of 3073: it is not a batch of CIFAR-10's binary version."
        )
    records = raw.reshape(-1, 3073)
    if records.size and records[:, 0].max() > 9:
        raise WrongDataError(
            f"{file} has the label {records[:, 0].max()}, and labels are 0 to 9: it is not a batch of CIFAR-10."
        )
    return np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), records[:, 0].copy()
