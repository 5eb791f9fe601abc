"""The page: every claim of a paper, both values, verdict and figure, in one file that needs no network."""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from understudy.files import write_atomically
from understudy.papers.check import Check
from understudy.papers.claim import Claim, Scale
from understudy.papers.measurement import MARKS, STATUSES, Status
from understudy.papers.registry import Paper, find_paper
from understudy.papers.result import Result, package_version
from understudy.papers.values import Json, duration, jsonable, text
from understudy.papers.workspace import Workspace

LARGEST_SVG = 1_500_000  # bytes; a scatter of many points is smaller, and faster to show, as PNG
LONGEST_SHOWN = 300  # characters of a value before it is folded away


def write_page(
    workspace: Workspace,
    claims: Sequence[Claim],
    scale: Scale,
    figure_errors: Mapping[str, str] | None = None,
) -> Path:
    """Write the paper's page from what is stored in the workspace.

    A claim without a result at ``scale`` shows the one at the other scale where there is one.
    """
    results = {claim.id: _stored(workspace, claim, scale) for claim in claims}
    paper = find_paper(workspace.paper)
    body = [
        _header(paper, scale, results.values()),
        "<main>",
        _overview(claims, results),
        *(_section(workspace, claim, results[claim.id], (figure_errors or {}).get(claim.id, "")) for claim in claims),
        _footer(),
        "</main>",
    ]
    write_atomically(workspace.page, _document(f"{paper.handle}: claims and verdicts", body).encode())
    return workspace.page


def write_index(out: Path, papers: Sequence[str], results: Mapping[str, Iterable[Result]]) -> Path:
    """Write the page that leads to the papers' pages in the same directory."""
    rows = []
    for paper in map(find_paper, papers):
        counts = Counter(result.status for result in results[paper.handle])
        link = f'<a href="{escape(paper.handle)}/index.html">{escape(paper.handle)}</a>'
        rows.append(
            f'<tr><td class="name">{link}</td><td>{escape(paper.title)}<br>'
            f'<span class="fine">{escape(paper.authors)}</span></td><td>{_counted(counts)}</td></tr>'
        )
    body = [
        '<header class="page"><h1>Executable papers</h1>',
        f'<p class="meta">Understudy {escape(package_version())}</p></header><main>',
        '<table class="stack"><thead><tr><th>Paper</th><th>Title</th><th>Verdicts</th></tr></thead>',
        f"<tbody>{''.join(rows)}</tbody></table>",
        _footer(),
        "</main>",
    ]
    path = out / "index.html"
    write_atomically(path, _document("Executable papers", body).encode())
    return path


def _stored(workspace: Workspace, claim: Claim, scale: Scale) -> Result | None:
    other: Scale = "quick" if scale == "full" else "full"
    stored = workspace.load(claim, scale) or workspace.load(claim, other)
    return stored[0] if stored else None


def _document(title: str, body: Iterable[str]) -> str:
    style = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>\n'
        f"<style>\n{style}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _header(paper: Paper, scale: Scale, results: Iterable[Result | None]) -> str:
    listed = list(results)
    counts = Counter(_status(result) for result in listed)
    spent = sum(result.seconds for result in listed if result)
    scales = {"quick": "quick settings", "full": "full scale"}
    return (
        f'<header class="page"><h1>{escape(paper.title)}</h1>'
        f'<p class="meta">{escape(paper.authors)} · <code>{escape(paper.handle)}</code></p>'
        f"{_counted(counts)}"
        f'<p class="meta">{len(listed)} claims, measured at {scales[scale]} unless a claim says otherwise, '
        f"in {duration(spent)} of computing, with Understudy {escape(package_version())}.</p></header>"
    )


def _overview(claims: Sequence[Claim], results: Mapping[str, Result | None]) -> str:
    rows = []
    for claim in claims:
        result = results[claim.id]
        ours = result.measured if result else None
        rows.append(
            f'<tr><td class="name"><a href="#{escape(claim.id)}">{escape(claim.id)}</a></td>'
            f'<td data-label="Where">{escape(claim.where)}</td>'
            f'<td data-label="Paper">{_short(jsonable(claim.paper_value))}</td>'
            f'<td data-label="Ours">{_short(ours)}</td>'
            f'<td class="verdict">{_badge(_status(result))}</td></tr>'
        )
    head = "".join(f"<th>{name}</th>" for name in ("Claim", "Where", "The paper's value", "Ours", "Verdict"))
    return (
        f'<nav id="claims" aria-label="Claims"><h2>Claims</h2><table class="stack"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></nav>"
    )


