"""Which minima are joined below which loss: the disconnectivity tree of a graph (Becker and Karplus 1997)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.landscape.graph import Graph


@dataclass(frozen=True)
class Basin:
    """A set of minima that are joined below some loss.

    - `minima`: their numbers. `height`: the loss of the saddle that joins the `parts`; that of the minimum for a leaf.
    - `saddle`: the number of that saddle; None for a leaf.
    - `parts`: the basins that meet there; empty for a leaf.

    Minima stand for all their symmetric copies. So a height is the lowest one at which *some* copy of the one is joined
    to some copy of the other, and by symmetry every copy of the one then is.
    """

    minima: tuple[int, ...]
    height: float
    saddle: int | None = None
    parts: tuple[Basin, ...] = ()


def disconnectivity(graph: Graph) -> list[Basin]:
    """The trees of a graph, one for each set of minima that saddles join; the one with the lowest minimum first.

    Saddles are added in the order of their losses. Each joins the sets in which its two descents end. A descent that
    ends at a lower saddle ends in the set of that saddle.
    """
    owner: dict[int, Basin] = {p.number: Basin((p.number,), p.loss) for p in graph.minima}
    for way in sorted(graph.connections, key=lambda c: graph.points[c.saddle].loss):
        saddle = way.saddle
        below = [owner[end] for end in way.ends if end is not None and end in owner]
        if not below:
            continue
        distinct = list(dict.fromkeys(below))
        if len(distinct) == 1:
            owner[saddle] = distinct[0]
            continue
        minima = tuple(sorted(m for basin in distinct for m in basin.minima))
        joined = Basin(minima, graph.points[saddle].loss, saddle, tuple(sorted(distinct, key=_lowest(graph))))
        owner = {number: joined if basin in distinct else basin for number, basin in owner.items()}
        owner[saddle] = joined
    roots = list(dict.fromkeys(owner.values()))
    return sorted(roots, key=_lowest(graph))


def _lowest(graph: Graph):  # type: ignore[no-untyped-def]
    return lambda basin: (graph.points[basin.minima[0]].loss, basin.minima)


def lowest_barrier(graph: Graph, first: int, second: int) -> float:
    """The height at which two minima are joined; inf if they are not."""
    numbers = [p.number for p in graph.minima]
    for number in (first, second):
        if number not in numbers:
            raise ValueError(f"The minima of this graph are {numbers}; received {number}.")
    if first == second:
        return graph.points[first].loss
    basin = next((b for b in disconnectivity(graph) if {first, second} <= set(b.minima)), None)
    if basin is None:
        return math.inf
    while inner := next((b for b in basin.parts if {first, second} <= set(b.minima)), None):
        basin = inner
    return basin.height
