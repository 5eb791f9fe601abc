"""A teacher from an uploaded file: JSON, CSV, `.npy` or `.npz`; nothing in it is executed."""

import io
import json
import zipfile
from pathlib import PurePath
from typing import Any

import numpy as np

from understudy.lab.question import BadQuestionError, read_question

ENDINGS = (".json", ".csv", ".npy", ".npz")


def read(name: str, content: bytes) -> dict[str, Any]:
    """The teacher in a file of this name, as the `teacher` of a question."""
    ending = PurePath(name).suffix.lower()
    if ending not in ENDINGS:
        raise BadQuestionError(f"A teacher is read from {', '.join(ENDINGS)}; received {name!r:.60}.")
    try:
        arrays = _arrays(ending, content)
    except (ValueError, OSError, KeyError, EOFError, RecursionError, zipfile.BadZipFile) as error:
        raise BadQuestionError(f"{PurePath(name).name[:60]} cannot be read: {str(error)[:120]}.") from None
    if "incoming" not in arrays:
        raise BadQuestionError("The file must hold `incoming`, one row per teacher neuron.")
    incoming = np.asarray(arrays["incoming"], float)
    outgoing = np.asarray(arrays.get("outgoing", np.ones(len(np.atleast_1d(incoming)))), float)
    teacher = {"kind": "vectors", "incoming": incoming.tolist(), "outgoing": outgoing.tolist()}
    return dict(read_question({"teacher": teacher, "students": 1}).teacher)


def _arrays(ending: str, content: bytes) -> dict[str, Any]:
    if ending == ".json":
        found = json.loads(content)
        return found if isinstance(found, dict) else {"incoming": found}
    if ending == ".csv":
        return {"incoming": np.loadtxt(io.StringIO(content.decode()), delimiter=",", ndmin=2)}
    loaded = np.load(io.BytesIO(content), allow_pickle=False)
    if ending == ".npy":
        return {"incoming": loaded}
    return {key: loaded[key] for key in ("incoming", "outgoing") if key in loaded}
