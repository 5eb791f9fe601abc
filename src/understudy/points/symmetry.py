"""When two points are one: up to permutation, signs and scale of neurons, or up to the teacher's own symmetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from understudy.networks import TwoLayer
from understudy.tasks.population import Population


def canonical_rows(task: Population, parameters: TwoLayer) -> np.ndarray:
    """One row (w_i, a_i) a neuron; for homogeneous activations scaled to unit incoming vectors."""
    w = np.asarray(parameters.incoming, float)
    a = np.asarray(parameters.outgoing, float).reshape(len(w), -1)
    degree = task.activation.homogeneity
    if degree is not None:
        norms = np.linalg.norm(w, axis=1, keepdims=True)
        a = a * norms**degree
        w = w / np.where(norms > 0, norms, 1.0)
    return np.concatenate([w, a], axis=1)


def point_distance(task: Population, first: TwoLayer, second: TwoLayer) -> float:
    """Least distance between two students over permutations of neurons (an assignment problem), signs and scales.

    Odd activations: (w, a) and (-w, -a) are the same neuron; even ones: (w, a) and (-w, a); homogeneous ones: neurons
    are compared at unit incoming vectors.
    """
    x, y = canonical_rows(task, first), canonical_rows(task, second)
    cost = np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)
    if task.activation.parity is not None:
        flipped = y.copy()
        flipped[:, : task.dim] *= -1
        if task.activation.parity == "odd":
            flipped[:, task.dim :] *= -1
        cost = np.minimum(cost, np.sum((x[:, None, :] - flipped[None, :, :]) ** 2, axis=-1))
    rows, columns = linear_sum_assignment(cost)
    return float(np.sqrt(cost[rows, columns].sum()))


@dataclass(frozen=True)
class Group:
    """Runs that ended in one point, up to symmetry: their positions in the result set, the first standing for all."""

    kind: str
    label: str
    loss: float
    members: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many runs ended here."""
        return len(self.members)


def group_runs(runs: Any, *, tolerance: float = 1e-7) -> list[Group]:
    """Group results by the point they ended in, most frequent first.

    Two results are one if verdict, label, loss and the whole Hessian spectrum agree (relative `tolerance`): all are
    invariant under permutations and signs of students and under every symmetry of the teacher, which moves copies from
    one teacher to another.
    """
    groups: list[list[int]] = []
    for i, run in enumerate(runs):
        for group in groups:
            if _same(run, runs[group[0]], tolerance):
                group.append(i)
                break
        else:
            groups.append([i])
    found = [Group(runs[g[0]].certificate.kind, runs[g[0]].structure.label, runs[g[0]].loss, tuple(g)) for g in groups]
    return sorted(found, key=lambda g: (-g.count, g.loss))


def _same(first: Any, second: Any, tolerance: float) -> bool:
    if first.certificate.kind != second.certificate.kind or first.structure.label != second.structure.label:
        return False
    scale = max(abs(first.loss), abs(second.loss), 1e-9)
    if abs(first.loss - second.loss) > tolerance * scale:
        return False
    if first.certificate.kind not in ("minimum", "strict saddle", "non-strict saddle"):
        return True
    if first.certificate.flat_dimension:
        return True  # along a flat set the spectrum changes; loss and label are what is left
    x, y = first.certificate.eigenvalues, second.certificate.eigenvalues
    return len(x) == len(y) and bool(np.abs(x - y).max() <= 10 * tolerance * max(1.0, np.abs(x).max()))
