"""Input of commands: a teacher from numbers, angles or a file; a network from a file or a stored result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.extras import need

if TYPE_CHECKING:
    from understudy.experiments.flow_fit import FlowFit
    from understudy.network_files import StoredNetwork
    from understudy.networks import Teacher
    from understudy.tasks.task import Task


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
            raise ValueError(
                f"--angles are numbers in units of π, such as 0,0.25,0.75,1.5; received {angles!r}."
            ) from None
        return Teacher.angular(np.pi * np.array(values), activation)
    if teacher_file is None:
        return Teacher.orthonormal(teacher, teacher + 1 if dim is None else dim, activation)
    found = _teacher_in(Path(teacher_file))
    return Teacher(
        found["incoming"],
        found["outgoing"],
        found.get("activation", activation),
        found.get("bias"),
        found.get("offset"),
    )


def describe_source(teacher: Teacher, student: int) -> dict[str, Any]:
    """A teacher and the number of its students, for a readable description."""
    return {"activation": teacher.activation.name, "teacher": teacher.width, "student": student, "dim": teacher.dim}


def _teacher_in(file: Path, outputs: int | None = None) -> dict[str, Any]:
    from understudy.networks.teacher_files import parse_teacher, read_bytes

    return parse_teacher(str(file), read_bytes(file, "the teacher"), outputs)


def read_run(path: Path, seed: int | None, *, reduced: bool = True) -> tuple[FlowFit, Task, Any, dict[str, Any]]:
    """Description, task and point of one run in a file stored by `understudy fit --out`, and a readable description.

    Without a seed this is the best run. If `reduced`, task and point are reduced to fewer dimensions where that is
    exact.
    """
    from understudy.experiments.opening import open_fit

    if not Path(path).is_file():
        raise ValueError(f"There is no stored result {path}; `understudy fit --out DIR` makes one.")
    try:
        fit, runs = open_fit(path)
    except OSError as error:
        raise ValueError(str(error)) from None
    chosen = [run for run in runs if (run.loss == run.loss if seed is None else run.seed == seed)]
    if not chosen:
        raise ValueError(f"{path} has the seeds {', '.join(map(str, runs.seeds))}; received --seed {seed}.")
    best = min(chosen, key=lambda run: run.loss)
    task, point, told = fit.task(), best.parameters, {**fit.configuration(), "seed": best.seed}
    if not reduced:
        return fit, task, point, told
    reduction = task.reduce(task.flatten(point))
    return fit, reduction.task, reduction.task.unflatten(reduction.vectors), told


def read_teacher_arrays(path: Path, activation: str, outputs: int | None = None) -> tuple[dict[str, Any], str]:
    """The arrays of the teacher in a file (see `read_teacher`), and its activation.

    With `outputs` and no outgoing weights in the file, neuron j writes to output j mod `outputs`.
    """
    found = _teacher_in(path, outputs)
    told = found.pop("activation", activation)
    return {f"teacher_{name}": array for name, array in found.items()}, told


def read_inputs(mean: str | None, covariance: Path | None) -> dict[str, Any]:
    """Mean and covariance of the inputs: the mean as a list such as 0,0.5 or a file, the covariance as a file.

    A file with one row of numbers, or one column, holds the variances of independent inputs.
    """
    import numpy as np

    from understudy.networks.teacher_files import parse_array, read_bytes
    from understudy.tasks.population_arguments import diagonal

    found: dict[str, Any] = {}
    if mean is not None:
        try:
            found["mean"] = np.array([float(x) for x in mean.split(",")])
        except ValueError:
            found["mean"] = parse_array(mean, read_bytes(mean, "the mean"), 1)
    if covariance is not None:
        sigma = parse_array(str(covariance), read_bytes(covariance, "the covariance"), 1, 2)
        found["covariance"] = diagonal(sigma) if sigma.ndim == 1 else sigma
    return found


TORCH_FILES = (".pt", ".pth", ".bin", ".safetensors", ".pt2", ".onnx")


def read_stored(path: Path, seed: int | None) -> StoredNetwork:
    """The network of an archive, of a stored fit, or of a PyTorch file with a plain chain of Linear and ReLU layers."""
    from understudy.network_files import StoredNetwork, read_network

    if path.suffix not in TORCH_FILES:
        return read_network(path, seed)
    need("torch")
    import jax.numpy as jnp
    import numpy as np
    from torch import nn

    from understudy.networks import Deep
    from understudy.torch.chains import chain_of
    from understudy.torch.files import read_state

    layers = [m for m in chain_of(read_state(path), path.name) if isinstance(m, nn.Linear)]
    weights = tuple(jnp.asarray(layer.weight.detach().double().numpy()) for layer in layers)
    biases = tuple(
        jnp.zeros(len(w)) if layer.bias is None else jnp.asarray(layer.bias.detach().double().numpy())
        for layer, w in zip(layers, weights, strict=True)
    )
    return StoredNetwork(Deep(weights, biases), "relu", None, None, path.name, precision=np.dtype(np.float32))


def name_of(network: Path, seed: int | None) -> str:
    """The first part of the names of files made from a stored network: the name of its own file."""
    return network.stem if seed is None else f"{network.stem}-seed-{seed}"


def name_by_hash(command: str, told: dict[str, Any], task: Task, **options: Any) -> str:
    """The name of files of a command whose input has no name: a hash of the whole request, as for stored fits."""
    from understudy.store import configuration_hash

    weights = {name.removeprefix("teacher_"): array for name, (_, array) in task.givens().items()}
    return f"{command}-{configuration_hash({'task': told, 'teacher': weights, 'options': options})}"
