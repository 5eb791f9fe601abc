"""Ready families: a teacher, or the inputs, with one number that moves.

Each returns a function from that number to a `Population` task, for `us.continuation`. `width` and `options` are those
of `Population`. Your own family is any function from a number to a task.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from understudy.networks import Teacher, TwoLayer
from understudy.tasks import Population, Task


@dataclass(frozen=True)
class Family:
    """A function from a number to a task, and the number's name."""

    make: Callable[[float], Task]
    parameter: str

    def __call__(self, value: float) -> Task:
        return self.make(value)


def teacher_angle(teacher: Teacher, width: int, *, first: int = 0, second: int = 1, **options: Any) -> Family:
    """The angle between two teacher neurons, in radians. The second neuron turns in the plane of both.

    >>> task = teacher_angle(Teacher.orthonormal(2), width=1)(0.5)
    >>> round(float(task.teacher.incoming[0] @ task.teacher.incoming[1]), 12) == round(float(np.cos(0.5)), 12)
    True
    """
    v = np.asarray(teacher.incoming)
    _check_neurons(teacher, first, second)
    along = v[first] / max(float(np.linalg.norm(v[first])), 1e-300)
    across = v[second] - (v[second] @ along) * along
    size = float(np.linalg.norm(v[second]))
    if np.linalg.norm(across) <= 1e-9 * max(size, 1e-300) or not np.any(v[first]):
        raise ValueError(
            f"Teacher neurons {first} and {second} are parallel or zero, so they span no plane to turn in. Choose two "
            "that are not, for example those of Teacher.orthonormal."
        )
    across /= np.linalg.norm(across)

    def make(angle: float) -> Task:
        turned = v.copy()
        turned[second] = size * (np.cos(angle) * along + np.sin(angle) * across)
        return Population(_with(teacher, incoming=turned), width, **options)

    return Family(make, f"angle of teachers {first} and {second}")


def outgoing_weight(teacher: Teacher, width: int, *, neuron: int = 0, **options: Any) -> Family:
    """The outgoing weight of one teacher neuron (with several outputs: a factor of all its weights)."""
    _check_neurons(teacher, neuron)
    b = np.asarray(teacher.outgoing)

    def make(weight: float) -> Task:
        changed = b.copy()
        changed[neuron] = weight * (b[neuron] if b.ndim == 2 else 1.0)
        return Population(_with(teacher, outgoing=changed), width, **options)

    return Family(make, f"outgoing weight of teacher {neuron}")


def input_variance(teacher: Teacher, width: int, *, direction: ArrayLike | None = None, **options: Any) -> Family:
    """The variance of the inputs along a direction (default: the first coordinate); it is 1 along all others."""
    unit = np.eye(teacher.dim)[0] if direction is None else np.asarray(direction, float)
    if unit.shape != (teacher.dim,) or not np.linalg.norm(unit) > 0:
        raise ValueError(f"direction needs {teacher.dim} numbers, not all zero; received {direction!r}.")
    unit = unit / np.linalg.norm(unit)

    def make(variance: float) -> Task:
        covariance = np.eye(teacher.dim) + (variance - 1) * np.outer(unit, unit)
        return Population(teacher, width, covariance=covariance, **options)

    return Family(make, "input variance")


def softplus_sharpness(teacher: Teacher, width: int, **options: Any) -> Family:
    """The sharpness β of softplus(z) = log(1 + exp(βz))/β, of students and teachers.

    Because softplus_β(z) = softplus_1(βz)/β, the tasks are those of softplus with β = 1 and a teacher (βv, b/β). Points
    are in these coordinates: a student neuron (w, a) with sharpness β has the entries (βw, a/β). Losses and indices are
    the same. `at_sharpness` maps points back.
    """
    if teacher.bias is not None or teacher.offset is not None or "bias" in options:
        raise ValueError("softplus_sharpness takes networks without biases; received some.")

    def make(sharpness: float) -> Task:
        if not sharpness > 0:
            raise ValueError(f"The sharpness of softplus is positive; received {sharpness:g}.")
        incoming, outgoing = sharpness * np.asarray(teacher.incoming), np.asarray(teacher.outgoing) / sharpness
        return Population(Teacher(incoming, outgoing, "softplus:1"), width, **options)

    return Family(make, "sharpness of softplus")


def at_sharpness(network: TwoLayer, sharpness: float) -> TwoLayer:
    """A network of `softplus_sharpness` in the coordinates of softplus with that sharpness."""
    return TwoLayer(network.incoming / sharpness, network.outgoing * sharpness)


def teacher_bias(teacher: Teacher, width: int, *, neuron: int | None = None, **options: Any) -> Family:
    """The bias of one teacher neuron, or of all of them (`neuron=None`). The student trains biases unless told not
    to."""
    if neuron is not None:
        _check_neurons(teacher, neuron)
    before = np.zeros(teacher.width) if teacher.bias is None else np.asarray(teacher.bias)
    options = {"bias": "trained", **options}

    def make(bias: float) -> Task:
        changed = before.copy()
        changed[slice(None) if neuron is None else neuron] = bias
        return Population(_with(teacher, bias=changed), width, **options)

    return Family(make, "bias of the teachers" if neuron is None else f"bias of teacher {neuron}")


def _with(teacher: Teacher, **changed: Any) -> Teacher:
    parts = {name: getattr(teacher, name) for name in ("incoming", "outgoing", "activation", "bias", "offset")}
    return Teacher(**(parts | changed))


def _check_neurons(teacher: Teacher, *numbers: int) -> None:
    for number in numbers:
        if not 0 <= number < teacher.width:
            raise ValueError(f"The teacher has neurons 0 to {teacher.width - 1}; received {number}.")
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"Two different teacher neurons are needed; received {numbers}.")
