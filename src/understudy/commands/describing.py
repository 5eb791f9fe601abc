"""Turn the options of `understudy fit` into a description of the fit, to a teacher or to data."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.commands.options import option_of

if TYPE_CHECKING:
    from understudy.experiments.fit import Fit
    from understudy.experiments.flow_fit import FlowFit

OF_TEACHER = ("proof", "teacher", "dim", "outgoing", "student_activation", "mean", "covariance", "sphere", "outputs")
OF_DATA = ("layers", "target", "cost", "penalty", "held_out")
STUDENT, HELD_OUT = 4, 0.2
"""Defaults of `--student` and `--held-out`."""


def describe(chosen: dict[str, Any]) -> FlowFit:
    """The fit that the options describe. None and False count as not given. `ValueError` names wrong options."""
    given = {name: value for name, value in chosen.items() if value is not None and value is not False}
    for name in ("activation", "student_activation"):
        if name in given:
            given[name] = read_activation(given[name])
    data = given.pop("data", None)
    for name in OF_TEACHER if data is not None else OF_DATA:
        if name in given:
            other = "which has no teacher" if data is not None else "and there is none"
            raise ValueError(f"{option_of(name)} {'does not go' if data is not None else 'goes'} with --data, {other}.")
    if data is not None:
        return _of_data(Path(data), given)
    given.setdefault("student", STUDENT)
    return _of_teacher(given)


def read_activation(text: str) -> str:
    """The name of an activation. `module:function` is imported (also from this directory) and gets its full name.

    Only names that a user types are passed to this function: a name in a file must not decide which code runs.
    """
    from understudy import activations

    if not activations.is_module_function(text):
        return text
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return activations.load(text).name


def parse_layers(text: str) -> tuple[int, ...]:
    """Widths such as 16-16."""
    parts = text.split("-")
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"--layers are widths of hidden layers, such as 16-16; received {text!r}.")
    return tuple(int(part) for part in parts)


def _of_teacher(given: dict[str, Any]) -> Fit:
    from understudy.commands.sources import read_inputs, read_teacher_arrays
    from understudy.experiments.fit import Fit

    text = str(given.pop("teacher", "8"))
    inputs = read_inputs(given.pop("mean", None), given.pop("covariance", None))
    if text.lstrip("-").isdigit():
        return Fit(teacher=int(text), arrays=inputs, **given)
    arrays, activation = read_teacher_arrays(Path(text), given.pop("activation", "erf"), given.get("outputs"))
    return Fit(activation=activation, arrays=arrays | inputs, **given)


def _of_data(data: Path, given: dict[str, Any]) -> FlowFit:
    from understudy.experiments.data_fit import DataFit

    arrays = read_data_options(data, given.pop("target", None), given.pop("held_out", None))
    if "layers" in given:
        if "student" in given:
            raise ValueError("Give --student or --layers, not both.")
        given["layers"] = parse_layers(given["layers"])
    else:
        given.setdefault("student", STUDENT)
    return DataFit(arrays=arrays, **given)


def read_data_options(data: Path, target: str | None, held_out: str | None) -> dict[str, Any]:
    """The arrays of a data set, with rows held out: a share, or those in a file."""
    from understudy.data.tables import hold_out, read_data_arrays

    names = None if target is None else [part.strip() for part in target.split(",")]
    arrays = read_data_arrays(data, names)
    if held_out is None:
        return arrays if "held_out_inputs" in arrays else hold_out(arrays, HELD_OUT)
    plain = {name: arrays[name] for name in ("inputs", "targets")}
    try:
        share = float(held_out)
    except ValueError:
        other = read_data_arrays(Path(held_out), names)
        return plain | {f"held_out_{name}": other[name] for name in ("inputs", "targets")}
    if not 0 <= share < 1:
        raise ValueError(f"--held-out is a share of the rows, at least 0 and below 1, or a file; received {held_out}.")
    return hold_out(plain, share)