def _section(workspace: Workspace, claim: Claim, result: Result | None, figure_error: str) -> str:
    theirs = _value(jsonable(claim.paper_value))
    ours = _value(result.measured) if result else "<p>not measured yet</p>"
    parts = [
        f'<section class="claim" id="{escape(claim.id)}">',
        f"<h2>{escape(claim.id)} {_badge(_status(result))}</h2>",
        f'<p class="where">{escape(claim.where)}</p><p class="statement">{escape(claim.statement)}</p>',
        f'<div class="values">{_box("The paper", theirs)}{_box("Ours", ours)}</div>',
    ]
    if result and result.erratum_note:
        found = "The statement as printed does not hold" if result.status == "erratum" else "On the printed statement"
        parts.append(f'<div class="note"><p><b>{found}.</b> {escape(result.erratum_note)}</p></div>')
    if result and result.error:
        what = "The computation failed" if result.status == "failed" else "Data are missing"
        parts.append(f"<h3>{what}</h3><pre>{escape(result.error)}</pre>")
    if result:
        parts.append(_figure(workspace, claim, result))
    if figure_error:
        parts.append(f"<h3>The figure could not be drawn</h3><pre>{escape(figure_error)}</pre>")
    tolerance = escape(text(jsonable(claim.tolerance)))
    parts.append(
        f"<dl><dt>Measured by</dt><dd>{escape(claim.measured_by)}</dd>"
        f"<dt>Tolerance</dt><dd>{tolerance}: {escape(claim.tolerance_reason)}</dd></dl>"
    )
    if result and result.checks:
        corrected = " of the corrected statement" if result.printed else ""
        parts.append(_checks(f"Checks{corrected}", result.checks))
    if result and result.printed:
        parts.append(_checks("Checks of the statement as printed", result.printed))
    if result and result.notes:
        parts.append(f"<h3>Notes</h3><p>{escape(result.notes)}</p>")
    if result:
        settings, when = escape(text(result.settings)) or "none", escape(result.when[:16].replace("T", " "))
        parts.append(
            f'<p class="fine">Measured {when} UTC in {duration(result.seconds)} '
            f"with version {escape(result.version)}, code {escape(result.code or 'not recorded')}, {result.scale} settings: {settings}.</p>"
        )
    return "\n".join([*parts, '<p class="fine"><a href="#claims">↑ all claims</a></p></section>'])


def _box(title: str, content: str) -> str:
    return f'<div class="value"><h3>{title}</h3>{content}</div>'


def _checks(title: str, checks: Sequence[Check]) -> str:
    rows = "".join(
        f'<tr><td>{escape(check.name)}</td><td data-label="Paper">{_short(check.paper)}</td>'
        f'<td data-label="Ours">{_short(check.measured)}</td>'
        f'<td data-label="Tolerance">{_short(check.tolerance)}</td>'
        f'<td class="verdict">{"✓ passes" if check.ok else "<b>✕ fails</b>"}</td></tr>'
        for check in checks
    )
    head = "".join(f"<th>{name}</th>" for name in ("Check", "Paper", "Ours", "Tolerance", "Outcome"))
    return f'<h3>{title}</h3><table class="stack checks"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _figure(workspace: Workspace, claim: Claim, result: Result) -> str:
    """The figure inside the page, as SVG in an image of its own, so that no two figures' ids can meet."""
    svg, png = (workspace.figure(claim, result.scale, suffix) for suffix in (".svg", ".png"))
    if claim.figure is None or not svg.exists():
        return ""
    path, kind = (svg, "svg+xml") if svg.stat().st_size <= LARGEST_SVG else (png, "png")
    content = base64.b64encode(path.read_bytes()).decode()
    return f'<figure><img alt="{escape(claim.statement)}" src="data:image/{kind};base64,{content}"></figure>'


def _value(value: Json) -> str:
    """A value in full: a dict as a list of names and values."""
    if isinstance(value, dict):
        return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{_short(v)}</dd>" for k, v in value.items()) + "</dl>"
    return f"<p>{_short(value)}</p>"


def _short(value: Json) -> str:
    """A value on a line; a very long one folded away."""
    line = text(value)
    if len(line) <= LONGEST_SHOWN:
        return escape(line)
    return f"<details><summary>{escape(line[:60])} …</summary>{escape(line)}</details>"


def _status(result: Result | None) -> Status:
    return result.status if result else "not yet"


def _badge(status: Status, count: int | None = None) -> str:
    label = status if count is None else f"{count} {status}"
    return f'<span class="badge {status.replace(" ", "-")}">{MARKS[status]} {label}</span>'


def _counted(counts: Mapping[Status, int]) -> str:
    listed = "".join(f"<li>{_badge(status, counts[status])}</li>" for status in STATUSES if counts.get(status))
    return f'<ul class="summary">{listed}</ul>'


def _footer() -> str:
    now = datetime.now(UTC).isoformat(sep=" ", timespec="minutes")[:16]
    return (
        f"<footer>Written {now} UTC. A verdict follows from the checks listed with it: reproduced, all pass; "
        "differs, one fails; erratum, the statement fails as printed and its correction passes.</footer>"
    )
