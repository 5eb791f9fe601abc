"""Tables as plain text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns wide enough for their entries, the first to the left, the others to the right.

    >>> print(text_table(["layer", "width"], [["fc1", "64"]]))
    layer  width
    fc1       64
    """
    lines = [list(heads), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as an HTML table."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
