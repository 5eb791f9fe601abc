"""Cliques of small graphs: edge covers, and edges of which no two lie in one clique. Exact, by integer programs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool
from scipy.optimize import Bounds, LinearConstraint, milp

Edge = tuple[int, int]


def edges_of(joined: Bool[np.ndarray, "N N"]) -> tuple[Edge, ...]:
    """The edges i < j of a graph."""
    return tuple((int(i), int(j)) for i, j in np.argwhere(np.triu(joined)))


def is_triangle_free(joined: Bool[np.ndarray, "N N"]) -> bool:
    """Whether no three vertices are joined with each other."""
    a = joined.astype(int)
    return not np.any((a @ a)[joined])


def fit_in_one_clique(joined: Bool[np.ndarray, "N N"], e: Edge, f: Edge) -> bool:
    """Whether the ends of two edges are all joined with each other."""
    ends = sorted({*e, *f})
    return all(joined[i, j] for r, i in enumerate(ends) for j in ends[:r])


def incompatible_edges(joined: Bool[np.ndarray, "N N"]) -> tuple[Edge, ...]:
    """A largest set of edges of which no two lie in one clique (integer program); all edges if there is no triangle."""
    edges = edges_of(joined)
    if is_triangle_free(joined):
        return edges
    pairs = [(r, s) for r in range(len(edges)) for s in range(r) if fit_in_one_clique(joined, edges[r], edges[s])]
    rows = np.zeros((len(pairs), len(edges)))
    for p, (r, s) in enumerate(pairs):
        rows[p, r] = rows[p, s] = 1.0
    found = milp(
        -np.ones(len(edges)),
        constraints=LinearConstraint(rows, -np.inf, 1.0),
        integrality=np.ones(len(edges)),
        bounds=Bounds(0, 1),
    )
    return tuple(e for e, chosen in zip(edges, found.x, strict=True) if chosen > 0.5)


def clique_cover(joined: Bool[np.ndarray, "N N"]) -> int:
    """The least number of cliques that cover all edges, by an integer program over the maximal cliques."""
    edges = edges_of(joined)
    if not edges:
        return 0
    cliques = list(_maximal_cliques(joined, frozenset(), frozenset(range(len(joined))), frozenset()))
    covers = np.array([[float(i in c and j in c) for c in cliques] for i, j in edges])
    found = milp(
        np.ones(len(cliques)),
        constraints=LinearConstraint(covers, 1.0, np.inf),
        integrality=np.ones(len(cliques)),
        bounds=Bounds(0, 1),
    )
    return round(found.fun)


def _maximal_cliques(
    joined: Bool[np.ndarray, "N N"], clique: frozenset[int], candidates: frozenset[int], done: frozenset[int]
) -> Iterable[frozenset[int]]:
    """All maximal cliques, by the algorithm of Bron and Kerbosch (1973) with a pivot."""
    if not candidates and not done:
        yield clique
        return
    near = {v: frozenset(np.flatnonzero(joined[v]).tolist()) for v in candidates | done}
    pivot = max(near, key=lambda v: (len(near[v] & candidates), -v))
    for v in sorted(candidates - near[pivot]):
        yield from _maximal_cliques(joined, clique | {v}, candidates & near[v], done & near[v])
        candidates, done = candidates - {v}, done | {v}
