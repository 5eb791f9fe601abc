r"""Runs in which single neurons change their scale forever: a_j σ(w_j·x) with a_j ‖w_j‖ finite and ‖w_j‖ → ∞ or → 0.

Write r = ‖w_j‖ and s = a_j r. For an activation that grows like x, (s/r) σ(r z) has limits at both ends of r:

- r → ∞: s λ(z) with λ(z) = lim σ(r z)/r, a ReLU for GELU, SiLU and softplus. The difference is a bump of width 1/r and
  height 1/r at z = 0, so that the loss is L_∞ + C/r², with C from the residual at the kink. Along the valley dr/dt =
  2C/r³: r ~ t^¼.
- r → 0, if σ(0) = 0: s σ'(0) z, a linear neuron. The next term is (s r/2) σ''(0) z², so that the loss is L_∞ + C r, or
  L_∞ + C'/|a| along the valley. The outgoing weight moves by d|a|/dt = C'/a²: |a| ~ t^⅓.

If C > 0, the neuron goes on forever. Following this can take any amount of time, and quadrature costs more as r
grows. It is enough to see that the run is in the valley, that the valley is a minimum in all other directions, and that
the slope along the valley falls by 8 (r³) or 4 (a²) if the scale is doubled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from understudy.activations import Activation
from understudy.tasks.neurons import Neurons
from understudy.tasks.task import Task

_FAR = 6.0
"""Steepness × ‖w‖ above which a neuron may be on its way to its limit at infinity."""

_SMALL = 1 / 12
"""Steepness × ‖w‖ up to which a neuron may be on its way to a linear one."""

_AGREE = 0.1
"""Allowed relative difference between the ratio of slopes and 8 or 4. The next terms are of relative order 1/r or r;
see `_tested`."""

_HALVED = 0.75
"""Largest share of a difference that is left where it should be halved."""

_DOUBLINGS = 5
"""How often the scale is doubled: up to 1,000 at steepness 1, where the terms left out are below a hundredth."""

_STANDARD = 32.0
"""Steepness × least ‖w‖ of growing neurons at the end that is returned, and the root of its inverse for shrinking ones:
the terms left out are below a thousandth of those that decide."""

_REFINED = 8
_ROUNDS = 12
_RESIDUAL = 1e-9
_NEAR = 0.1
"""Share of the size of the parameters that the bottom of the valley may be away from the run."""

Evaluate = Callable[[Task, np.ndarray], tuple[float, np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Lengthening:
    """Neurons `growing` go to the limit of their activation at infinity, neurons `shrinking` become linear.

    `limit_loss`: the extrapolated loss of the limit. `end`: a point far out in the valley, with its `loss` and
    `gradient_norm`.
    """

    growing: tuple[int, ...]
    shrinking: tuple[int, ...]
    limit: str
    limit_loss: float
    end: np.ndarray
    loss: float
    gradient_norm: float

    def describe(self, unit: float = 1.0) -> str:
        """In words, with the loss in this unit."""
        words = []
        if self.growing:
            words.append(
                f"incoming vectors of neurons {list(self.growing)} grow like t^0.25 while their outgoing weights "
                f"shrink: they become {self.limit} neurons"
            )
        if self.shrinking:
            words.append(
                f"outgoing weights of neurons {list(self.shrinking)} grow like t^0.33 while their incoming vectors "
                "shrink: they become linear neurons"
            )
        return f"{'; '.join(words)}. The loss falls to about {self.limit_loss * unit:.7g}"


def may_lengthen(neurons: Neurons | None) -> TypeGuard[Neurons]:
    """Whether the theory above holds for these neurons, wherever they are."""
    if neurons is None or neurons.bias or not neurons.trained_outputs:
        return False
    activation = neurons.activation
    return activation.growth == 1 and activation.homogeneity is None and activation.smoothness > 2


def suspects(neurons: Neurons | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Neurons that are far out, and neurons that are nearly linear; none where the theory above does not hold."""
    if not may_lengthen(neurons):
        return (), ()
    activation = neurons.activation
    scale = activation.steepness * np.linalg.norm(neurons.incoming, axis=1)
    far = tuple(int(i) for i in np.flatnonzero(scale >= _FAR))
    steep = np.linalg.norm(neurons.outgoing, axis=1) * activation.steepness > 1
    small = (scale <= _SMALL) & (scale > 0) & steep & neurons.vanishes_at_zero
    return far, tuple(int(i) for i in np.flatnonzero(small))


