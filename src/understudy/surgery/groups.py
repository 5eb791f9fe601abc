"""Rows that point the same way: neurons that one neuron can stand for."""

from __future__ import annotations

import numpy as np

Groups = list[tuple[int, ...]]


def aligned_groups(
    rows: np.ndarray,
    *,
    tolerance: float,
    strength: np.ndarray | None = None,
    signed: bool = False,
    silent: float = float(np.finfo(float).eps),
) -> Groups:
    """Groups of rows (n, d) whose unit vectors are at most `tolerance` apart, singles included, in order of first members.

    Each row joins the nearest of the stronger ones that lead a group: no chains, whatever the tolerance. `strength` (n,) is the length of a
    row unless given; rows with at most the share `silent` of the greatest strength are in no group. With `signed` opposite rows count as aligned.

    >>> aligned_groups(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, 0.0]]), tolerance=1e-6)
    [(0, 2), (1,)]
    """
    lengths = np.linalg.norm(rows, axis=1)
    strength = lengths if strength is None else strength
    alive = strength > silent * np.max(strength, initial=0.0)
    unit = rows / np.where(lengths > 0, lengths, 1.0)[:, None]
    leaders: list[int] = []
    members: dict[int, list[int]] = {}
    for i in np.argsort(-strength, kind="stable"):
        if not alive[i]:
            continue
        distances = np.linalg.norm(unit[leaders] - unit[i], axis=1)
        if signed:
            distances = np.minimum(distances, np.linalg.norm(unit[leaders] + unit[i], axis=1))
        near = np.flatnonzero(distances <= tolerance)
        leader = leaders[near[np.argmin(distances[near])]] if len(near) else int(i)
        if leader == i:
            leaders.append(int(i))
        members.setdefault(leader, []).append(int(i))
    return sorted((tuple(sorted(group)) for group in members.values()), key=lambda g: g[0])
