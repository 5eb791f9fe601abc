"""A question as Python and as a shell command that give the same run."""

import shlex
from collections.abc import Mapping
from typing import Any

from understudy.lab.question import Question, dim_of


def as_python(question: Question) -> str:
    """A script that repeats the run and prints loss, verdict and label of every part."""
    lines = [
        "import numpy as np",
        "import understudy as us",
        "",
        f"teacher = {_teacher(question)}",
        f"task = {_task(question, question.students)}",
        f"options = us.dynamics.FlowOptions(rtol={question.tolerance!r}, atol={question.tolerance!r})",
        f"run = us.fit(task, seeds=[{question.start.get('seed', 0)}], {_init(question)}options=options)[0]",
        "print(repr(float(run.loss)), run.certificate.kind, run.structure.label)",
    ]
    width = question.students
    for step in question.then:
        lines += ["", *_step(question, dict(step), width)]
        width += "split" in step
        lines += [
            "run = us.fit(task, seeds=[0], init=np.asarray(vector)[None], options=options)[0]",
            "print(repr(float(run.loss)), run.certificate.kind, run.structure.label)",
        ]
    return "\n".join(lines) + "\n"


def as_command(question: Question) -> str | None:
    """The `understudy fit` command of the same run, or None if the command has no options for it.

    A teacher from a file is in `teacher.json`.
    """
    kind, seed = question.teacher["kind"], question.start.get("seed")
    if kind not in ("orthonormal", "vectors") or question.start["kind"] == "vectors" or question.then:
        return None
    words = ["understudy", "fit", "--activation", question.activation, "--student", str(question.students)]
    if kind == "vectors":
        words += ["--teacher", "teacher.json"]  # the page saves it
    else:
        words += ["--teacher", str(question.teacher["count"]), "--dim", str(question.teacher["dim"])]
    words += ["--seeds", f"{seed}-{seed}"]
    if question.sphere:
        words.append("--sphere")
    else:
        words += ["--outgoing", question.outgoing, "--init", question.start["kind"]]
        if question.start["kind"] == "gaussian":
            words += ["--init-std", repr(question.start["std"])]
    if question.bias != "none":
        words += ["--bias", question.bias]
    return shlex.join([*words, "--tolerance", repr(question.tolerance)])


def _teacher(question: Question) -> str:
    asked, activation = question.teacher, question.activation
    if asked["kind"] == "orthonormal":
        return f"us.Teacher.orthonormal({asked['count']}, dim={asked['dim']}, activation={activation!r})"
    if asked["kind"] == "random":
        return f"us.Teacher.random({asked['count']}, {asked['dim']}, {activation!r}, seed={asked['seed']})"
    if asked["kind"] == "angles":
        return f"us.Teacher.angular({asked['angles']!r}, {activation!r})"
    return f"us.Teacher({asked['incoming']!r}, {asked['outgoing']!r}, {activation!r}{_shift(asked)})"


def _shift(given: Mapping[str, Any]) -> str:
    return "".join(f", {name}={given[name]!r}" for name in ("bias", "offset") if name in given)


def _task(question: Question, width: int) -> str:
    if question.sphere:
        return f"us.Sphere(teacher, {width})"
    fixed = "" if question.outgoing == "trained" else ", outgoing=1.0"
    bias = "" if question.bias == "none" else f", bias={question.bias!r}"
    return f"us.Population(teacher, width={width}{fixed}{bias})"


def _init(question: Question) -> str:
    start = question.start
    if start["kind"] == "gaussian":
        return f"init_std={start['std']!r}, "
    if start["kind"] == "glorot":
        return "init='glorot', "
    rows = f"np.array({start['incoming']!r})"
    if question.sphere:
        rows = f"(rows := {rows}) / np.linalg.norm(rows, axis=1, keepdims=True)"
        return f"init=np.asarray(task.flatten(us.TwoLayer({rows}, np.ones({question.students}))))[None], "
    shift = "" if question.bias == "none" else _shift(start)
    return f"init=np.asarray(task.flatten(us.TwoLayer({rows}, {start['outgoing']!r}{shift})))[None], "


def _step(question: Question, step: dict[str, float], width: int) -> list[str]:
    if "split" in step:
        shares = [step["share"], 1 - step["share"]]
        return [
            f"network = us.surgery.split(run.parameters, {{{step['split']}: {shares!r}}})",
            f"task = {_task(question, width + 1)}",
            "vector = task.flatten(network)",
        ]
    return [f"vector = us.points.push(task, run.parameters, direction={step['push']}, sign={step['sign']})"]


def name_of(question: Question) -> str:
    """A file name for what is exported, without its ending."""
    return f"understudy-{question.activation.replace(':', '-')}-{dim_of(question.teacher)}d-{question.students}students"
