"""Moving the slack of a triangle-free completely positive matrix along the edges of its graph.

Each edge e = ij of the graph carries a row with squares s_i, s_j at its ends, s_i s_j = A_ij². If s_i grows, the slack
at i shrinks. At the same time s_j = A_ij²/s_i falls, and the slack at j grows. Let every vertex i own one edge, towards
its parent p(i), and set

    s_i = c_i - Σ_(children k) A_ki²/s_k,    c_i = A_ii - (squares of the edges that nobody owns).

A tree is solved from its leaves to the root, where the remaining slack stays. With a cycle of owned edges no slack
remains. Once around the cycle, a Möbius transformation maps s_i to itself. Its attracting fixed point is the dominant
eigenvector of a product of 2 × 2 matrices. (It exists, since slack can only raise s_i, and s_i ≤ A_ii.) This is a
constructive form of Drew, Johnson and Loewy 1994.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

Edge = tuple[int, int]


def absorb_slack(
    matrix: Float[np.ndarray, "N N"], edges: Sequence[Edge], squares: dict[Edge, float]
) -> dict[int, float]:
    """Change `squares` (s_i has the key (i, j)) so that they sum to the diagonal; return {} or {vertex: slack left}.

    The graph is connected and without triangles; Σ_j s_(i,j) ≤ A_ii on entry.
    """
    parent, order, cycle = _own(edges, len(matrix))
    owned = {(i, p) for i, p in parent.items()}
    target = np.diag(matrix).astype(float).copy()
    for i, j in squares:
        if (i, j) not in owned and (j, i) not in owned:
            target[i] -= squares[i, j]
    for i in reversed(order):  # from the leaves towards the cycle or the root
        if i in cycle or i not in parent:
            continue
        p = parent[i]
        squares[i, p] = target[i]
        squares[p, i] = matrix[i, p] ** 2 / target[i]
        target[p] -= squares[p, i]
    if not cycle:
        root = order[0]
        return {root: float(target[root])}
    around = np.eye(2)
    for i in cycle:  # s_i = target_i - A²/s_before, as fractions (u, v) ↦ (target u - A² v, u)
        before = cycle[cycle.index(i) - 1]
        around = np.array([[target[i], -(matrix[before, i] ** 2)], [1.0, 0.0]]) @ around
        around /= np.abs(around).max()
    values, vectors = np.linalg.eig(around)
    u, v = np.real(vectors[:, np.argmax(np.abs(values))])
    square = u / v
    for i in [*cycle, cycle[0]]:  # once more at the first, from the refined last
        before = cycle[cycle.index(i) - 1]
        square = target[i] - matrix[before, i] ** 2 / square
        p = parent[i]
        squares[i, p], squares[p, i] = square, matrix[i, p] ** 2 / square
    return {}


def _own(edges: Sequence[Edge], vertices: int) -> tuple[dict[int, int], list[int], list[int]]:
    """The parent of each vertex, an order with parents before children, and the cycle of parents (empty for a tree).

    Along the cycle each vertex is the parent of the one before it.
    """
    near: dict[int, list[int]] = {i: [] for i in range(vertices)}
    for i, j in edges:
        near[i].append(j)
        near[j].append(i)
    parent, order = _search(near, [0], {0})
    tree = {frozenset(pair) for pair in parent.items()}
    closing = next((e for e in edges if frozenset(e) not in tree), None)
    if closing is None:
        return parent, order, []
    paths = [_to_root(parent, end) for end in closing]
    while len(paths[0]) > 1 and len(paths[1]) > 1 and paths[0][-2] == paths[1][-2]:
        paths = [p[:-1] for p in paths]  # vertices above the meeting point are not part of the cycle
    cycle = paths[0] + paths[1][:-1][::-1]
    parent, order = _search(near, cycle, set(cycle))
    parent |= {i: cycle[(r + 1) % len(cycle)] for r, i in enumerate(cycle)}
    return parent, order, cycle


def _search(near: dict[int, list[int]], queue: list[int], seen: set[int]) -> tuple[dict[int, int], list[int]]:
    parent: dict[int, int] = {}
    order = list(queue)
    for i in order:  # `order` grows during this loop
        for j in near[i]:
            if j not in seen:
                seen.add(j)
                parent[j] = i
                order.append(j)
    return parent, order


def _to_root(parent: dict[int, int], vertex: int) -> list[int]:
    path = [vertex]
    while path[-1] in parent:
        path.append(parent[path[-1]])
    return path
