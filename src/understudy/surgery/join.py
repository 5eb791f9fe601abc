"""The inverse of a split: join the parts of a neuron, and remove neurons without effect.

A network is called irreducible if none of its neurons can be joined or removed ("few neurons", Section 2.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from understudy.networks import HiddenLayer
from understudy.networks.hidden import hidden_of
from understudy.surgery.split import Network

SAME = 1e-9
"""Relative distance up to which two incoming vectors are the same, and relative size up to which outgoing weights are
zero; polished points agree to about 1e-14 / least eigenvalue."""


def remove(network: Network, neurons: Sequence[int], *, layer: int = 0) -> Network:
    """Remove neurons from a hidden layer, with their outgoing weights.

    >>> from understudy import TwoLayer
    >>> remove(TwoLayer([[1.0], [2.0]], [3.0, 0.0]), [1]).width
    1
    """
    width = hidden_of(network, layer).width
    wrong = [i for i in neurons if not 0 <= i < width]
    if wrong:
        raise ValueError(f"The layer has neurons 0 to {width - 1}; cannot remove {wrong}.")
    kept = [i for i in range(width) if i not in set(neurons)]
    if not kept:
        raise ValueError(f"All {width} neurons would be removed; a layer keeps at least one.")
    return _rebuilt(network, [[i] for i in kept], layer)


def join_parts(
    network: Network, groups: Sequence[Sequence[int]], *, layer: int = 0, tolerance: float = SAME
) -> Network:
    """Join neurons with the same incoming vector (and bias). The first of each group gets the sum of outgoing weights.

    Neurons in no group stay. Raises if the vectors of a group differ by more than `tolerance` (relative), because
    joining them would change the function.

    >>> from understudy import TwoLayer
    >>> join_parts(TwoLayer([[1.0], [2.0], [1.0]], [3.0, 4.0, 5.0]), [[0, 2]]).outgoing.tolist()
    [8.0, 4.0]
    """
    hidden = hidden_of(network, layer)
    width, rows = hidden.width, hidden.rows
    listed = [i for group in groups for i in group]
    if len(set(listed)) != len(listed) or any(not 0 <= i < width for i in listed):
        raise ValueError(
            f"Groups are disjoint lists of neurons 0 to {width - 1}; received {[list(g) for g in groups]}."
        )
    scale = max(float(np.abs(rows).max()), 1e-300)
    for group in groups:
        gap = float(np.abs(rows[list(group)] - rows[group[0]]).max()) / scale
        if gap > tolerance:
            raise ValueError(
                f"Neurons {list(group)} differ by {gap:.1e} in their incoming vectors, more than {tolerance:.0e}. "
                "Joining them would change the function. Raise tolerance if you want that."
            )
    first = {group[0]: list(group) for group in groups}
    absorbed = {i for group in groups for i in group[1:]}
    return _rebuilt(network, [first.get(i, [i]) for i in range(width) if i not in absorbed], layer)


def irreducible(network: Network, *, layer: int = 0, tolerance: float = SAME) -> Network:
    """The smallest network with the same function that results from joining equal neurons and removing silent ones.

    Neurons with zero outgoing weights are removed after joining, so that parts whose outgoing weights cancel vanish,
    too. One neuron is always kept.

    >>> from understudy import TwoLayer
    >>> irreducible(TwoLayer([[1.0], [1.0], [2.0]], [1.0, 2.0, 0.0])).outgoing.tolist()
    [3.0]
    """
    rows = hidden_of(network, layer).rows
    scale = max(float(np.abs(rows).max()), 1e-300)
    groups: list[list[int]] = []
    for i, row in enumerate(rows):
        for group in groups:
            if np.abs(row - rows[group[0]]).max() <= tolerance * scale:
                group.append(i)
                break
        else:
            groups.append([i])
    joined = join_parts(network, groups, layer=layer, tolerance=tolerance)
    sizes = np.abs(np.asarray(hidden_of(joined, layer).outgoing)).max(axis=1)
    dead = np.flatnonzero(sizes <= tolerance * max(float(sizes.max()), 1e-300))
    return remove(joined, [int(i) for i in dead][: len(sizes) - 1], layer=layer) if len(dead) else joined


def _rebuilt(network: Network, groups: list[list[int]], layer: int) -> Network:
    """The network with one neuron per group: the first one's incoming vector, the sum of outgoing weights."""
    hidden, first = hidden_of(network, layer), np.array([group[0] for group in groups])
    members = np.zeros((len(groups), hidden.width))
    for row, group in enumerate(groups):
        members[row, group] = 1.0
    bias = None if hidden.bias is None else hidden.bias[first]
    joined = HiddenLayer(hidden.incoming[first], bias, jnp.asarray(members) @ hidden.outgoing)
    return network.with_hidden(joined, layer)
