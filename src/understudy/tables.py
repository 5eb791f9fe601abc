"""Tables as plain text for screens, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from html import escape
from typing import Any


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


class Printed:
    """A dataclass that prints as a table with sentences below it: as text on screens, as HTML in notebooks."""

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        """Heads and cells of the table."""
        raise NotImplementedError

    def words(self) -> list[str]:
        """What the numbers mean, in sentences."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload]

    def __str__(self) -> str:
        return "\n".join([text_table(*self._rows()), *self.words()])

    def _repr_html_(self) -> str:
        return html_table(*self._rows()) + "".join(f"<p>{word}</p>" for word in self.words())
