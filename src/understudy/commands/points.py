"""For `understudy certify`: read a point from a file, and build the task to which it belongs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.commands.describing import read_activation, read_data_options
from understudy.commands.options import option_of
from understudy.commands.sources import read_inputs, read_run, read_teacher

if TYPE_CHECKING:
    import numpy as np

    from understudy.networks import Deep, Teacher, TwoLayer
    from understudy.tasks.task import Task

OF_TEACHER = ("dim", "student_activation", "mean", "covariance", "sphere")
OF_DATA = ("target", "cost", "penalty", "held_out")


def read_problem(file: Path, chosen: dict[str, Any]) -> tuple[Task, Any]:
    """The task that the options describe, and the parameters of the point; `ValueError` says what is wrong."""
    given = {name: value for name, value in chosen.items() if value is not None and value is not False}
    if "teacher" in given and "data" in given:
        raise ValueError("Give --teacher or --data, not both.")
    activation = read_activation(given.pop("activation", "erf"))
    for name in (*(OF_DATA if "data" not in given else ()), *(OF_TEACHER if "teacher" not in given else ())):
        if name in given:
            raise ValueError(f"{option_of(name)} goes with --{'data' if name in OF_DATA else 'teacher'}.")
    if file.suffix == ".nc":
        if "teacher" in given or "data" in given:
            raise ValueError(f"{file} says what was fitted; leave --teacher and --data out.")
        _, task, point, _ = read_run(file, given.get("seed"), reduced=False)
        return task, point
    if "seed" in given:
        raise ValueError(f"--seed chooses a run of a stored fit (.nc); {file} holds one point.")
    point = read_point(file)
    if "data" in given:
        return _of_data(point, activation, given)
    if "teacher" in given:
        return _of_teacher(file, point, activation, given)
    raise ValueError("Say which loss the point belongs to: give --teacher K, --teacher FILE or --data FILE.")


def read_point(file: Path) -> TwoLayer | Deep:
    """A network from .json or .npz: incoming, outgoing, bias and offset; or the W1, b1, W2, … of an archive."""
    import numpy as np

    from understudy.data.checked import UNREADABLE
    from understudy.network_files import read_network
    from understudy.networks import TwoLayer
    from understudy.networks.teacher_files import read_bytes

    content = read_bytes(file, "the point")
    try:
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                named = {name: arrays[name] for name in arrays.files}
        else:
            named = json.loads(content)
        archive = "W1" in named
        parts = {name: _real(named[name]) for name in ("incoming", "outgoing", "bias", "offset") if name in named}
        incoming = None if archive else parts.pop("incoming")
    except (*UNREADABLE, TypeError, AttributeError):
        raise ValueError(
            "A point is .json or .npz with incoming (n rows of d numbers), outgoing (n numbers) and, if it has them, "
            f"bias (n numbers) and offset, or the archive of a network (W1, b1, W2, …); {file} is not."
        ) from None
    if incoming is None:
        return read_network(file).network
    if incoming.ndim != 2 or not len(incoming):
        raise ValueError(f"The incoming weights in {file} form a matrix (n, d); received shape {incoming.shape}.")
    outgoing = parts.setdefault("outgoing", np.ones(len(incoming)))
    expected = {
        "outgoing": (len(incoming), *outgoing.shape[1:]),
        "bias": (len(incoming),),
        "offset": outgoing.shape[1:],
    }
    for name, array in parts.items():
        if array.shape != expected[name] or not np.all(np.isfinite(array)):
            raise ValueError(
                f"{name} in {file} must be finite numbers of shape {expected[name]}; received shape {array.shape}."
            )
    return TwoLayer(incoming, **parts)


def _real(values: Any) -> np.ndarray:
    """An array of real numbers; an imaginary part is not left out silently."""
    import numpy as np

    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError
    return array.astype(float)


def _of_teacher(file: Path, point: TwoLayer | Deep, activation: str, given: dict[str, Any]) -> tuple[Task, Any]:
    import numpy as np

    from understudy.networks import TwoLayer
    from understudy.tasks import Population, Sphere

    if not isinstance(point, TwoLayer):
        point = _two_layers(file, point)
    teacher = _teacher(given["teacher"], activation, given.get("dim", point.dim))
    if given.get("sphere"):
        return Sphere(teacher, point.width), point
    biased = point.bias is not None or point.offset is not None
    if biased:
        bias = np.zeros(point.width) if point.bias is None else point.bias
        offset = np.zeros(point.outgoing.shape[1:]) if point.offset is None else point.offset
        point = TwoLayer(point.incoming, point.outgoing, bias, offset)
    inputs = read_inputs(given.get("mean"), given.get("covariance"))
    sigma = given.get("student_activation")
    task = Population(
        teacher,
        point.width,
        activation=None if sigma is None else read_activation(sigma),
        bias="trained" if biased else "none",
        **inputs,
    )
    return task, point


def _two_layers(file: Path, network: Deep) -> TwoLayer:
    """A two-layer network with biases as a `TwoLayer`, the form that population losses use."""
    from understudy.networks import TwoLayer

    if len(network.weights) != 2:
        raise ValueError(
            f"{file} holds a network of {len(network.weights)} layers; with --teacher a point has two. Give --data "
            "FILE."
        )
    (incoming, last), (bias, offset) = network.weights, network.biases
    single = len(last) == 1
    return TwoLayer(incoming, last[0] if single else last.T, bias, offset[0] if single else offset)


def _of_data(point: TwoLayer | Deep, activation: str, given: dict[str, Any]) -> tuple[Task, Any]:
    from understudy.networks import TwoLayer
    from understudy.regularised.layer_rows import problem_of
    from understudy.tasks import Empirical

    arrays = read_data_options(Path(given["data"]), given.get("target"), given.get("held_out", "0"))
    x, y, cost = arrays["inputs"], arrays["targets"], given.get("cost", "squared")
    inputs = point.dim if isinstance(point, TwoLayer) else point.weights[0].shape[1]
    if x.shape[1] != inputs:
        raise ValueError(
            f"The network has {inputs} inputs; the data in {given['data']} have {x.shape[1]} columns of inputs."
        )
    if "penalty" in given:
        return problem_of(point, x, y, given["penalty"], 1.0, activation, cost)
    return Empirical(point, x, y, activation=activation, cost=cost), point


def _teacher(text: str, activation: str, dim: int) -> Teacher:
    """Orthonormal teachers by number, or those in a file."""
    if text.isdigit():
        return read_teacher(activation, int(text), dim, None, None)
    return read_teacher(activation, 0, None, None, Path(text))
