"""Make the site independent of other hosts: the plugin `offline` asks one for a script that `styles/worker.js`
replaces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

FOREIGN = re.compile(r'<script src="https?://[^"]*"></script>')


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Put our own script where the page would load one from elsewhere."""
    from mkdocs.utils import get_relative_url

    return FOREIGN.sub(f'<script src="{get_relative_url("styles/worker.js", page.url)}"></script>', output)


def on_post_template(output_content: str, **_: object) -> str:
    """Pages without a place of their own, such as 404, do without the search."""
    return FOREIGN.sub("", output_content)
