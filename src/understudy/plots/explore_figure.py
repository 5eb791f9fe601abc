"""The figure of an exploration: the graph of its points on the left, the disconnectivity tree on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.plots.style import COLOURS, given_axes, house_style, new_figure

if TYPE_CHECKING:
    from understudy.landscape import Branch, Graph

MOST_LABELS = 40
"""Up to this many points are labelled."""


def explore(graph: Graph, ax: Any = None, axes: Any = None) -> Any:
    """Draw a graph: points by index and loss, lines from saddles to where they lead, and the disconnectivity tree.

    With `axes` (two) both are drawn there; with `ax` only the graph. Returns the figure.
    """
    with house_style():
        if ax is not None:
            draw_graph(graph, ax)
            return ax.figure
        if axes is None:
            figure = new_figure(11.5, 5.2)
            figure.suptitle(", ".join(f"{name} {value}" for name, value in graph.about.items() if name != "task"))
            axes = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
        left, right = given_axes(axes, 2)
        draw_graph(graph, left)
        draw_tree(graph, right)
        return left.figure


def draw_graph(graph: Graph, ax: Any) -> Any:
    """Points over (index, loss). Points of equal index are spread out; lines join saddles of index 1 to their ends."""
    places = _places(graph)
    for way in graph.connections:
        for end in way.ends:
            if end is not None:
                (x, y), (u, v) = places[way.saddle], places[end]
                ax.plot([x, u], [y, v], color="0.6", lw=1.2, ls="-" if way.certified else ":", zorder=1)
    for point in graph.points:
        x, y = places[point.number]
        colour = COLOURS[0] if point.kind == "minimum" else COLOURS[1] if point.index else COLOURS[3]
        ax.plot(x, y, "o", ms=8, color=colour, mfc=colour if point.isolated else "white", mew=1.6, zorder=3)
        if len(graph.points) <= MOST_LABELS:
            words = f"{point.number}  {point.label}" if point.label else str(point.number)
            # Lines leave minima to the right, so their labels are on the left.
            side: dict[str, Any] = {"xytext": (8, 0)} if point.index else {"xytext": (-8, 0), "ha": "right"}
            ax.annotate(words, (x, y), textcoords="offset points", fontsize=8, va="center", zorder=4, **side)
    highest = max(p.index for p in graph.points)
    ax.set(xlabel="index: number of directions of descent", ylabel="loss", xlim=(-0.9, highest + 1.0))
    ax.set_xticks(range(highest + 1))
    ax.set_title("filled: isolated, open: family or degenerate", fontsize=9.5)
    _scale(ax, [p.loss for p in graph.points])
    return ax


def _places(graph: Graph) -> dict[int, tuple[float, float]]:
    """Where each point is drawn: at its index and loss, and a little to the right of close neighbours."""
    places: dict[int, tuple[float, float]] = {}
    losses = np.array([p.loss for p in graph.points])
    near = 0.03 * max(float(np.ptp(losses)), 1e-12)
    for point in graph.points:
        beside = sum(1 for q in graph.points[: point.number] if q.index == point.index and point.loss - q.loss < near)
        places[point.number] = (point.index + 0.12 * beside, point.loss)
    return places


def draw_tree(graph: Graph, ax: Any) -> Any:
    """The disconnectivity tree: each minimum hangs at its loss and meets others at the saddle that joins them."""
    roots = graph.tree()
    top = max((b.height for b in roots), default=1.0)
    low = min((p.loss for p in graph.minima), default=0.0)
    margin = 0.08 * max(top - low, 1e-3 * max(abs(top), 1e-12))
    position = 0.0
    for root in roots:
        x, position = _draw_branch(graph, root, position, ax)
        ax.plot([x, x], [root.height, top + margin], color="black", lw=1.4)
    ax.set(xlim=(-0.7, max(position - 0.3, 0.7)), ylabel="loss", xticks=[])
    ax.grid(visible=False, axis="x")
    ax.set_title("which minima are joined below which loss", fontsize=9.5)
    ax.margins(y=0.12)
    return ax


def _draw_branch(graph: Graph, branch: Branch, position: float, ax: Any) -> tuple[float, float]:
    """Draw a branch from `position` to the right; returns where it hangs and the next free position."""
    if not branch.parts:
        point = graph.points[branch.minima[0]]
        ax.plot(position, point.loss, "o", ms=7, color=COLOURS[0], zorder=3)
        words = f"{point.number}  {point.label}" if point.label else str(point.number)
        ax.annotate(
            words, (position, point.loss), xytext=(0, -9), textcoords="offset points", fontsize=8, ha="center", va="top"
        )
        return position, position + 1.0
    hangs = []
    for part in branch.parts:
        x, position = _draw_branch(graph, part, position, ax)
        ax.plot([x, x], [part.height, branch.height], color="black", lw=1.4, zorder=2)
        hangs.append(x)
    ax.plot([min(hangs), max(hangs)], [branch.height] * 2, color="black", lw=1.4, zorder=2)
    middle = float(np.mean([min(hangs), max(hangs)]))
    ax.annotate(
        f"saddle {branch.saddle}",
        (middle, branch.height),
        xytext=(6, 3),
        textcoords="offset points",
        fontsize=8,
        color=COLOURS[1],
    )
    return middle, position


def _scale(ax: Any, losses: list[float]) -> None:
    """A logarithmic axis where losses differ by orders of magnitude and none is zero."""
    positive = [x for x in losses if x > 0]
    if len(positive) == len(losses) and max(losses) > 30 * min(losses) and min(losses) > 1e-12:
        ax.set_yscale("log")
    ax.margins(y=0.08)
