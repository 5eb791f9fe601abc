"""The pages that `understudy reproduce` writes: every claim with both values and its findings, in one file that
needs no network.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from understudy.files import write_atomically
from understudy.papers.claim import Claim, Scale
from understudy.papers.ledger import Entry
from understudy.papers.registry import claims_of, find_paper
from understudy.papers.result import Result, package_version
from understudy.papers.view import claim_view, counts, render
from understudy.papers.workspace import Workspace

LARGEST_SVG = 1_500_000  # bytes; a scatter of many points is smaller, and faster to show, as PNG


def write_page(
    workspace: Workspace,
    claims: Sequence[Claim],
    scale: Scale,
    figure_errors: Mapping[str, str] | None = None,
) -> Path:
    """Write the paper's page from what is stored in the workspace.

    A claim without a result at `scale` shows the one at the other scale where there is one.
    """
    paper = find_paper(workspace.paper)
    views = []
    for claim in claims:
        result = _stored(workspace, claim, scale)
        figure = _figure(workspace, claim, result) if result else ""
        error = (figure_errors or {}).get(claim.id, "")
        views.append(claim_view(Entry.of(claim), result, figure=figure, figure_error=error))
    page = _render(
        "page.html",
        title=f"{paper.handle}: claims and findings",
        paper=paper,
        scale=scale,
        views=views,
        counts=counts(views),
        spent=sum(view["result"].seconds for view in views if view["result"]),
    )
    return write_atomically(workspace.page, page)


def write_index(out: Path, papers: Sequence[str], results: Mapping[str, Iterable[Result]]) -> Path:
    """Write the page with links to the papers' pages in the same directory."""
    listed = []
    for handle in papers:
        by_claim = {result.claim: result for result in results[handle]}
        views = [claim_view(Entry.of(c), by_claim[c.id]) for c in claims_of(handle) if c.id in by_claim]
        listed.append((find_paper(handle), counts(views)))
    return write_atomically(out / "index.html", _render("index.html", title="Executable papers", papers=listed))


def _render(template: str, **values: object) -> str:
    written = datetime.now(UTC).isoformat(sep=" ", timespec="minutes")[:16]
    style = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
    return render(template, style=style, written=written, version=package_version(), **values)


def _stored(workspace: Workspace, claim: Claim, scale: Scale) -> Result | None:
    other: Scale = "quick" if scale == "full" else "full"
    stored = workspace.load(claim, scale) or workspace.load(claim, other)
    return stored[0] if stored else None


def _figure(workspace: Workspace, claim: Claim, result: Result) -> str:
    """The figure as a `data:` address: SVG in an image of its own, so that no two figures' ids can meet."""
    svg, png = (workspace.figure(claim, result.scale, suffix) for suffix in (".svg", ".png"))
    if claim.figure is None or not svg.exists():
        return ""
    path, kind = (svg, "svg+xml") if svg.stat().st_size <= LARGEST_SVG else (png, "png")
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
