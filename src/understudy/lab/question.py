"""What the page asks: a teacher, a student, a start, and what is done to the student afterwards.

A question is a small JSON object. It is the state of the page, it is what the address carries, and it is all that the
engine needs: the same question gives the same run to the last digit. Everything in it is checked here, because it
comes from outside.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

MOST_TEACHERS, MOST_STUDENTS, LARGEST_DIM = 64, 32, 500
MOST_PARAMETERS = 1_200
"""Trained parameters in the span of teachers and students; larger problems take too long to be watched."""

MOST_STEPS = 12
"""The largest number of splits and pushes in one question."""

TEACHERS = ("orthonormal", "angles", "random", "vectors")
STARTS = ("gaussian", "glorot", "vectors")


class BadQuestionError(ValueError):
    """A question that cannot be answered; the message says what was wrong, what was received and what to do."""


@dataclass(frozen=True)
class Question:
    """A validated question. `teacher`, `start` and the entries of `then` are plain dictionaries of JSON values.

    **Arguments**

    - `activation`: by name, such as `"erf"` or `"softplus:2"`.
    - `teacher`: `{"kind": "orthonormal", "count", "dim"}`, `{"kind": "angles", "angles"}` (radians, in the plane),
      `{"kind": "random", "count", "dim", "seed"}`, or `{"kind": "vectors", "incoming", "outgoing"}`, with `bias` and
      `offset` if it has them.
    - `students`: their number; `outgoing`: `"trained"` or `"fixed"` (all 1); `sphere`: unit students, Hermite only;
      `bias`: `"none"` or `"trained"`.
    - `start`: `{"kind": "gaussian" | "glorot", "std", "seed"}` or `{"kind": "vectors", "incoming", "outgoing"}`, with
      `bias` and `offset` if biases are trained (0 unless given).
    - `tolerance`: of the flow, relative and absolute.
    - `then`: the steps after each end: `{"push": i, "sign": ±1}` along the i-th eigenvector of the Hessian, or
      `{"split": neuron, "share": μ}`. The flow continues from there.
    """

    activation: str = "erf"
    teacher: Mapping[str, Any] = field(default_factory=lambda: {"kind": "orthonormal", "count": 8, "dim": 9})
    students: int = 4
    outgoing: str = "trained"
    sphere: bool = False
    bias: str = "none"
    start: Mapping[str, Any] = field(default_factory=lambda: {"kind": "gaussian", "std": 0.1, "seed": 0})
    tolerance: float = 1e-6
    then: tuple[Mapping[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The question as a JSON object."""
        return {**asdict(self), "then": [dict(step) for step in self.then]}


def read_question(given: Any) -> Question:
    """Check a JSON object and return the question it describes; `BadQuestionError` says what is wrong.

    >>> read_question({"students": 2, "teacher": {"kind": "angles", "angles": [0.0, 2.0]}}).students
    2
    """
    if not isinstance(given, Mapping):
        raise BadQuestionError(f"A question is a JSON object; received {type(given).__name__}.")
    known = {"activation", "teacher", "students", "outgoing", "sphere", "bias", "start", "tolerance", "then"}
    if strange := sorted(set(given) - known):
        raise BadQuestionError(f"A question has no {strange[0]!r}; it has {', '.join(sorted(known))}.")
    defaults = Question()
    students = _whole(given.get("students", defaults.students), "students", 1, MOST_STUDENTS)
    activation = given.get("activation", defaults.activation)
    if not isinstance(activation, str) or not 0 < len(activation) <= 60:
        raise BadQuestionError(f"activation is a short text; received {activation!r:.80}.")
    outgoing = _choice(given.get("outgoing", "trained"), "outgoing", ("trained", "fixed"))
    bias = _choice(given.get("bias", "none"), "bias", ("none", "trained"))
    sphere = given.get("sphere", False)
    if not isinstance(sphere, bool):
        raise BadQuestionError(f"sphere is true or false; received {sphere!r}.")
    teacher = _teacher(given.get("teacher", defaults.teacher))
    start = _start(given.get("start", defaults.start), students, dim_of(teacher))
    then = given.get("then", ())
    if not isinstance(then, Sequence) or isinstance(then, str) or len(then) > MOST_STEPS:
        raise BadQuestionError(f"then is a list of at most {MOST_STEPS} steps; received {then!r:.80}.")
    question = Question(
        activation=activation,
        teacher=teacher,
        students=students,
        outgoing=outgoing,
        sphere=sphere,
        bias=bias,
        start=start,
        tolerance=_real(given.get("tolerance", 1e-6), "tolerance", 1e-12, 1e-2),
        then=tuple(_step(step) for step in then),
    )
    _check_size(question)
    return question


