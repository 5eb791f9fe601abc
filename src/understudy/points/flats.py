"""Directions along which a two-layer network keeps its function. They explain zero eigenvalues of a Hessian.

- *rescaling* and *rotation*: continuous symmetries of the task (see `Task.symmetry_tangents`).
- *split line*: students with the same incoming vector share an outgoing weight. Moving weight from one to the other
  changes nothing (Simsek et al., "few neurons", Section 2.2). The same holds for students with opposite vectors (odd
  and even activations) and, for homogeneous activations, with parallel ones. If outgoing weights are fixed, parallel
  students of a homogeneous activation share their length instead: the gradient at w_i depends on its length only by a
  factor, so that it stays zero.
- *dead neuron*: if the outgoing weight is zero, the incoming vector is free. The function stays the same, but the point
  need not stay critical. A zero mode is explained only if the gradient in the outgoing weight vanishes at all incoming
  vectors nearby.
- *silent neuron*: if σ(0) = 0 and the incoming vector is zero, the outgoing weight is free.

A neuron that is in two of the last three families sits where two flat sets cross. The sum of their tangent spaces is
not a tangent space of either set. So nothing is explained there, and the higher-order test decides.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.kept_programs import kept
from understudy.points.dead_neurons import SAME, dead_neurons
from understudy.points.surroundings import Surroundings
from understudy.tasks.neurons import Neurons
from understudy.tasks.task import Task


@dataclass(frozen=True)
class FlatFamily:
    """Tangents (rows, flat parameter vectors) of one family, and its description in words."""

    name: str
    detail: str
    tangents: np.ndarray


@kept
def _tangents(task: Task, vector: Array) -> Array:
    return task.symmetry_tangents(vector)


def flat_families(around: Surroundings, near: float = SAME, free: list[int] | None = None) -> list[FlatFamily]:
    """Every family of function-preserving directions at this point, crossings left out; tangents are in natural units.

    `near`: relative distance up to which weights count as equal. `free`: dead neurons whose incoming vectors are known
    to be free, at zero loss. Where such a set crosses others, it counts as the largest. By default they are searched
    for.
    """
    task, vector = around.task, around.vector
    families = []
    symmetric = np.asarray(_tangents(task, jnp.asarray(vector)))
    symmetric = symmetric[np.linalg.norm(symmetric, axis=1) > 0]
    if len(symmetric):
        families.append(FlatFamily("symmetry", "rescaling or rotation", symmetric))
    neurons = task.neurons(vector)
    if neurons is not None:
        for family in _of_neurons(around, neurons, near, free):
            own = np.zeros((len(family.tangents), len(vector)))
            own[:, neurons.layout.ravel()] = family.tangents
            families.append(FlatFamily(family.name, family.detail, own))
    return [FlatFamily(f.name, f.detail, f.tangents / around.lengths) for f in families]


def _of_neurons(around: Surroundings, neurons: Neurons, near: float, free: list[int] | None) -> list[FlatFamily]:
    """Families with tangents in the order (w_1, a_1) ⊕ (w_2, a_2) ⊕ …"""
    width, outputs = neurons.width, neurons.trained_outputs
    scale = max(np.abs(neurons.incoming).max(), 1e-300)
    dead = dead_neurons(neurons.outgoing) if free is None else free
    silent = [i for i in range(width) if np.abs(neurons.incoming[i]).max() <= near * scale and neurons.vanishes_at_zero]
    groups, ratios = _same_neurons(neurons, near * scale)
    crowded = {i for group in groups if len(group) > 1 for i in group}
    crossing = (crowded & set(dead)) | (set(dead) & set(silent)) | (crowded & set(silent))
    families = []
    for group in groups:
        members = [i for i in group if i not in crossing]
        if len(members) >= 2 and outputs:
            families.append(_split_line(neurons, members, ratios))
        elif len(members) >= 2 and neurons.homogeneity:
            families += _shared_length(neurons, members, ratios)
    for i in dead:
        if free is not None or (i not in crossing and _stays_critical(around, neurons.layout[i, : neurons.dim])):
            families.append(_free_vector(neurons, i))
    for i in silent:
        if i not in crossing and outputs:
            families.append(_free_outgoing(neurons, i))
    return families


def _split_line(neurons: Neurons, members: list[int], ratios: np.ndarray) -> FlatFamily:
    rows = []
    for i in members[1:]:
        for o in range(neurons.dim, neurons.dim + neurons.trained_outputs):
            row = np.zeros(neurons.layout.shape)
            row[members[0], o], row[i, o] = ratios[i], -ratios[members[0]]
            rows.append(row.ravel())
    return FlatFamily("split line", f"students {members} compute the same function", np.stack(rows))


def _shared_length(neurons: Neurons, members: list[int], ratios: np.ndarray) -> list[FlatFamily]:
    """Lengths of parallel students with fixed outgoing weights: Σ_i a_i ratio_i must stay, ratio_i ~ ‖w_i‖^degree."""
    outgoing = neurons.outgoing[members].T
    _, singular, basis = np.linalg.svd(outgoing, full_matrices=True)
    shares = basis[int(np.sum(singular > SAME * singular.max())) :]
    if not len(shares):
        return []
    rows = np.zeros((len(shares), *neurons.layout.shape))
    lengthened = neurons.incoming[members] / (float(neurons.homogeneity or 1) * ratios[members])[:, None]
    rows[:, members, :] = shares[:, :, None] * lengthened
    words = f"students {members} are parallel and share their length"
    return [FlatFamily("split line", words, rows.reshape(len(shares), -1))]


def _free_vector(neurons: Neurons, i: int) -> FlatFamily:
    rows = np.zeros((neurons.dim, *neurons.layout.shape))
    rows[np.arange(neurons.dim), i, np.arange(neurons.dim)] = 1.0
    return FlatFamily("dead neuron", f"student {i} has no outgoing weight", rows.reshape(neurons.dim, -1))


def _free_outgoing(neurons: Neurons, i: int) -> FlatFamily:
    outputs = neurons.trained_outputs
    rows = np.zeros((outputs, *neurons.layout.shape))
    rows[np.arange(outputs), i, neurons.dim + np.arange(outputs)] = 1.0
    return FlatFamily("silent neuron", f"student {i} has no input", rows.reshape(outputs, -1))


def _stays_critical(around: Surroundings, entries: np.ndarray) -> bool:
    """Whether the gradient stays as small when the incoming vector of a dead neuron (at `entries`) is moved."""
    moved = np.zeros((3, len(around.vector)))
    moved[:, entries] = 0.3 * np.cos(np.arange(3 * len(entries)).reshape(3, -1) * 1.7 + 0.3)
    slopes = np.linalg.norm(around.slopes(moved)[1], axis=1)
    return bool(np.all(slopes <= 1e-9 + 10 * float(np.linalg.norm(around.gradient))))


def _same_neurons(neurons: Neurons, tolerance: float) -> tuple[list[list[int]], np.ndarray]:
    """Groups of students with σ(w_i·x) = ratio_i σ(w_j·x), j the first of the group, and the ratios."""
    w, degree, parity = neurons.incoming, neurons.homogeneity, neurons.parity
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
