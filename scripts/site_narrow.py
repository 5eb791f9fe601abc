"""Pages on screens of any width: wide tables of text become blocks, lines break where they should, figures open.

A table with four or more columns and a long cell (three with formulas) has columns of a few letters on a phone. It gets
the attribute `data-stack`, and each of its cells the name of its column: `styles/layout.css` then shows one cell below
the other. Tables of numbers stay as they are, and scroll.

A line may not break inside an option (`--out`), a short name or a number with its error (1.0 ± 0.1). Figures open in
full size.
"""

from __future__ import annotations

import html
import re

COLUMNS = 4
"""Tables with fewer columns fit; formulas, which do not break, need one column more."""
LONG = 60
"""Characters of a cell that needs room."""

TABLE = re.compile(r"<table>(.*?)</table>", re.S)
HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.S)
ROW = re.compile(r"<tr>.*?</tr>", re.S)
CELL = re.compile(r"<td\b([^>]*)>(.*?)</td>", re.S)
IMAGE = re.compile(r'(?<!">)<img\b[^>]*\bsrc="([^"]+)"[^>]*/?>')


CODE = re.compile(r"(?<!<pre>)(?<!</span>)<code>([^<]*)</code>")
SHORT = 14
"""Names in code up to this length are never broken."""
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")


def plain(content: str) -> str:
    """The text of an element."""
    return html.unescape(re.sub(r"<[^>]+>", "", content)).strip()


def stacked(table: re.Match[str]) -> str:
    """The table, with its columns' names on its cells if it is a wide table of text."""
    names = [html.escape(plain(name)) for name in HEAD.findall(table[1])]
    if (
        len(names) + ("<math" in table[1]) < COLUMNS
        or max((len(plain(cell)) for _, cell in CELL.findall(table[1])), default=0) < LONG
    ):
        return table[0]

    def named(row: re.Match[str]) -> str:
        columns = iter(names)
        return CELL.sub(lambda cell: f'<td{cell[1]} data-column="{next(columns)}">{cell[2]}</td>', row[0])

    return f"<table data-stack>{ROW.sub(named, table[1])}</table>"


def on_page_content(content: str, **_: object) -> str:
    """Called by MkDocs for the content of each page."""
    content = IMAGE.sub(r'<a class="figure" href="\1">\g<0></a>', TABLE.sub(stacked, content))
    content = re.sub(r"(?<=\d) ± (?=\d)", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}", content)
    return CODE.sub(unbroken, content)


def unbroken(code: re.Match[str]) -> str:
    """Inline code whose options, or which itself if it is one short word, stay on one line."""
    if len(html.unescape(code[1])) <= SHORT and " " not in code[1]:
        return f'<code class="unbroken">{code[1]}</code>'
    return OPTION.sub(r'<span class="unbroken">\g<0></span>', code[0])
