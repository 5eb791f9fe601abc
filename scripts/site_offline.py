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


def on_post_template(output_content: str, template_name: str, **_: object) -> str:
    """Leave out the page 404: it loads its styles from the root of a host, which pages on disk do not have."""
    return "" if template_name == "404.html" else output_content
