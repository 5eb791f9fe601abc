r"""Students of a kinked activation that are copies of each other, exactly or nearly.

For ReLU two students with the angle α between them add a_i a_j ‖w_i‖ ‖w_j‖ (sin α - α cos α)/π to a smooth function of
their weights, a term that begins with |α|³/3. Where nothing of second order pulls them apart, this term alone decides:
with weights of equal signs it rises in every direction, and the flow brings the copies together like α ~ 1/t. It never
arrives, and Newton's method only halves α at each step, so that rounding hides the last part of the way. The critical
point is the one at α = 0.
"""

from dataclasses import dataclass

import numpy as np

from understudy.activations import PiecewiseLinear
from understudy.points.surroundings import Surroundings
from understudy.tasks.neurons import Neurons

_NEAR = 1e-4
"""Relative distance at which students count as nearly the same: α³ is then below the rounding of the loss."""

_LEAST = 1e-4
"""Least share of a copy in what its group contributes. The term |α|³ has the sign of both weights: next to zero a
weight may have either sign, and the copy may be a dead neuron with a way down."""

_STEPS = 4
_STIFF = 1e-6
"""Share of the largest eigenvalue above which Newton's method follows a direction: the eigenvalue of α is about α."""

_ASIDE = 1e-3
"""Distance at which third derivatives are measured: errors are about 1e-6 (fifth derivatives) and 1e-11 (rounding)."""

_AGREE = 0.02
"""Relative difference between the curvatures that kinks should make at that distance and those that are seen."""


def join_copies(around: Surroundings) -> np.ndarray | None:
    """The critical point next to this one at which nearly parallel students are exactly parallel.

    None if there are no such students, or no such critical point.
    """
    neurons = _kinked(around)
    if neurons is None:
        return None
    groups = [g for g in parallel_groups(neurons, _NEAR) if len(g) > 1]
    if any(_least_share(neurons, g) < _LEAST for g in groups):
        return None
    start = _joined(around.vector, neurons, groups)
    if not groups or np.array_equal(start, around.vector):
        return None
    point = start
    for _ in range(_STEPS):
        here = Surroundings(around.task, point)
        if not here.finite:
            return None
        values, vectors = np.linalg.eigh(here.hessian)
        stiff = np.abs(values) > _STIFF * np.abs(values).max()
        step = vectors[:, stiff] @ ((vectors[:, stiff].T @ here.gradient) / values[stiff])
        moved = here.place(-step)
        point = _joined(moved, around.task.neurons(moved) or neurons, groups)
    there = Surroundings(around.task, point)
    size = float(np.linalg.norm(around.vector / around.lengths))
    near = float(np.linalg.norm((point - around.vector) / around.lengths)) <= 10 * _NEAR * (1 + size)
    critical = there.finite and float(np.linalg.norm(there.gradient)) <= there.rounding.gradient
    return point if near and critical else None


def distance_to_other_signs(around: Surroundings) -> float:
    """The distance within which no weight of exact copies changes its sign, in natural units; inf without copies.

    Beyond, terms like a_i a_j |α|³ have another sign, and the loss says nothing about the point.
    """
    neurons = _kinked(around)
    if neurons is None:
        return np.inf
    members = [i for g in parallel_groups(neurons, 1e-12) if len(g) > 1 for i in g]
    if not members:
        return np.inf
    sizes = np.concatenate(
        [np.linalg.norm(neurons.incoming[members], axis=1), np.linalg.norm(neurons.outgoing[members], axis=1)]
    )
    return float(sizes.min() / around.lengths.max())


def _kinked(around: Surroundings) -> Neurons | None:
    neurons = around.task.neurons(around.vector)
    if neurons is None or neurons.homogeneity != 1 or neurons.activation.smoothness > 0:
        return None
    return neurons


def parallel_groups(neurons: Neurons, tolerance: float) -> list[list[int]]:
    """Students that point the same way; for an even activation, opposite ones too. Zero vectors are left out."""
    norms = np.linalg.norm(neurons.incoming, axis=1)
    present = np.flatnonzero(norms > 1e-12 * norms.max())
    ways = neurons.incoming[present] / norms[present][:, None]
    groups: list[list[int]] = []
    for i, way in zip(present, ways, strict=True):
        for group in groups:
            first = neurons.incoming[group[0]] / norms[group[0]]
            opposite = neurons.parity == "even" and np.linalg.norm(way + first) <= tolerance
            if opposite or np.linalg.norm(way - first) <= tolerance:
                group.append(int(i))
                break
        else:
            groups.append([int(i)])
    return groups


def _least_share(neurons: Neurons, group: list[int]) -> float:
    """The least of ‖a_i‖ ‖w_i‖ in the group, as a share of their sum."""
    parts = np.linalg.norm(neurons.outgoing[group], axis=1) * np.linalg.norm(neurons.incoming[group], axis=1)
    return float(parts.min() / max(parts.sum(), 1e-300))