def _teacher(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise BadQuestionError(f"teacher is an object with a kind; received {given!r:.80}.")
    kind = _choice(given.get("kind", "orthonormal"), "the teacher's kind", TEACHERS)
    if kind == "angles":
        angles = _numbers(given.get("angles", ()), "angles", MOST_TEACHERS)
        return {"kind": kind, "angles": angles}
    if kind == "vectors":
        incoming = _matrix(given.get("incoming"), "the teacher's incoming vectors", MOST_TEACHERS)
        outgoing = _numbers(given.get("outgoing", [1.0] * len(incoming)), "outgoing", MOST_TEACHERS)
        if len(outgoing) != len(incoming):
            raise BadQuestionError(
                f"{len(incoming)} teachers need {len(incoming)} outgoing weights; received {len(outgoing)}."
            )
        return {"kind": kind, "incoming": incoming, "outgoing": outgoing, **_shift(given, len(incoming))}
    count = _whole(given.get("count", 8), "the number of teachers", 1, MOST_TEACHERS)
    dim = _whole(given.get("dim", count + 1), "the input dimension", 1, LARGEST_DIM)
    if kind == "random":
        return {"kind": kind, "count": count, "dim": dim, "seed": _whole(given.get("seed", 0), "seed", 0, 10**9)}
    if dim < count:
        raise BadQuestionError(f"{count} orthonormal teachers need at least {count} dimensions; received {dim}.")
    return {"kind": kind, "count": count, "dim": dim}


def count_of(teacher: Mapping[str, Any]) -> int:
    """Number of teacher neurons."""
    listed = teacher.get("angles") or teacher.get("incoming")
    return len(listed) if listed else int(teacher["count"])


def dim_of(teacher: Mapping[str, Any]) -> int:
    """Input dimension."""
    if teacher["kind"] == "angles":
        return 2
    return len(teacher["incoming"][0]) if teacher["kind"] == "vectors" else int(teacher["dim"])


def _start(given: Any, students: int, dim: int) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise BadQuestionError(f"start is an object with a kind; received {given!r:.80}.")
    kind = _choice(given.get("kind", "gaussian"), "the start's kind", STARTS)
    if kind != "vectors":
        seed = _whole(given.get("seed", 0), "seed", 0, 10**9)
        return {"kind": kind, "std": _real(given.get("std", 0.1), "std", 1e-8, 100.0), "seed": seed}
    incoming = _matrix(given.get("incoming"), "the students' incoming vectors", MOST_STUDENTS)
    if len(incoming) != students or len(incoming[0]) != dim:
        raise BadQuestionError(
            f"The start needs {students} vectors of {dim} numbers; received {len(incoming)} of {len(incoming[0])}."
        )
    outgoing = _numbers(given.get("outgoing", [1.0] * students), "the students' outgoing weights", MOST_STUDENTS)
    if len(outgoing) != students:
        raise BadQuestionError(f"{students} students need {students} outgoing weights; received {len(outgoing)}.")
    return {"kind": kind, "incoming": incoming, "outgoing": outgoing, **_shift(given, students)}


def _shift(given: Mapping[str, Any], neurons: int) -> dict[str, Any]:
    """Biases of neurons and of the output, where they are given."""
    found: dict[str, Any] = {}
    if given.get("bias") is not None:
        found["bias"] = _numbers(given["bias"], "bias", neurons)
        if len(found["bias"]) != neurons:
            raise BadQuestionError(f"{neurons} neurons need {neurons} biases; received {len(found['bias'])}.")
    if given.get("offset") is not None:
        found["offset"] = _real(given["offset"], "offset", -1e6, 1e6)
    return found


def _step(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping) and set(given) == {"push", "sign"}:
        sign = _choice(given["sign"], "sign", (1, -1))
        return {"push": _whole(given["push"], "the pushed direction", 0, MOST_PARAMETERS), "sign": sign}
    if isinstance(given, Mapping) and set(given) == {"split", "share"}:
        neuron = _whole(given["split"], "the split neuron", 0, 2 * MOST_STUDENTS)
        return {"split": neuron, "share": _real(given["share"], "share", -100.0, 100.0)}
    raise BadQuestionError(
        f'A step is {{"push": i, "sign": ±1}} or {{"split": neuron, "share": μ}}; received {given!r:.80}.'
    )


def _check_size(question: Question) -> None:
    splits = sum("split" in step for step in question.then)
    width = question.students + splits
    dim = min(dim_of(question.teacher), width + count_of(question.teacher))
    size = width * (dim + 1)
    if size > MOST_PARAMETERS:
        raise BadQuestionError(
            f"{width} students and {count_of(question.teacher)} teachers have {size} trained parameters; the lab shows "
            f"up to {MOST_PARAMETERS}. Use `understudy fit` for larger problems."
        )


def _choice(value: Any, name: str, allowed: Sequence[Any]) -> Any:
    if isinstance(value, bool) or value not in allowed:
        raise BadQuestionError(f"{name} is one of {', '.join(map(str, allowed))}; received {value!r:.80}.")
    return value


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadQuestionError(f"{name} is a whole number from {least} to {most}; received {value!r:.80}.")
    return value


def _real(value: Any, name: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BadQuestionError(f"{name} is a number from {least:g} to {most:g}; received {value!r:.80}.")
    return float(value)


def _numbers(value: Any, name: str, most: int) -> list[float]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not 1 <= len(value) <= most:
        raise BadQuestionError(f"{name} is a list of 1 to {most} numbers; received {value!r:.80}.")
    for x in value:
        if isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x) or abs(x) > 1e6:
            raise BadQuestionError(f"{name} holds finite numbers up to 1e6; received {x!r:.80}.")
    return [float(x) for x in value]


def _matrix(value: Any, name: str, most: int) -> list[list[float]]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not 1 <= len(value) <= most:
        raise BadQuestionError(f"{name} are 1 to {most} rows of numbers; received {value!r:.80}.")
    rows = [_numbers(row, name, LARGEST_DIM) for row in value]
    if len({len(row) for row in rows}) != 1:
        raise BadQuestionError(f"{name} all have the same length; received rows of {[len(r) for r in rows]}.")
    return rows
