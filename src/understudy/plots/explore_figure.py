"""The figure of an exploration: the graph of its points on the left, the disconnectivity tree on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.plots.style import COLOURS, given_axes, house_style, new_figure

if TYPE_CHECKING:
    from understudy.landscape import Basin, CriticalPoint, Graph

MOST_LABELS, MOST_LISTED = 8, 30
"""Up to this many points are labelled beside them, and up to this many in a list; of more, only the lowest."""

MOST_TICKS = 12
"""Up to this index every index has a tick."""


def explore(graph: Graph, ax: Any = None, axes: Any = None) -> Any:
    """Draw a graph: points by index and loss, lines from saddles to where they lead, and the disconnectivity tree.

    With `axes` (two) both are drawn there; with `ax` only the graph. Returns the figure.
    """
    with house_style():
        if ax is not None:
            draw_graph(graph, ax)
            return ax.figure
        if axes is None:
            listed = len(graph.points) > MOST_LABELS
            figure = new_figure(14.0 if listed else 11.5, 5.2)
            figure.suptitle(", ".join(f"{name} {value}" for name, value in graph.about.items() if name != "task"))
            axes = figure.subplots(1, 2 + listed, width_ratios=(1.25, 1.0, 0.7)[: 2 + listed])
            if listed:
                draw_list(graph, axes[2])
                axes = axes[:2]
        left, right = given_axes(axes, 2)
        draw_graph(graph, left)
        draw_tree(graph, right)
        return left.figure


def draw_list(graph: Graph, ax: Any) -> Any:
    """The numbers and labels of the points, for graphs with too many of them to label in place."""
    points = graph.points[:MOST_LISTED]
    rows = [f"{p.number:>3}  {p.label}" for p in points]
    if len(graph.points) > len(points):
        rows.append(f"…  {len(graph.points) - len(points)} more")
    ax.axis("off")
    size = 8.5 if len(rows) <= 24 else 7.0
    ax.text(0.0, 1.0, "\n".join(rows), va="top", fontsize=size, family="monospace", transform=ax.transAxes)
    return ax


def draw_graph(graph: Graph, ax: Any) -> Any:
    """Points over (index, loss above the lowest). Points of equal index are spread out; lines join saddles to ends."""
    places = _places(graph)
    for way in graph.connections:
        for end in way.ends:
            if end is not None:
                (x, y), (u, v) = places[way.saddle], places[end]
                ax.plot([x, u], [y, v], color="0.6", lw=1.2, ls="-" if way.certified else ":", zorder=1)
    named = _named(graph)
    for point in graph.points:
        x, y = places[point.number]
        colour = COLOURS[0] if point.kind == "minimum" else COLOURS[1] if point.index else COLOURS[3]
        ax.plot(x, y, "o", ms=8, color=colour, mfc=colour if point.isolated else "white", mew=1.6, zorder=3)
        if point.number in named:
            words = _words(point, len(graph.points) <= MOST_LABELS)
            # Lines leave minima to the right, so their labels are on the left.
            side: dict[str, Any] = {"xytext": (8, 0)} if point.index else {"xytext": (-8, 0), "ha": "right"}
            if len(graph.points) > MOST_LABELS and point.index:
                side = {"xytext": (0, 9), "ha": "center"}
            ax.annotate(words, (x, y), textcoords="offset points", fontsize=8, va="center", zorder=4, **side)
    highest, lowest = max(p.index for p in graph.points), _lowest(graph)
    above = f"loss above the lowest, {lowest:.6g}" if lowest else "loss"
    ax.set(
        xlabel="index: number of directions of descent", ylabel=above, xlim=(-max(0.9, 0.06 * highest), highest + 1.0)
    )
    ax.set_xticks(range(0, highest + 1, 1 + highest // MOST_TICKS))
    ax.set_title("filled: isolated, open: family or degenerate", fontsize=9.5)
    _scale(ax, [p.loss - lowest for p in graph.points])
    return ax


def _lowest(graph: Graph) -> float:
    """The least loss, from which heights are drawn; zero if it is zero up to rounding."""
    losses = [p.loss for p in graph.points]
    return min(losses) if min(losses) > 1e-9 * max(losses) else 0.0


def _named(graph: Graph) -> set[int]:
    """Points with a number beside them: all, or if there are many, the minima and the saddles that lead to them."""
    if len(graph.points) <= MOST_LISTED:
        return {p.number for p in graph.points}
    ways = {n for c in graph.connections for n in (c.saddle, *c.ends) if n is not None}
    return {p.number for p in graph.minima} | ways


def _places(graph: Graph) -> dict[int, tuple[float, float]]:
    """Where each point is drawn: at its index and its height above the lowest, to the right of close neighbours."""
    places: dict[int, tuple[float, float]] = {}
    above = np.array([p.loss for p in graph.points]) - _lowest(graph)
    heights = _drawn(above, _threshold(above))
    near = 0.06 * max(float(np.ptp(heights)), 1e-12)
    for i, point in enumerate(graph.points):
        beside = sum(q.index == point.index and heights[i] - heights[j] < near for j, q in enumerate(graph.points[:i]))
        places[point.number] = (point.index + 0.16 * beside, float(above[i]))
    return places


def _words(point: CriticalPoint, few: bool) -> str:
    """A point's number, with its label if there are few."""
    return f"{point.number}  {point.label}" if few and point.label else str(point.number)


