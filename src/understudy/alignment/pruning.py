"""Students pruned to what their teacher explains: unaligned nodes removed, co-linear ones merged, and what that changed.

At a point where every sample's gradient vanishes, a node of the lowest layer that is aligned with no teacher contributes nothing, alone or together
with the nodes it is co-linear with (Tian 2020, Thm 3 and Cor. 2). Near such a point the report says how nearly that holds. A node without a
boundary in the data is not covered: it may be constant there and stand for a bias, so what removed nodes contribute on average goes to the bias.
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
    """The smaller student and what changed.

    - `removed`: nodes of the lowest layer that were taken out; `groups`: nodes (old numbers) that were merged into one each.
    - `report`: sizes, norms and the change of function on the inputs, all steps together.
    - `loss_before`, `loss_after`: ½ mean ‖f* - f‖² on the inputs.
    """

    network: Deep
    removed: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    report: MergeReport
    loss_before: float
    loss_after: float


def prune_unaligned(
    student: Deep,
    teacher: Deep,
    inputs: ArrayLike,
    *,
    threshold: float = RECOVERED,
    tolerance: float = 0.0,
    fold: bool = True,
) -> Pruned:
    """Remove the nodes of the student's lowest layer whose best correlation with a teacher is at most `threshold`, and merge co-linear ones.

    `inputs` (S, d): where correlations and changes are measured, data that the student was not trained on. `tolerance`: distance of unit
    vectors (weights with bias) up to which nodes count as co-linear; 0 merges nothing but exact copies. `fold`: add the mean over `inputs`
    of what removed nodes contributed to the biases of the layer above.
    """
    x = check_inputs(inputs, student.weights[0].shape[1])
    best = align(student, teacher, jnp.asarray(x))[0].best_of_student
    removed = tuple(int(i) for i in np.flatnonzero(best <= threshold))
    if len(removed) == len(best):
        raise ValueError(
            f"All {len(best)} nodes are unaligned at a threshold of {threshold}; train on, or lower the threshold."
        )
    kept = [i for i in range(len(best)) if i not in set(removed)]
    smaller = remove(student, removed) if removed else student
    if fold and removed:
        lost = np.asarray(student.layers(jnp.asarray(x), "relu")[0]).mean(axis=0)[list(removed)]
        bias = smaller.biases[1] + student.weights[1][:, list(removed)] @ jnp.asarray(lost)
        smaller = Deep(smaller.weights, (smaller.biases[0], bias, *smaller.biases[2:]))
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
    return Pruned(joined.network, removed, groups, report, losses[0], losses[1])


def group_sums(student: Deep, *, tolerance: float) -> list[tuple[tuple[int, ...], float]]:
    """Groups of co-linear nodes of the lowest layer, opposite ones included, and ‖Σ v_k ‖w_k‖‖ of each, w_k with its bias.

    This is the jump of the output's slope across the boundary that the nodes of a group share (Tian 2020, Thm 3). Nodes belong together if their
    unit vectors, up to sign, are at most `tolerance` from that of the longest; every node is in one group.
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