def find_lengthening(task: Task, vector: np.ndarray, evaluate: Evaluate) -> Lengthening | None:
    """Whether a run at `vector` is in a valley along which single neurons change their scale forever.

    The end is a point of the valley that does not depend on when this was asked: far out, with scales in the ratios
    that they have in the end, r_j⁴ ~ C_j and |a_j|³ ~ C'_j.
    """
    neurons = task.neurons(vector)
    growing, shrinking = suspects(neurons)
    if neurons is None or not (growing or shrinking):
        return None
    task = task.prepared(np.stack([vector, _further(vector, neurons, growing, shrinking, None)]))
    first = _valley(task, vector, neurons, growing, shrinking, evaluate)
    if first is None or np.linalg.norm(first.vector - vector) > _NEAR * np.linalg.norm(vector):
        return None
    last = first
    for _ in range(_REFINED):
        start = _further(last.vector, neurons, growing, shrinking, last)
        task = task.prepared(start)
        further = _valley(task, start, neurons, growing, shrinking, evaluate)
        if further is None or not np.all(further.slopes < 0):
            return None
        shift = float(np.abs(further.sizes / last.sizes - 1).max())
        last = further
        if shift < 1e-9:
            break
    half = _valley(
        task, _rescaled(last.vector, neurons, growing, shrinking, 0.5), neurons, growing, shrinking, evaluate
    )
    if half is None:
        return None
    found = _tested(task, half, last, neurons, growing, shrinking, evaluate)
    if found is None:
        return None
    near, far = found
    left = _left(-far.slopes * far.sizes, near.loss - far.loss, len(growing))
    norm = float(np.linalg.norm(evaluate(task, last.vector)[1]))
    name = limit_name(neurons.activation)
    return Lengthening(growing, shrinking, name, far.loss - left, last.vector, last.loss, norm)


def _tested(
    task: Task,
    near: "_Bottom",
    far: "_Bottom",
    neurons: Neurons,
    growing: tuple[int, ...],
    shrinking: tuple[int, ...],
    evaluate: Evaluate,
) -> "tuple[_Bottom, _Bottom] | None":
    """Two bottoms, one at twice the scale of the other, whose slopes have the ratio 8 or 4, or tend to it; or None.

    Where the next order counts, the scale is doubled: the difference from the ratio has to be about halved each time.
    """
    expected = np.array([8.0] * len(growing) + [4.0] * len(shrinking))
    off = near.slopes / far.slopes / expected - 1
    for _ in range(_DOUBLINGS):
        if np.all(np.abs(off) <= _AGREE):
            return near, far
        start = _rescaled(far.vector, neurons, growing, shrinking, 2.0)
        task = task.prepared(start)
        further = _valley(task, start, neurons, growing, shrinking, evaluate)
        if further is None:
            return None
        before, off = off, far.slopes / further.slopes / expected - 1
        if not np.all(np.abs(off) <= np.maximum(_HALVED * np.abs(before), _AGREE)):
            return None
        near, far = far, further
        if np.all(np.abs(2 * off - before) <= _AGREE):
            return near, far
    return None


def _left(slopes: np.ndarray, drop: float, growing: int) -> float:
    """How far above its limit the loss is, from its slopes by the logarithms of the scales and its drop from half.

    With growing neurons alone it is C + D for C f² + D f³ at f = 1, f the inverse of the scale; with shrinking ones
    alone, for C f + D f². With both, the leading terms are added.
    """
    total = float(slopes.sum())
    if growing == len(slopes):
        return ((7 * total - 3 * drop) + (2 * drop - 3 * total)) / 5
    if not growing:
        return 2 * total - drop
    return float(slopes[:growing].sum() / 2 + slopes[growing:].sum())


def _further(
    vector: np.ndarray, neurons: Neurons, growing: tuple[int, ...], shrinking: tuple[int, ...], seen: "_Bottom | None"
) -> np.ndarray:
    """The point with its scales at the standard distance, in the ratios that the slopes of `seen` lead to."""
    moved, dim, steepness = np.array(vector), neurons.dim, neurons.activation.steepness
    held = (*growing, *shrinking)
    lengths = np.array([np.linalg.norm(vector[neurons.layout[i, :dim]]) for i in held])
    weights = np.array([np.linalg.norm(vector[neurons.layout[i, dim:]]) for i in held])
    wanted, count = lengths.copy(), len(growing)
    if seen is None:
        shares = np.ones(len(held))
    else:
        powers = np.where(np.arange(len(held)) < count, 3.0, 2.0)
        shares = (np.maximum(-seen.slopes, 1e-300) * seen.sizes**powers) ** (1 / (powers + 1))
    if count:
        wanted[:count] = _STANDARD / steepness * shares[:count] / shares[:count].min()
    if len(shrinking):
        product = weights[count:] * lengths[count:]
        ratio = shares[count:] / product  # 1/r, up to a factor
        wanted[count:] = 1 / (_STANDARD**2 * steepness * ratio / ratio.min())
    for i, stretch in zip(held, wanted / lengths, strict=True):
        moved[neurons.layout[i, :dim]] *= stretch
        moved[neurons.layout[i, dim:]] /= stretch
    return moved