def draw_tree(graph: Graph, ax: Any) -> Any:
    """The disconnectivity tree: each minimum hangs at its loss and meets others at the saddle that joins them."""
    roots = graph.tree()
    top = max((b.height for b in roots), default=1.0)
    low = min((p.loss for p in graph.minima), default=0.0)
    margin = 0.08 * max(top - low, 1e-3 * max(abs(top), 1e-12))
    position = 0.0
    for root in roots:
        x, position = _draw_basin(graph, root, position, ax)
        ax.plot([x, x], [root.height, top + margin], color="black", lw=1.4)
    ax.set(xlim=(-0.7, max(position - 0.3, 0.7)), ylabel="loss", xticks=[])
    ax.grid(visible=False, axis="x")
    ax.set_title("which minima are joined below which loss", fontsize=9.5)
    ax.margins(y=0.12)
    return ax


def _draw_basin(graph: Graph, basin: Basin, position: float, ax: Any) -> tuple[float, float]:
    """Draw a basin from `position` to the right; returns where it hangs and the next free position."""
    if not basin.parts:
        point = graph.points[basin.minima[0]]
        ax.plot(position, point.loss, "o", ms=7, color=COLOURS[0], zorder=3)
        ax.annotate(
            _words(point, len(graph.minima) <= MOST_LABELS // 2),
            (position, point.loss),
            xytext=(0, -9),
            textcoords="offset points",
            fontsize=8,
            ha="center",
            va="top",
        )
        return position, position + 1.0
    hangs = []
    for part in basin.parts:
        x, position = _draw_basin(graph, part, position, ax)
        ax.plot([x, x], [part.height, basin.height], color="black", lw=1.4, zorder=2)
        hangs.append(x)
    ax.plot([min(hangs), max(hangs)], [basin.height] * 2, color="black", lw=1.4, zorder=2)
    middle = float(np.mean([min(hangs), max(hangs)]))
    ax.annotate(
        f"saddle {basin.saddle}",
        (middle, basin.height),
        xytext=(6, 3),
        textcoords="offset points",
        fontsize=8,
        color=COLOURS[1],
    )
    return middle, position


def _threshold(losses: np.ndarray) -> float | None:
    """The least positive loss, if losses differ by orders of magnitude: linear axis below, logarithmic above."""
    positive = losses[losses > 1e-12 * max(float(losses.max(initial=0.0)), 1e-300)]
    return float(positive.min()) if len(positive) and positive.max() > 30 * positive.min() else None


def _drawn(losses: np.ndarray, threshold: float | None) -> np.ndarray:
    """Heights on the axis that `_scale` chooses, up to a factor."""
    if threshold is None:
        return losses
    share = losses / threshold
    return np.where(share > 1, 1 + np.log10(np.maximum(share, 1.0)), share)


def _scale(ax: Any, losses: list[float]) -> None:
    """An axis that is logarithmic above the least positive loss, where losses differ by orders of magnitude."""
    threshold = _threshold(np.asarray(losses))
    if threshold is not None:
        ax.set_yscale("symlog", linthresh=threshold, linscale=0.5)
        powers = np.arange(np.ceil(np.log10(threshold)), np.floor(np.log10(max(losses))) + 1)
        ax.set_yticks(
            [0.0, *10.0 ** powers[:: 1 + len(powers) // MOST_TICKS]]
        )  # the default has some below `threshold`
    ax.margins(y=0.08)
