"""Growing a network one neuron at a time: fit, split a neuron, push off the saddle, follow, repeat."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.dynamics.divergence import find_divergence
from understudy.dynamics.flow import FlowOptions, Trajectory, follow
from understudy.networks import Teacher, TwoLayer
from understudy.points import Structure
from understudy.points.certificate import Certificate, certify
from understudy.points.destinations import least_direction
from understudy.points.splitting import SplitMatrices, split_matrices
from understudy.tasks.frozen import Frozen
from understudy.tasks.neurons import Described, describe_neurons
from understudy.tasks.population import Population
from understudy.tasks.task import Task


@dataclass(frozen=True)
class Stage:
    """One width: the point where the flow ended, and the split that led to it.

    - `task`: the task of this width; `parameters`, `loss`, `certificate`, `structure`: of the point reached.
    - `averaging`: the neuron that averages most teachers; in a task without teachers, the one whose split has the least
      eigenvalue. `norms`, `outgoing`: of all neurons of the layer; `correlations`: of the neurons with each other.
    - `split_neuron`, `matrices`, `pushed_along`: the neuron of the previous stage that was split, its Y and V, and the
      eigenvalue of the direction of the push; None at the first stage.
    """

    width: int
    parameters: Any = field(repr=False)
    loss: float
    certificate: Certificate = field(repr=False)
    structure: Structure = field(repr=False)
    averaging: int
    norms: np.ndarray = field(repr=False)
    outgoing: np.ndarray = field(repr=False)
    correlations: np.ndarray = field(repr=False)
    split_neuron: int | None = None
    matrices: SplitMatrices | None = field(default=None, repr=False)
    pushed_along: float | None = None
    trajectory: Trajectory | None = field(default=None, repr=False)
    task: Task | None = field(default=None, repr=False)


def grow(
    task: Task | Teacher,
    width: int,
    *,
    start: Any = None,
    layer: int = 0,
    mu: float = 0.5,
    push: float = 1e-2,
    choose: Callable[[Any, Any], int] | None = None,
    options: FlowOptions | None = None,
    watch: Callable[[Stage], None] | None = None,
) -> list[Stage]:
    """Grow one hidden layer to `width` neurons; one `Stage` per width.

    **Arguments**

    - `task`: a task at the width to begin with, or a `Teacher`: then its population task with one student.
    - `width`: the last number of neurons of hidden layer `layer`.
    - `start`: parameters of the task to begin with; their flow is followed first. Default: one neuron along Σ_j b_j v_j
      for a teacher, and seed 0 of `task.starts` for a task.
    - `mu`: the share of the first part when a neuron is split; `push`: how far the split point is pushed along the
      eigenvector of its least eigenvalue, in the direction that lowers the loss more.
    - `choose(task, parameters)`: returns the neuron to split. Default: the one that averages most teachers. If the task
      has no teacher, the one whose split has the least eigenvalue.

    Every task works whose neurons can be split without changing its loss (see `split_point`). If no split has a
    negative eigenvalue, the flow may come back to the same function; `pushed_along` shows it.

    Flows of smooth tasks run in the parameter space of the widest network, so that the flow is compiled once. Neurons
    that do not exist yet are held at zero outgoing weights.

    **Reference**: "few neurons", Fig. 4; Wu et al. 2019, "Splitting steepest descent for growing neural architectures".
    """
    task, vector = _beginning(task, start)
    begun = task.hidden_layer(vector, layer).width
    if not begun <= width:
        raise ValueError(f"grow goes from {begun} neurons upward; received width={width}.")
    if not (np.isfinite(mu) and mu not in (0.0, 1.0)):
        raise ValueError(f"A split at μ = {mu} leaves a silent neuron and a flat saddle; give another μ, such as 0.5.")
    if begun < width:
        task.split(vector, {0: [mu, 1 - mu]}, layer)  # an impossible split is named before any work
    stages: list[Stage] = []
    split: tuple[int, SplitMatrices, float] | None = None
    while True:
        vector, trajectory = _flow(_padded(task, vector, width, layer), options)
        wide = _padded(task, vector, width, layer)
        stage = _stage(task, vector, trajectory, wide, layer, mu, split)
        stages.append(stage)
        if watch is not None:
            watch(stage)
        if stage.width == width:
            return stages
        neuron = stage.averaging if choose is None else choose(task, stage.parameters)
        # Silent neurons change neither Y nor V, and with them all widths share one compiled program.
        matrices = split_matrices(wide.task, wide.vector, neuron, layer=layer)
        task, doubled = task.split(vector, {neuron: [mu, 1 - mu]}, layer)
        value, vector = _pushed(_padded(task, doubled, width, layer), push)
        split = (neuron, matrices, value)


def _beginning(source: Task | Teacher, start: Any) -> tuple[Task, Array]:
    """The first task and its start. A teacher stands for its population loss, with one student along its vectors."""
    if isinstance(source, Teacher):
        first = first_neuron(source) if start is None else start
        return (made := Population(source, first.width)), made.flatten(first)
    return source, source.starts([0])[0] if start is None else source.flatten(start)


def first_neuron(teacher: Teacher) -> TwoLayer:
    """One student to begin with: along Σ_j b_j v_j, or Σ_j v_j for several outputs; as strong as all teachers."""
    v, b = np.asarray(teacher.incoming), np.asarray(teacher.outgoing).reshape(teacher.width, -1)
    direction = b[:, 0] @ v if b.shape[1] == 1 else np.sum(v, axis=0)
    if np.linalg.norm(direction) < 1e-8:
        direction = v[0]
    strength = np.sum(np.abs(b), axis=0).reshape(1, *teacher.outgoing.shape[1:])
    return TwoLayer(direction[None] / len(b), strength)


class _Padded(NamedTuple):
    """A point among silent neurons: in the parameters of the widest network, with a mask of its own parameters."""

    task: Task
    vector: Array
    free: np.ndarray

    @property
    def view(self) -> Task:
        """The task in which silent neurons stay as they are."""
        return self.task if np.all(self.free) else Frozen(self.task, jnp.asarray(self.free, float))


def _padded(task: Task, vector: Array, width: int, layer: int) -> _Padded:
    """Tasks with kinks or in curved spaces stay as they are: `Frozen` does not know their kinks and charts."""
    missing = width - task.hidden_layer(vector, layer).width
    if not missing or task.kinked or not task.is_flat:
        return _Padded(task, vector, np.ones(task.size, bool))
    first = width - missing
    wide, padded = task.split(vector, {first - 1: [1.0, *[0.0] * missing]}, layer)
    free = np.ones(wide.size, bool)
    free[wide.hidden_positions(layer)[first:]] = False
    return _Padded(wide, padded, free)


def _flow(start: _Padded, options: FlowOptions | None) -> tuple[Array, Trajectory]:
    options = FlowOptions(snapshots=0) if options is None else options
    ((_, trajectory),) = follow(start.view, np.asarray(start.vector)[None], options)
    return jnp.asarray(trajectory.vector[start.free]), trajectory


def _pushed(point: _Padded, push: float) -> tuple[float, Array]:
    """The split point pushed along its least eigenvector, in the direction with the lower loss (+ at a tie)."""
    # A split point has an eigenvalue zero along the line of splits, so the ones that `Frozen` adds are never least.
    value, direction = least_direction(point.view, point.vector)
    step = push * jnp.asarray(direction * point.free)
    ends = jnp.stack([point.task.retract(point.vector, sign * step) for sign in (1.0, -1.0)])
    losses = np.asarray(point.task.loss(ends))
    return value, ends[1 if losses[1] < losses[0] - 1e-13 else 0][point.free]


def _averaging(described: Described) -> int:
    """The neuron whose best match to a teacher is worst: of one copy and one average, the average."""
    return int(np.argmin(np.abs(described["student_teacher"][1][0]).max(axis=1)))


def _least(wide: _Padded, width: int, layer: int, mu: float) -> int:
    """The neuron whose split adds the least eigenvalue to the Hessian."""
    blocks = [split_matrices(wide.task, wide.vector, i, layer=layer).block(mu) for i in range(width)]
    return int(np.argmin([np.linalg.eigvalsh(block)[0] for block in blocks]))


def _stage(
    task: Task,
    vector: Array,
    trajectory: Trajectory,
    wide: _Padded,
    layer: int,
    mu: float,
    split: tuple[int, SplitMatrices, float] | None,
) -> Stage:
    found = find_divergence(trajectory)
    far = trajectory.lengthening
    words = found.describe() if found else far.describe(trajectory.unit) if far else None
    certificate = certify(task, vector, diverging=words)
    described = task.describe(np.asarray(vector)[None])
    hidden = task.hidden_layer(vector, layer)
    shown = described if "norm" in described else describe_neurons(hidden.rows[None], np.asarray(hidden.outgoing)[None])
    outgoing = shown["outgoing"][1][0]
    neuron, matrices, along = (None, None, None) if split is None else split
    return Stage(
        hidden.width,
        task.unflatten(vector),
        certificate.loss,
        certificate,
        task.structure(vector),
        _averaging(described) if "student_teacher" in described else _least(wide, hidden.width, layer, mu),
        shown["norm"][1][0],
        outgoing[:, 0] if outgoing.ndim == 2 and outgoing.shape[1] == 1 else outgoing,
        shown["student_student"][1][0],
        split_neuron=neuron,
        matrices=matrices,
        pushed_along=along,
        trajectory=trajectory,
        task=task,
    )