@dataclass(frozen=True)
class _Bottom:
    """The bottom of the valley at given scales: the point, its loss, and the slope along each held scale."""

    vector: np.ndarray
    loss: float
    slopes: np.ndarray
    sizes: np.ndarray


def _rescaled(
    vector: np.ndarray, neurons: Neurons, growing: tuple[int, ...], shrinking: tuple[int, ...], factor: float
) -> np.ndarray:
    """Growing neurons with w·factor and a/factor, shrinking ones the other way round."""
    moved, dim = np.array(vector), neurons.dim
    for i in (*growing, *shrinking):
        stretch = factor if i in growing else 1 / factor
        moved[neurons.layout[i, :dim]] *= stretch
        moved[neurons.layout[i, dim:]] /= stretch
    return moved


def _held(vector: np.ndarray, neurons: Neurons, growing: tuple[int, ...], shrinking: tuple[int, ...]) -> np.ndarray:
    """Unit vectors (rows) along the held scales: ‖w‖ of growing neurons, ‖a‖ of shrinking ones."""
    rows = np.zeros((len(growing) + len(shrinking), len(vector)))
    for row, i in zip(rows, (*growing, *shrinking), strict=True):
        where = neurons.layout[i, : neurons.dim] if i in growing else neurons.layout[i, neurons.dim :]
        row[where] = vector[where] / np.linalg.norm(vector[where])
    return rows


def _valley(
    task: Task,
    vector: np.ndarray,
    neurons: Neurons,
    growing: tuple[int, ...],
    shrinking: tuple[int, ...],
    evaluate: Evaluate,
) -> _Bottom | None:
    """Newton's method with the scales held; None unless it ends in a minimum.

    Every other parameter is measured in its own size, because outgoing weights of growing neurons become small.
    """
    point = np.array(vector)
    held = _held(point, neurons, growing, shrinking)
    sizes = np.array([np.linalg.norm(row @ point) for row in held])
    units = np.ones(len(point))
    for i in (*growing, *shrinking):
        units[neurons.layout[i, : neurons.dim]] = np.linalg.norm(point[neurons.layout[i, : neurons.dim]])
        units[neurons.layout[i, neurons.dim :]] = np.linalg.norm(point[neurons.layout[i, neurons.dim :]])
    for _ in range(_ROUNDS):
        loss, gradient, hessian = evaluate(task, point)
        if not (np.isfinite(loss) and np.all(np.isfinite(hessian))):
            return None
        slopes = held @ gradient
        curved = hessian.copy()  # a held length bends the surface: its multiplier acts on all directions of the vector
        for row, slope, size in zip(held, slopes, sizes, strict=True):
            where = np.flatnonzero(row)
            curved[where, where] -= slope / size
        basis = np.linalg.svd(held * units, full_matrices=True)[2][len(held) :].T
        values, vectors = np.linalg.eigh(basis.T @ (units[:, None] * curved * units) @ basis)
        along = vectors.T @ (basis.T @ (units * gradient))
        small = float(np.linalg.norm(along)) <= _RESIDUAL * float(values[-1])
        if values[0] <= 0:
            return None
        if small:
            return _Bottom(point, float(loss), slopes, sizes)
        step = units * (basis @ (vectors @ (along / values)))
        if np.linalg.norm(step / units) > 1:
            return None
        point = point - step
        for n, row in enumerate(held):  # back onto the sphere
            where = np.flatnonzero(row)
            point[where] *= sizes[n] / np.linalg.norm(point[where])
        held = _held(point, neurons, growing, shrinking)
    return None


def limit_name(activation: Activation) -> str:
    """What σ(r x)/r becomes for r → ∞, in words."""
    up, down = (float(activation(s * 1e6)) / 1e6 for s in (1.0, -1.0))
    names = {(1.0, 0.0): "ReLU", (1.0, 1.0): "absolute-value", (1.0, -1.0): "linear", (0.0, 1.0): "mirrored ReLU"}
    return names.get((round(up, 4), round(down, 4)), f"piecewise linear (slopes {up:.3g} and {-down:.3g})")
