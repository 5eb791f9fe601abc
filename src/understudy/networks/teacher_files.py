"""Teachers and matrices in files: `.npz`, `.npy`, `.csv` and `.json`. Nothing in a file is executed.

A teacher has `incoming`, one row per neuron, and may have `outgoing`, `bias`, `offset` and `activation`. An archive of
a two-layer network (`W1`, `W2`, `b1`, `b2`) is read too. A table or a single array is `incoming` alone.
"""

import io
import json
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from understudy.data.checked import UNREADABLE

ENDINGS = (".npz", ".npy", ".csv", ".json")
_NAMES = ("incoming", "outgoing", "bias", "offset", "activation")
_ARCHIVE = {"W1": "incoming", "W2": "outgoing", "b1": "bias", "b2": "offset"}


def parse_teacher(name: str, content: bytes, outputs: int | None = None) -> dict[str, Any]:
    """Read a teacher from the name and the content of a file: arrays by name, and the activation if there is one.

    `outgoing` is 1 for every neuron unless the file has it; with several `outputs`, neuron j writes to output j mod
    `outputs`. `ValueError` says what is wrong.

    >>> parse_teacher("teacher.json", b'{"incoming": [[1, 0], [0, 2]]}')["outgoing"].tolist()
    [1.0, 1.0]
    """
    found = _parse(name, content)
    if "incoming" not in found:
        raise ValueError(f"{PurePath(name).name} must hold incoming, one row per teacher neuron.")
    teacher = {key: _numbers(name, key, value) for key, value in found.items() if key != "activation"}
    if teacher["incoming"].ndim != 2 or 0 in teacher["incoming"].shape:
        shape = teacher["incoming"].shape
        raise ValueError(f"incoming of {PurePath(name).name} must be a matrix (k, d); received shape {shape}.")
    k = len(teacher["incoming"])
    m = outputs or 1
    teacher.setdefault("outgoing", np.eye(m)[np.arange(k) % m] if 1 < m <= k else np.ones(k))
    return {**teacher, **({"activation": str(found["activation"])} if "activation" in found else {})}


def parse_array(name: str, content: bytes, *ndims: int) -> np.ndarray:
    """Read the only array of a file from its name and content. It must have one of these numbers of axes."""
    found = _parse(name, content, single=True)
    if "incoming" not in found:
        raise ValueError(f"{PurePath(name).name} must hold one array of numbers and nothing else.")
    array = _numbers(name, "the array", found["incoming"])
    array = array.ravel() if 1 in ndims and 1 in array.shape else array
    if array.ndim not in ndims:
        axes = " or ".join(map(str, ndims))
        raise ValueError(f"{PurePath(name).name} must hold an array with {axes} axes; received shape {array.shape}.")
    return array


def read_bytes(path: str | Path, what: str = "") -> bytes:
    """The content of a regular file. If it cannot be read, `ValueError` names the file and `what` it should contain."""
    from understudy.files import check_regular

    try:
        check_regular(Path(path))
        return Path(path).read_bytes()
    except OSError as error:
        words = f"{what} in {path}" if what else str(path)
        raise ValueError(f"Cannot read {words}: {str(error.strerror or error).rstrip('.')}.") from None


def _parse(name: str, content: bytes, single: bool = False) -> dict[str, Any]:
    ending = PurePath(name).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"A file ends in {', '.join(ENDINGS)}; received {PurePath(name).name!r:.80}.")
    try:
        if ending == ".json":
            loaded = json.loads(content)
            return {key: loaded[key] for key in _NAMES if key in loaded} if isinstance(loaded, dict) else _alone(loaded)
        if ending == ".csv":
            return _alone(np.loadtxt(io.StringIO(content.decode()), delimiter=",", ndmin=2))
        arrays = np.load(io.BytesIO(content), allow_pickle=False)
        if ending == ".npy" or not isinstance(arrays, np.lib.npyio.NpzFile):
            return _alone(arrays)
        if single:
            return _alone(arrays[arrays.files[0]]) if len(arrays.files) == 1 else {}
        return _of_archive({key: arrays[key] for key in arrays.files})
    except MemoryError:
        raise ValueError(
            f"{PurePath(name).name} cannot be read: it says that it has more numbers than fit into memory."
        ) from None
    except UNREADABLE as error:
        reason = "it is damaged, or not of this kind" if "pickle" in str(error) else str(error)
        raise ValueError(f"{PurePath(name).name} cannot be read: {reason[:150]}.") from None


def _alone(array: Any) -> dict[str, Any]:
    return {"incoming": array}


def _of_archive(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if "W1" not in arrays:
        return {key: arrays[key] for key in _NAMES if key in arrays}
    if "W3" in arrays:
        raise ValueError("a teacher has one hidden layer, and this network has more")
    found: dict[str, Any] = {_ARCHIVE[key]: arrays[key] for key in _ARCHIVE if key in arrays}
    if "outgoing" in found:
        rows = np.asarray(found["outgoing"]).T
        single = rows.ndim == 2 and rows.shape[1] == 1
        found["outgoing"] = rows[:, 0] if single else rows
        if "offset" in found and single:
            found["offset"] = np.asarray(found["offset"]).reshape(())
    return {**found, **({"activation": str(arrays["activation"])} if "activation" in arrays else {})}


def _numbers(name: str, key: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise ValueError
        array = array.astype(float)
    except (TypeError, ValueError):
        raise ValueError(f"{key} of {PurePath(name).name} must be real numbers in rows of equal length.") from None
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{key} of {PurePath(name).name} has NaN or infinite entries.")
    return array
