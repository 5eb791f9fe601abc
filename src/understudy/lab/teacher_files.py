"""A teacher from an uploaded file, as part of a question."""

import io
import zipfile
from typing import Any

from understudy.lab.question import BadQuestionError, read_question

LARGEST_UNPACKED = 64 * 1024 * 1024
"""The largest size of an unpacked archive in bytes, because a small file can hold gigabytes of zeros."""


def read(name: str, content: bytes) -> dict[str, Any]:
    """The `teacher` of a question from a file of this name, and its `activation` (None unless the file has one).

    Nothing in the file is executed.
    """
    from understudy.networks.teacher_files import parse_teacher

    try:
        _check_size(content)
        found = parse_teacher(name, content)
    except ValueError as error:
        raise BadQuestionError(str(error)) from None
    activation = found.pop("activation", None)
    if found["outgoing"].ndim != 1:
        raise BadQuestionError("The lab shows teachers with one output. Use `understudy fit --teacher FILE`.")
    teacher = {"kind": "vectors", **{name: array.tolist() for name, array in found.items()}}
    return {"teacher": dict(read_question({"teacher": teacher, "students": 1}).teacher), "activation": activation}


def _check_size(content: bytes) -> None:
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return
    try:
        size = sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(content)).infolist())
    except zipfile.BadZipFile:
        return  # the reader says what is wrong
    if size > LARGEST_UNPACKED:
        raise ValueError(
            f"At most {LARGEST_UNPACKED >> 20} MB of arrays are read; this file unpacks to {size >> 20} MB."
        )
