"""Pages of the site that come from the ledger: one per paper, with every claim, both values and its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.site_figures import image, shown
from understudy.papers.ledger import entries
from understudy.papers.registry import PAPERS, Paper
from understudy.papers.view import claim_view, render

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages when the site is built."""
    from mkdocs.structure.files import File

    for handle, paper in PAPERS.items():
        files.append(File.generated(config, f"papers/{handle}.md", content=page(paper)))
    return files


def page(paper: Paper) -> str:
    """The page of one paper, in Markdown."""
    views = []
    for entry in entries(paper.handle):
        drawn = shown(entry)
        figure = f"../images/papers/{entry.paper}/{image(entry).name}" if drawn else ""
        views.append(claim_view(entry, entry.best, shown=drawn, figure=figure))
    return render("paper.md", paper=paper, views=views)
