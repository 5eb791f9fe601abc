"""A teacher from an uploaded file, as part of a question."""

from typing import Any

from understudy.lab.question import BadQuestionError, read_question


def read(name: str, content: bytes) -> dict[str, Any]:
    """The teacher in a file of this name, as the `teacher` of a question; nothing in the file is executed."""
    from understudy.networks.teacher_files import parse_teacher

    try:
        found = parse_teacher(name, content)
    except ValueError as error:
        raise BadQuestionError(str(error)) from None
    if found["outgoing"].ndim != 1:
        raise BadQuestionError("The lab shows teachers with one output. Use `understudy fit --teacher FILE`.")
    teacher = {"kind": "vectors", **{name: array.tolist() for name, array in found.items()}}
    return dict(read_question({"teacher": teacher, "students": 1}).teacher)
