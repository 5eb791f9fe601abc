"""Prune students: remove nodes that match no teacher, merge co-linear nodes, and report what changed.

Suppose that the gradient of every sample vanishes. Then a node of the lowest layer whose boundary no teacher shares
contributes only an affine function, alone or together with the nodes on its boundary. (Tian 2020, Thm 3 and Cor. 2, say
"nothing". That overlooks nodes that face opposite ways, since σ(u) - σ(-u) = u.) The theorem needs enough observers,
and boundaries within the data. Before anything is removed, a measurement decides whether the theorem applies: the joint
contribution of the nodes, less a constant or an affine function that is kept, must be small on the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from understudy.alignment.correlations import RECOVERED, align
from understudy.networks import Deep
from understudy.surgery.join import remove
from understudy.surgery.merge import LayerMerge, MergeReport, compare, merge
from understudy.surgery.parts import check_inputs, forward, unpack


@dataclass(frozen=True)
class Pruned:
    """The smaller student and the changes.

    - `removed`: removed nodes of the lowest layer; `groups`: nodes (old numbers) that were merged into one each.
    - `report`: sizes, norms and the change of function on the inputs, all steps together.
    - `loss_before`, `loss_after`: ½ mean ‖f* - f‖² on the inputs.
    - `opposite`: nodes that were kept because they lie on a teacher's boundary and face the other way.
    - `added`: nodes, active on all inputs, that represent the affine part of the removed nodes.
    - `expected_change`: the relative change of the next layer's pre-activations on the inputs, computed before
      removing.
    """

    network: Deep
    removed: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    report: MergeReport
    loss_before: float
    loss_after: float
    opposite: tuple[int, ...] = ()
    added: int = 0
    expected_change: float = 0.0


def prune_unaligned(
    student: Deep,
    teacher: Deep,
    inputs: ArrayLike,
    *,
    threshold: float = RECOVERED,
    tolerance: float = 0.0,
    fold: bool = True,
    largest_change: float = 0.05,
) -> Pruned:
    """Remove the nodes of the student's lowest layer that share no boundary with a teacher, and merge co-linear ones.

    **Arguments**

    - `inputs`: (S, d), where correlations and changes are measured: data that were not used for training.
    - `threshold`: a node is removed if two numbers are at most this: its best correlation with a teacher, and the
      largest cosine of its weights and bias with the opposite of a teacher's.
    - `tolerance`: distance of unit vectors (weights with bias) up to which nodes count as co-linear; 0 merges only
      exact copies.
    - `fold`: keep the mean contribution of removed nodes over `inputs` in the biases of the next layer. If that is not
      enough, nodes that are active on all inputs keep their affine part.
    - `largest_change`: the largest accepted change of the next layer's pre-activations on the inputs, relative to their
      size (root mean squares). If the change would be larger, the theorem does not apply. Then this raises `ValueError`
      and removes nothing.
    """
    x = check_inputs(inputs, student.weights[0].shape[1])
    best = align(student, teacher, jnp.asarray(x))[0].best_of_student
    facing_away = np.max(-_unit_rows(student) @ _unit_rows(teacher).T, axis=1) > threshold
    opposite = tuple(int(i) for i in np.flatnonzero((best <= threshold) & facing_away))
    removed = tuple(int(i) for i in np.flatnonzero((best <= threshold) & ~facing_away))
    if len(removed) == len(best):
        raise ValueError(
            f"All {len(best)} nodes are unaligned at a threshold of {threshold}; train on, or lower the threshold."
        )
    smaller, added, change = _without(student, removed, x, fold, largest_change) if removed else (student, 0, 0.0)
    kept = [i for i in range(len(best)) if i not in set(removed)] + list(range(len(best), len(best) + added))
    joined = merge(smaller, "relu", tolerance=tolerance)
    first, *above = joined.report.layers
    groups = tuple(tuple(kept[i] for i in group) for group in first.groups)
    gone = (*removed, *(kept[i] for i in first.removed))
    layers = (LayerMerge(1, len(best), first.after, groups, tuple(sorted(gone))), *above)
    report = compare(student, joined.network, "relu", layers, x)
    wanted = forward(*unpack(teacher), "relu", x)
    losses = [
        0.5 * float(np.mean(np.sum((forward(*unpack(n), "relu", x) - wanted) ** 2, axis=1)))
        for n in (student, joined.network)
    ]
    return Pruned(joined.network, removed, groups, report, losses[0], losses[1], opposite, added, change)


def _without(
    student: Deep, removed: tuple[int, ...], x: np.ndarray, fold: bool, largest_change: float
) -> tuple[Deep, int, float]:
    """The student without these nodes, the nodes that were added for their affine part, and the expected change."""
    hidden = np.asarray(student.layers(jnp.asarray(x), "relu")[0])
    out, bias = np.asarray(student.weights[1]), np.asarray(student.biases[1])
    size = float(np.sqrt(np.mean((hidden @ out.T + bias) ** 2)))
    gone = hidden[:, list(removed)] @ out[:, list(removed)].T
    constant = gone.mean(axis=0) if fold else np.zeros(len(bias))

    def relative(rest: np.ndarray) -> float:
        return float(np.sqrt(np.mean(rest**2))) / size if size else 0.0

    smaller, change = remove(student, removed), relative(gone - constant)
    if change <= largest_change:
        above = (smaller.biases[0], smaller.biases[1] + constant, *smaller.biases[2:])
        return Deep(smaller.weights, above), 0, change
    if fold:
        design = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        affine = np.linalg.lstsq(design, gone, rcond=None)[0]
        left, values, right = np.linalg.svd(affine[:-1].T, full_matrices=False)
        rank = int(np.sum(values > 1e-12 * values[0]))
        change = relative(gone - design @ affine)
        if change <= largest_change and rank < len(removed):
            return _with_linear(smaller, left[:, :rank] * values[:rank], right[:rank], affine[-1], x), rank, change
    raise ValueError(
        f"Removing {len(removed)} unaligned nodes would change what the layer above receives by {change:.2g} of its "
        f"size, more than largest_change={largest_change}: the student is not where the theorem applies (too few "
        "observers, or not trained to the end). Train on, lower the threshold, or allow a larger change."
    )


def _with_linear(network: Deep, out: np.ndarray, rows: np.ndarray, constant: np.ndarray, x: np.ndarray) -> Deep:
    """Add out @ (rows @ x) + constant to the network, by nodes that are active on twice the range of the inputs."""
    shifts = 2 * np.max(np.abs(x @ rows.T), axis=0)
    weights = (
        jnp.concatenate([network.weights[0], jnp.asarray(rows)]),
        jnp.concatenate([network.weights[1], jnp.asarray(out)], axis=1),
        *network.weights[2:],
    )
    biases = (
        jnp.concatenate([network.biases[0], jnp.asarray(shifts)]),
        network.biases[1] + jnp.asarray(constant - out @ shifts),
        *network.biases[2:],
    )
    return Deep(weights, biases)


def _unit_rows(network: Deep) -> np.ndarray:
    """Weights with bias of the lowest layer's nodes, of unit length; zero rows stay zero."""
    rows = np.concatenate([np.asarray(network.weights[0]), np.asarray(network.biases[0])[:, None]], axis=1)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def group_sums(student: Deep, *, tolerance: float) -> list[tuple[tuple[int, ...], float]]:
    """Groups of co-linear nodes of the lowest layer, opposite ones included, and ‖Σ v_k ‖w_k‖‖ of each group.

    w_k includes the bias. The norm is the jump of the output's slope across the boundary that the nodes of a group
    share (Tian 2020, Thm 3). Nodes are in one group if their unit vectors, up to sign, are at most `tolerance` from
    that of the longest. Every node is in one group.
    """
    rows = np.concatenate([np.asarray(student.weights[0]), np.asarray(student.biases[0])[:, None]], axis=1)
    lengths = np.linalg.norm(rows, axis=1)
    unit = rows / np.where(lengths > 0, lengths, 1.0)[:, None]
    out = np.asarray(student.weights[1])
    groups: list[list[int]] = []
    for i in np.argsort(-lengths, kind="stable"):
        near = [
            g
            for g in groups
            if min(np.linalg.norm(unit[g[0]] - unit[i]), np.linalg.norm(unit[g[0]] + unit[i])) <= tolerance
        ]
        near[0].append(int(i)) if near else groups.append([int(i)])
    return [(tuple(g), float(np.linalg.norm(out[:, g] @ lengths[g]))) for g in groups]
