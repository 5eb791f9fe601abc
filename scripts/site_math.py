"""Typeset the formulas of the documentation as MathML when the site is built: nothing is fetched when a page is read.

Pages write $x$ or $$x$$ in LaTeX, which forges show as formulas, too.
"""

from __future__ import annotations

import html
import re

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content: str, **_: object) -> str:
    """Replace what the Markdown extension arithmatex has marked."""
    content = INLINE.sub(lambda found: _typeset(found[1], "inline"), content)
    return DISPLAY.sub(lambda found: f'<div class="formula">{_typeset(found[1], "block")}</div>', content)


def _typeset(latex: str, display: str) -> str:
    from latex2mathml.converter import convert

    return convert(html.unescape(latex.strip()), display=display)