def _joined(vector: np.ndarray, neurons: Neurons, groups: list[list[int]]) -> np.ndarray:
    """Each group along its mean direction, weighted by what each student contributes; lengths stay."""
    joined = vector.copy()
    for group in groups:
        rows = neurons.incoming[group]
        signs = np.where(rows @ rows[0] < 0, -1.0, 1.0)
        weights = np.linalg.norm(neurons.outgoing[group], axis=1)
        mean = (signs * weights) @ rows
        if not np.any(mean):  # all of them are off
            continue
        way = mean / np.linalg.norm(mean)
        lengths = signs * np.linalg.norm(rows, axis=1)
        joined[neurons.layout[group, : neurons.dim]] = lengths[:, None] * way
    return joined


@dataclass(frozen=True)
class Cube:
    """The loss rises (or falls) at least like `least`·|z|³ along zero modes z in which copies part; `other` bounds the
    terms of third order without a kink."""

    groups: list[list[int]]
    rises: bool
    least: float
    other: float

    def describe(self) -> str:
        """In words."""
        way = "rises" if self.rises else "falls"
        return (
            f"in all of them copies among students {self.groups} part, and the loss {way} like the cube of the angle "
            f"between them: by {self.least:.1e} z³ at least, where other terms of third order make {self.other:.0e} z³"
        )


def cube_of_copies(around: Surroundings, null: np.ndarray) -> Cube | None:
    """Whether the kinks of exact copies make the loss rise, or fall, along every direction of `null` (columns).

    With α_ij the angle that opens between two copies, the loss has the terms κ_ij |α_ij|³, κ_ij = (4/3π) kink² a_i·a_j
    ‖w_i‖ ‖w_j‖, for an activation slope·x + kink·|x|. If all have one sign, P pairs give at least min |κ| σ³ |z|³/√P
    with σ the least singular value of z → (α_ij), by Hölder's inequality. The other third-order terms are an odd
    function of z: differences of Hessians at ±z give their tensor T, and they are at most |T| |z|³/6. Terms beyond
    third order, and the relaxation of all other directions, are of fourth order.

    The even part of the same Hessians must be that of the kinks. None if it is not, or if the terms do not decide.
    """
    neurons = _kinked(around)
    if neurons is None or not isinstance(neurons.activation, PiecewiseLinear) or not null.shape[1]:
        return None
    groups = [g for g in parallel_groups(neurons, 1e-12) if len(g) > 1]
    if any(_least_share(neurons, g) < _LEAST for g in groups):
        return None
    pairs = [(i, j) for g in groups for n, i in enumerate(g) for j in g[:n]]
    norms = np.linalg.norm(neurons.incoming, axis=1)
    weights = np.array([neurons.outgoing[i] @ neurons.outgoing[j] * norms[i] * norms[j] for i, j in pairs])
    if not pairs or not (np.all(weights > 0) or np.all(weights < 0)):
        return None
    strengths = 4 / (3 * np.pi) * neurons.activation.kink**2 * weights / around.unit
    moves = (around.lengths[:, None] * null)[neurons.layout[:, : neurons.dim]]  # (student, input, mode)
    angles = np.stack([_opening(neurons.incoming, moves, i, j) for i, j in pairs])  # (pair, input, mode)
    least = float(np.linalg.svd(angles.reshape(-1, null.shape[1]), compute_uv=False)[-1])
    if len(angles.reshape(-1, null.shape[1])) < null.shape[1]:
        return None
    odd = []
    for mode in range(null.shape[1]):
        ahead, back = (null.T @ around.evaluate(s * _ASIDE * null[:, mode])[2] @ null for s in (1, -1))
        odd.append((ahead - back) / (2 * _ASIDE))
        seen = float((ahead + back)[mode, mode]) / (2 * _ASIDE)
        expected = 6 * float(strengths @ np.linalg.norm(angles[:, :, mode], axis=1) ** 3)
        if not abs(seen - expected) <= _AGREE * abs(expected):
            return None
    kinks = float(np.abs(strengths).min()) * least**3 / np.sqrt(len(pairs))
    other = float(np.linalg.norm(odd)) / 6
    if kinks <= 2 * other:
        return None
    return Cube(groups, bool(np.all(weights > 0)), kinks * around.unit, other * around.unit)


def _opening(incoming: np.ndarray, moves: np.ndarray, i: int, j: int) -> np.ndarray:
    """How the angle between two parallel students changes, as a vector across them, for each mode."""
    way = incoming[i] / np.linalg.norm(incoming[i])
    turned = moves[i] / (incoming[i] @ way) - moves[j] / (incoming[j] @ way)
    return turned - np.outer(way, way @ turned)
