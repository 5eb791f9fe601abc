"""What a command works on: a teacher given by numbers, by angles or by a file; a student from a stored result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.networks import Teacher, TwoLayer


def read_teacher(
    activation: str, teacher: int, dim: int | None, angles: str | None, teacher_file: Path | None
) -> Teacher:
    """The teacher that the options describe; ValueError says what is wrong with them."""
    import numpy as np

    from understudy.networks import Teacher

    if angles is not None and teacher_file is not None:
        raise ValueError("Give --angles or --teacher-file, not both.")
    if angles is not None:
        try:
            values = [float(x) for x in angles.split(",")]
        except ValueError:
            raise ValueError(f"--angles are numbers in units of π, as 0,0.25,0.75,1.5; received {angles!r}.") from None
        return Teacher.angular(np.pi * np.array(values), activation)
    if teacher_file is None:
        return Teacher.orthonormal(teacher, teacher + 1 if dim is None else dim, activation)
    try:
        content = json.loads(Path(teacher_file).read_text())
        incoming, outgoing = content["incoming"], content["outgoing"]
    except OSError as error:
        raise ValueError(f"Cannot read --teacher-file {teacher_file}: {error.strerror}.") from None
    except (json.JSONDecodeError, KeyError, TypeError):
        raise ValueError(
            f"--teacher-file {teacher_file} must be JSON with incoming (k rows of d numbers) and outgoing (k numbers), and "
            "activation if it is not the option's."
        ) from None
    return Teacher(incoming, outgoing, content.get("activation", activation))


def read_result(path: Path, seed: int | None) -> tuple[Teacher, TwoLayer, dict[str, Any]]:
    """Teacher and student of one run in a file that `understudy fit --out` has stored; the best run unless given."""
    from understudy.network_files import read_network
    from understudy.networks import Teacher, TwoLayer

    if not Path(path).is_file():
        raise ValueError(f"There is no stored result {path}; `understudy fit --out DIR` makes one.")
    stored = read_network(path, seed, in_span=True)  # the teachers are known in these coordinates, too
    told, student = stored.configuration, stored.network
    if told.get("kind") != "fit" or "sphere" in told or told.get("outgoing") != "trained":
        raise ValueError(f"{path} is no result of a fit with trained outgoing weights; received {told}.")
    assert isinstance(student, TwoLayer)
    return Teacher.orthonormal(told["teacher"], student.dim, told["activation"]), student, told


def name_of(network: Path, seed: int | None) -> str:
    """How files made from a stored network begin: with the name of its own file."""
    return network.stem if seed is None else f"{network.stem}-seed-{seed}"


def name_by_hash(command: str, told: dict[str, Any], teacher: Teacher, **options: Any) -> str:
    """How files of a command are called whose input has no name: by a hash of all that was asked for, as stored fits are."""
    import numpy as np

    from understudy.store import configuration_hash

    weights = {"incoming": np.asarray(teacher.incoming), "outgoing": np.asarray(teacher.outgoing)}
    return f"{command}-{configuration_hash({'task': told, 'teacher': weights, 'options': options})}"


def population_of(teacher: Teacher, width: int) -> Any:
    """The population loss: on a lattice in the plane where there is no closed form, else from pair interactions."""
    from understudy.gaussian import has_closed_form
    from understudy.tasks import Population, on_grid

    closed = has_closed_form(teacher.activation, teacher.activation)
    if teacher.dim <= 2 and not closed and teacher.activation.smoothness > 0:
        return on_grid(teacher, width)
    return Population(teacher, width)
