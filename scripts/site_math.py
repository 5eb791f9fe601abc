"""Typeset the formulas of the documentation as MathML when the site is built: nothing is fetched when a page is read.

Pages write $x$ or $$x$$ in LaTeX, which forges show as formulas, too.
"""

from __future__ import annotations

import html
import re

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
PRIMES = re.compile(r"<mrow>((?:<mi>&#x02032;</mi>)+)</mrow>")
SIGNS = ("′", "″", "‴", "⁗")


def on_page_content(content: str, **_: object) -> str:
    """Replace what the Markdown extension arithmatex has marked."""
    content = INLINE.sub(lambda found: _typeset(found[1], "inline"), content)
    return DISPLAY.sub(lambda found: f'<div class="formula">{_typeset(found[1], "block")}</div>', content)


def _typeset(latex: str, display: str) -> str:
    from latex2mathml.converter import convert

    return PRIMES.sub(_primes, convert(html.unescape(latex.strip()), display=display))


def _primes(found: re.Match[str]) -> str:
    """One sign for all primes. It is small and raised already, so a superscript makes it tiny and lifts it too far."""
    sign = SIGNS[found[1].count("</mi>") - 1]
    return f'<mpadded height="0.7em" voffset="-0.55em"><mo class="prime" lspace="0" rspace="0">{sign}</mo></mpadded>'
