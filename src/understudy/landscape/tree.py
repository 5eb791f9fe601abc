"""Which minima are joined below which loss: the disconnectivity tree of a graph (Becker and Karplus 1997)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.landscape.graph import Graph


@dataclass(frozen=True)
class Branch:
    """A set of minima that are joined below some loss.

    - `minima`: their numbers. `height`: the loss of the saddle that joins the `parts`; that of the minimum for a leaf.
    - `saddle`: the number of that saddle; None for a leaf.
    - `parts`: the branches that meet there; empty for a leaf.

    Minima stand for all their symmetric copies. So a height is the lowest one at which *some* copy of the one is joined
    to some copy of the other, and by symmetry every copy of the one then is.
    """

    minima: tuple[int, ...]
    height: float
    saddle: int | None = None
    parts: tuple[Branch, ...] = ()


def disconnectivity(graph: Graph) -> list[Branch]:
    """The trees of a graph, one for each set of minima that saddles join; the one with the lowest minimum first.

    Saddles are added in the order of their losses. Each joins the sets in which its two descents end. A descent that
    ends at a lower saddle ends in the set of that saddle.
    """
    owner: dict[int, Branch] = {p.number: Branch((p.number,), p.loss) for p in graph.minima}
    for way in sorted(graph.connections, key=lambda c: graph.points[c.saddle].loss):
        saddle = way.saddle
        below = [owner[end] for end in way.ends if end is not None and end in owner]
        if not below:
            continue
        distinct = list(dict.fromkeys(below))
        if len(distinct) == 1:
            owner[saddle] = distinct[0]
            continue
        minima = tuple(sorted(m for branch in distinct for m in branch.minima))
        joined = Branch(minima, graph.points[saddle].loss, saddle, tuple(sorted(distinct, key=_lowest(graph))))
        owner = {number: joined if branch in distinct else branch for number, branch in owner.items()}
        owner[saddle] = joined
    roots = list(dict.fromkeys(owner.values()))
    return sorted(roots, key=_lowest(graph))


def _lowest(graph: Graph):  # type: ignore[no-untyped-def]
    return lambda branch: (graph.points[branch.minima[0]].loss, branch.minima)


def lowest_barrier(graph: Graph, first: int, second: int) -> float:
    """The height at which two minima are joined; inf if they are not."""
    numbers = [p.number for p in graph.minima]
    for number in (first, second):
        if number not in numbers:
            raise ValueError(f"The minima of this graph are {numbers}; received {number}.")
    if first == second:
        return graph.points[first].loss
    branch = next((b for b in disconnectivity(graph) if {first, second} <= set(b.minima)), None)
    if branch is None:
        return math.inf
    while inner := next((b for b in branch.parts if {first, second} <= set(b.minima)), None):
        branch = inner
    return branch.height
