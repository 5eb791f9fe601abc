"""Rows that point the same way: neurons that one neuron can replace. NumPy only."""

from __future__ import annotations

import numpy as np

Groups = list[tuple[int, ...]]
DOUBT = 1e-7
"""Distances from inner products, √(2 - 2 u·v), are off by up to √(4 eps) = 3e-8: nearer pairs are measured again,
exactly."""


def aligned_groups(
    rows: np.ndarray,
    *,
    tolerance: float,
    strength: np.ndarray | None = None,
    signed: bool = False,
    silent: float = float(np.finfo(float).eps),
) -> Groups:
    """Groups of rows (n, d) whose unit vectors are at most `tolerance` apart, singles included, in order of first
    members.

    Each row joins the nearest stronger row that leads a group, so that no chains form. `strength` (n,) is the length of
    a row unless given. Rows with at most the share `silent` of the greatest strength are in no group. With `signed`,
    opposite rows count as aligned. Rows without a neighbour along random directions are singles; for the others the
    function forms one matrix of inner products.

    >>> aligned_groups(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, 0.0]]), tolerance=1e-6)
    [(0, 2), (1,)]
    """
    lengths = np.linalg.norm(rows, axis=1)
    strength = lengths if strength is None else strength
    alive = strength > silent * np.max(strength, initial=0.0)
    order = [int(i) for i in np.argsort(-strength, kind="stable") if alive[i]]
    unit = np.asarray(rows, float) / np.where(lengths > 0, lengths, 1.0)[:, None]
    names = _with_neighbours(unit, tolerance, signed)
    unit, place = unit[names], {name: k for k, name in enumerate(names)}
    near = unit @ unit.T
    if signed:
        near = np.abs(near)
    least = 1 - max(tolerance, DOUBT) ** 2 / 2 - 4 * np.finfo(float).eps
    leads = np.zeros(len(unit), bool)
    members: dict[int, list[int]] = {}
    for i in order:
        leader, k = i, place.get(i)
        if k is not None:
            candidates = np.flatnonzero(leads & (near[k] >= least))
            if len(candidates):
                distances = np.linalg.norm(unit[candidates] - unit[k], axis=1)
                if signed:
                    distances = np.minimum(distances, np.linalg.norm(unit[candidates] + unit[k], axis=1))
                best = int(np.argmin(distances))
                leader = names[candidates[best]] if distances[best] <= tolerance else i
            leads[place[leader]] = True
        members.setdefault(leader, []).append(i)
    return sorted((tuple(sorted(group)) for group in members.values()), key=lambda g: g[0])


DIRECTIONS = 8
"""Random directions along which rows are compared before the quadratic part: eight leave hardly any false neighbour."""


def _with_neighbours(unit: np.ndarray, tolerance: float, signed: bool) -> list[int]:
    """Rows that may have another within `tolerance`: |u·r - v·r| ≤ ‖u - v‖ along any unit vector r."""
    left = np.arange(len(unit))
    draw = np.random.default_rng(0)
    for _ in range(DIRECTIONS):
        direction = draw.standard_normal(unit.shape[1])
        along = unit[left] @ (direction / np.linalg.norm(direction))
        along = np.abs(along) if signed else along
        order = np.argsort(along)
        near = np.diff(along[order]) <= tolerance + 1e-14  # 1e-14: rounding of the inner products
        chosen = np.zeros(len(left), bool)
        chosen[order[1:]] |= near
        chosen[order[:-1]] |= near
        left = left[chosen]
    return [int(i) for i in left]


def groups_of_cosines(cosines: np.ndarray, least: float, alive: np.ndarray) -> Groups:
    """Groups of `alive` rows from a matrix of cosines (n, n). A row joins the first leader with a cosine ≥ `least`.

    >>> groups_of_cosines(np.array([[1.0, 0.2], [0.2, 1.0]]), 0.1, np.array([True, True]))
    [(0, 1)]
    """
    leads = np.zeros(len(cosines), bool)
    members: dict[int, list[int]] = {}
    for i in np.flatnonzero(alive):
        found = np.flatnonzero(leads & (cosines[i] >= least))
        leader = int(found[0]) if len(found) else int(i)
        leads[leader] = True
        members.setdefault(leader, []).append(int(i))
    return [tuple(group) for group in members.values()]
