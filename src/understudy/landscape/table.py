"""A graph as a table, as text and as HTML."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from understudy.tables import html_table, text_table

if TYPE_CHECKING:
    from understudy.landscape.graph import Completeness, Connection, CriticalPoint, Graph

LEGEND = (
    "orbit: number of symmetric copies; family: dimension of the set of equivalent networks around the point; found: "
    "searches that ended here; joins: where both descents from a saddle of index 1 end."
)
LEFT = (1, 3, 5)
"""Columns of words; the others are numbers."""


def columns(graph: Graph) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the table, what matters most first: narrow screens leave out the last columns."""
    ways: dict[int, list[str]] = {}
    for way in graph.connections:
        ways.setdefault(way.saddle, []).append(joins(way))
    heads = ["#", "verdict", "index", "label", "loss", "joins", "orbit", "found", "family", "|∇L|"]
    return heads, [_row(point, ", ".join(ways.get(point.number, []))) for point in graph.points]


def _row(point: CriticalPoint, ways: str) -> list[str]:
    family = str(point.family) if point.family else "degenerate" if point.degenerate else ""
    orbit = "?" if point.orbit is None else _short(point.orbit)
    return [
        str(point.number),
        point.kind,
        _indices(point),
        point.label,
        f"{point.loss:.9f}",
        ways,
        orbit if not point.family else f"({orbit})",
        str(point.found) if point.found else f"({point.reached})",
        family,
        f"{point.certificate.gradient_norm:.0e}",
    ]


def _short(count: int) -> str:
    """A number of at most seven characters.

    >>> _short(44800), _short(3715891200)
    ('44800', '3.7e9')
    """
    return str(count) if count < 10**7 else f"{count:.1e}".replace("e+0", "e").replace("e+", "e")


def _indices(point: CriticalPoint) -> str:
    """The index, or the range of indices of a family."""
    low, high = min(point.indices), max(point.indices)
    return str(point.index) if low == high else f"{low}-{high}"


def joins(way: Connection) -> str:
    """The two ends of a connection in a few characters."""
    return " - ".join("∞" if end is None else str(end) for end in way.ends) + ("" if way.certified else " ?")


def told(graph: Graph) -> list[str]:
    """Sentences on how complete the list is."""
    return [*_counts(graph.completeness), *graph.notes]


def _counts(c: Completeness) -> list[str]:
    others = ", ".join(f"{count} {how}" for how, count in c.endings.items())
    rest = f" ({others})" if others else ""
    known = max(c.estimate - c.classes, 0.0)
    sentences = [
        f"{c.converged} of {c.starts} searches converged{rest}, to {c.classes} classes, {c.once} of them found once.",
        f"Chao's estimate of what such searches would still find: {known:.1f} classes.",
    ]
    if c.balanced is not None:
        verdict = "as it must be" if c.balanced else f"but it must be {c.expected}: the list is not complete"
        sentences.append(f"Morse count Σ(-1)^index = {c.euler}, {verdict} ({c.reason}).")
    else:
        sentences.append(f"No Morse count: {c.reason}.")
    return sentences


def as_text(graph: Graph) -> str:
    """The table in plain characters."""
    return "\n".join([title(graph), text_table(*columns(graph), LEFT), *told(graph)])


def as_html(graph: Graph) -> str:
    """The table for notebooks."""
    notes = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in told(graph))
    table = html_table(*columns(graph), LEFT)
    return f"<p>{html.escape(title(graph))}</p>{table}{notes}<p><small>{html.escape(LEGEND)}</small></p>"


def title(graph: Graph) -> str:
    """The task in one line."""
    about = ", ".join(f"{name} {value}" for name, value in graph.about.items())
    count = len(graph.points)
    return f"{count} critical point{'s' * (count != 1)} up to symmetry" + (f": {about}" if about else "")
