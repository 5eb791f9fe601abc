"""Directions along which a two-layer network keeps its function: what explains zero eigenvalues of a Hessian.

- *rescaling* and *rotation*: continuous symmetries of the task (see `Task.symmetry_tangents`).
- *split line*: students with the same incoming vector share an outgoing weight; moving it from one to the other changes
  nothing (Simsek et al., "few neurons", Section 2.2). So do students with opposite vectors (odd and even activations)
  and, for homogeneous activations, with parallel ones.
- *dead neuron*: with a zero outgoing weight the incoming vector is free. The function stays the same, but the point need
  not stay critical: only where the outgoing weight feels no force at any incoming vector around is a zero mode explained.
- *silent neuron*: with σ(0) = 0 and a zero incoming vector the outgoing weight is free.

A neuron that is in two of the last three families sits where two flat sets cross; the sum of their tangents is not the
tangent of anything, so there nothing is explained and the higher-order test decides.
"""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.points.dead_neurons import SAME, dead_neurons
from understudy.tasks.neurons import Neurons
from understudy.tasks.task import Task


@dataclass(frozen=True)
class FlatFamily:
    """Tangents (rows, flat parameter vectors) of one family, with what it is in words."""

    name: str
    detail: str
    tangents: np.ndarray


@eqx.filter_jit
def _tangents(task: Task, vector: Array) -> Array:
    return task.symmetry_tangents(vector)


def flat_families(task: Task, vector: np.ndarray) -> list[FlatFamily]:
    """Every family of function-preserving directions at this point, crossings left out."""
    families = []
    symmetric = np.asarray(_tangents(task, jnp.asarray(vector)))
    symmetric = symmetric[np.linalg.norm(symmetric, axis=1) > 0]
    if len(symmetric):
        families.append(FlatFamily("symmetry", "rescaling or rotation", symmetric))
    neurons = task.neurons(vector)
    if neurons is not None:
        for family in _of_neurons(task, vector, neurons):
            own = np.zeros_like(family.tangents)
            own[:, neurons.layout.ravel()] = family.tangents
            families.append(FlatFamily(family.name, family.detail, own))
    return families


def _of_neurons(task: Task, vector: np.ndarray, neurons: Neurons) -> list[FlatFamily]:
    """Families with tangents in the order (w_1, a_1) ⊕ (w_2, a_2) ⊕ …"""
    width, dim, outputs = neurons.width, neurons.dim, neurons.trained_outputs
    w, a, shape = neurons.incoming, neurons.outgoing, neurons.layout.shape
    scale_w = max(np.abs(w).max(), 1e-300)
    dead = dead_neurons(a)
    silent = [i for i in range(width) if np.abs(w[i]).max() <= SAME * scale_w and _vanishes_at_zero(neurons)]
    groups, ratios = _same_neurons(neurons, SAME * scale_w)
    crowded = {i for group in groups if len(group) > 1 for i in group if i in dead}
    crossing = crowded | (set(dead) & set(silent)) | ({i for g in groups if len(g) > 1 for i in g} & set(silent))
    families = []
    for group in groups:
        members = [i for i in group if i not in crossing]
        if len(members) < 2 or not outputs:
            continue
        rows = []
        for i in members[1:]:
            for o in range(outputs):
                row = np.zeros(shape)
                row[members[0], dim + o], row[i, dim + o] = ratios[i], -ratios[members[0]]
                rows.append(row.ravel())
        families.append(FlatFamily("split line", f"students {members} compute the same function", np.stack(rows)))
    for i in dead:
        if i not in crossing and _stays_critical(task, vector, neurons.layout[i, :dim]):
            rows_w = np.zeros((dim, *shape))
            rows_w[np.arange(dim), i, np.arange(dim)] = 1.0
            families.append(FlatFamily("dead neuron", f"student {i} has no outgoing weight", rows_w.reshape(dim, -1)))
    for i in silent:
        if i not in crossing and outputs:
            rows_a = np.zeros((outputs, *shape))
            rows_a[np.arange(outputs), i, dim + np.arange(outputs)] = 1.0
            families.append(FlatFamily("silent neuron", f"student {i} has no input", rows_a.reshape(outputs, -1)))
    return families


def _stays_critical(task: Task, vector: np.ndarray, entries: np.ndarray) -> bool:
    """Whether the gradient stays as small as it is when the incoming vector of a dead neuron, at `entries`, is moved."""
    moved = np.tile(vector, (3, 1))
    moved[:, entries] += 0.3 * np.cos(np.arange(3 * len(entries)).reshape(3, -1) * 1.7 + 0.3)
    slopes = np.linalg.norm(np.asarray(task.gradient(moved)), axis=1)
    here = float(np.linalg.norm(np.asarray(task.gradient(vector))))
    return bool(np.all(slopes <= 1e-9 + 10 * here))


def _vanishes_at_zero(neurons: Neurons) -> bool:
    return float(neurons.activation(0.0)) == 0.0


def _same_neurons(neurons: Neurons, tolerance: float) -> tuple[list[list[int]], np.ndarray]:
    """Groups of students with σ(w_i·x) = ratio_i σ(w_j·x), j the first of the group, and the ratios."""
    w, degree, parity = neurons.incoming, neurons.activation.homogeneity, neurons.activation.parity
    groups: list[list[int]] = []
    ratios = np.ones(len(w))
    for i, row in enumerate(w):
        for group in groups:
            first = w[group[0]]
            size, length = np.linalg.norm(first), np.linalg.norm(row)
            stretch = length / size if degree is not None and size > tolerance and length > tolerance else 1.0
            signs = [1.0] if parity is None else [1.0, -1.0]
            same = [c for c in signs if np.abs(row - c * stretch * first).max() <= tolerance]
            if same:
                ratios[i] = (same[0] if parity == "odd" else 1.0) * stretch ** (degree or 0)
                group.append(i)
                break
        else:
            groups.append([i])
    return groups, ratios
