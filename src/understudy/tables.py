"""Tables as plain text for screens, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Columns wide enough for their entries; those in `left` are aligned to the left, the others to the right.

    >>> print(text_table(["layer", "width"], [["fc1", "64"]]))
    layer  width
    fc1       64
    """
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    pads = [str.ljust if i in left else str.rjust for i in range(len(heads))]
    return "\n".join(
        "  ".join(pad(cell, width) for pad, cell, width in zip(pads, line, widths, strict=True)).rstrip()
        for line in lines
    )


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """The same as an HTML table."""
    style = [f'style="text-align:{"left" if i in left else "right"}"' for i in range(len(heads))]

    def row(tag: str, cells: Sequence[str]) -> str:
        inner = "".join(f"<{tag} {s}>{escape(cell)}</{tag}>" for s, cell in zip(style, cells, strict=True))
        return f"<tr>{inner}</tr>"

    body = "".join(row("td", cells) for cells in rows)
    return f"<table><thead>{row('th', heads)}</thead><tbody>{body}</tbody></table>"
