"""Growing a student one neuron at a time: fit, split the averaging neuron, push off the saddle, follow, repeat."""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np

from understudy.dynamics.divergence import find_divergence
from understudy.dynamics.flow import FlowOptions, Trajectory, follow
from understudy.networks import Teacher, TwoLayer
from understudy.points import Structure, structure
from understudy.points.certificate import Certificate, certify
from understudy.points.splitting import SplitMatrices, split_matrices
from understudy.surgery.split import split
from understudy.tasks.frozen import Frozen
from understudy.tasks.order_parameters import order_parameters
from understudy.tasks.population import Population


@dataclass(frozen=True)
class Stage:
    """One width: the point where the flow ended, and the split that led to it.

    - `parameters`, `loss`, `certificate`, `structure`: of the point reached.
    - `averaging`: the neuron that averages most teachers; `norms`, `outgoing`: of all neurons; `correlations`: of the
      neurons with each other.
    - `split_neuron`, `matrices`, `pushed_along`: the neuron of the previous stage that was split, its Y and V, and the
      eigenvalue of the direction of the push; None at the first stage.
    """

    width: int
    parameters: TwoLayer = field(repr=False)
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


def grow(
    teacher: Teacher,
    width: int,
    *,
    start: TwoLayer | None = None,
    mu: float = 0.5,
    push: float = 1e-2,
    choose: Callable[[Population, TwoLayer], int] | None = None,
    options: FlowOptions | None = None,
    watch: Callable[[Stage], None] | None = None,
) -> list[Stage]:
    """Grow a student from one neuron (or from `start`) to `width` neurons; one `Stage` per width.

    **Arguments**

    - `teacher`: one output; `width`: the last number of neurons.
    - `start`: a student to begin with; its flow is followed first. Default: one neuron along Σ_j b_j v_j.
    - `mu`: the share of the first part when a neuron is split; `push`: how far the split point is pushed along the
      eigenvector of its least eigenvalue, in the direction that lowers the loss more.
    - `choose(task, network)`: returns the neuron to split. Default: the one that averages most teachers.

    All flows run in the parameter space of the widest student, so that the flow is compiled once. Neurons that do not
    exist yet are held at zero outgoing weights.

    **Reference**: "few neurons", Fig. 4; Wu et al. 2019, "Splitting steepest descent for growing neural architectures".
    """
    first = _first_neuron(teacher) if start is None else start
    if teacher.outgoing.ndim != 1:
        raise ValueError(f"grow takes a teacher with one output; this one has {teacher.outgoing.shape[1]}.")
    if first.incoming.ndim != 2 or not first.width <= width:
        raise ValueError(f"grow goes from {first.width} neurons upward; received width={width}.")
    if not (np.isfinite(mu) and mu not in (0.0, 1.0)):
        raise ValueError(f"A split at μ = {mu} leaves a silent neuron and a flat saddle; give another μ, such as 0.5.")
    wide = Population(teacher, width)
    choose = averaging_neuron if choose is None else choose
    stages: list[Stage] = []
    taken = _flow(wide, first, options)
    history: tuple[int | None, SplitMatrices | None, float | None] = (None, None, None)
    while True:
        stage = _stage(teacher, taken, *history)
        stages.append(stage)
        if watch is not None:
            watch(stage)
        if stage.width == width:
            return stages
        network = stage.parameters
        task = Population(teacher, network.width)
        neuron = choose(task, network)
        # Silent neurons change neither Y nor V, and with them all widths share one compiled program.
        matrices = split_matrices(wide, _padded(wide, network)[0], neuron)
        doubled = split(network, {neuron: [mu, 1 - mu]})
        value, begin = _pushed(wide, doubled, push)
        history = (neuron, matrices, value)
        taken = _flow(wide, begin, options)


def averaging_neuron(task: Population, network: TwoLayer) -> int:
    """The neuron whose best match to a teacher is worst: of one copy and one average, the average."""
    u = np.abs(np.asarray(order_parameters(task, network).student_teacher))
    return int(np.argmin(u.max(axis=1)))


def _first_neuron(teacher: Teacher) -> TwoLayer:
    v, b = np.asarray(teacher.incoming), np.asarray(teacher.outgoing)
    direction = b @ v if b.ndim == 1 else np.sum(v, axis=0)
    if np.linalg.norm(direction) < 1e-8:
        direction = v[0]
    return TwoLayer(direction[None] / len(b), np.array([float(np.sum(np.abs(b)))]))


def _padded(wide: Population, network: TwoLayer) -> tuple[np.ndarray, np.ndarray]:
    """The student in the parameters of the widest one, and a mask of its own parameters."""
    missing = wide.width - network.width
    filler = np.tile(np.asarray(wide.teacher.incoming)[:1], (missing, 1))  # not zero: kinked activations
    incoming = np.concatenate([np.asarray(network.incoming), filler])
    outgoing = np.concatenate([np.asarray(network.outgoing), np.zeros(missing)])
    free = np.repeat(np.arange(wide.width) < network.width, wide.dim + 1).astype(float)
    return np.asarray(wide.flatten(TwoLayer(incoming, outgoing))), free


def _flow(wide: Population, network: TwoLayer, options: FlowOptions | None) -> tuple[TwoLayer, Trajectory]:
    vector, free = _padded(wide, network)
    options = FlowOptions(snapshots=0) if options is None else options
    ((_, trajectory),) = follow(Frozen(wide, jnp.asarray(free)), vector[None], options)
    end = wide.unflatten(jnp.asarray(trajectory.vector))
    return TwoLayer(end.incoming[: network.width], end.outgoing[: network.width]), trajectory


def _pushed(wide: Population, network: TwoLayer, push: float) -> tuple[float, TwoLayer]:
    """The split point pushed along its least eigenvector, in the direction with the lower loss (+ at a tie)."""
    vector, free = _padded(wide, network)
    hessian = np.asarray(wide.hessian(vector))
    own = free > 0
    values, vectors = np.linalg.eigh(hessian[np.ix_(own, own)])
    direction = np.zeros(wide.size)
    direction[own] = vectors[:, 0] * np.sign(vectors[np.argmax(np.abs(vectors[:, 0])), 0])
    ends = np.stack([vector + push * direction, vector - push * direction])
    losses = np.asarray(wide.loss(ends))
    chosen = ends[1] if losses[1] < losses[0] - 1e-13 else ends[0]
    end = wide.unflatten(jnp.asarray(chosen))
    return float(values[0]), TwoLayer(end.incoming[: network.width], end.outgoing[: network.width])


def _stage(
    teacher: Teacher,
    taken: tuple[TwoLayer, Trajectory],
    neuron: int | None,
    matrices: SplitMatrices | None,
    value: float | None,
) -> Stage:
    network, trajectory = taken
    task = Population(teacher, network.width)
    found = find_divergence(trajectory)
    certificate = certify(task, network, diverging=found.describe() if found else None)
    order = order_parameters(task, network)
    return Stage(
        network.width,
        network,
        certificate.loss,
        certificate,
        structure(task, network),
        averaging_neuron(task, network),
        np.asarray(order.norms),
        np.asarray(order.outgoing),
        np.asarray(order.student_student),
        neuron,
        matrices,
        value,
        trajectory,
    )
