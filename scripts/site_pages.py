"""Pages of the site that come from the ledger: one a paper, with every claim, both values and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scripts.site_figures import image, shown
from understudy.papers.ledger import Entry, entries
from understudy.papers.registry import PAPERS, Paper
from understudy.papers.values import text

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

LONGEST = 400
"""Characters of numbers that are shown; the rest is in `understudy claims PAPER --json`. Sentences are never cut."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages when the site is built."""
    from mkdocs.structure.files import File

    for handle, paper in PAPERS.items():
        files.append(File.generated(config, f"papers/{handle}.md", content=page(paper)))
    return files


def page(paper: Paper) -> str:
    """The page of one paper, in Markdown."""
    claims = entries(paper.handle)
    lines = [f"# {paper.handle}", "", f"*{paper.title}* ({paper.authors}).", ""]
    lines += [
        f"`understudy reproduce {paper.handle}` measures these claims in minutes, `--full` at full scale, the paper's or near it.",
        "",
    ]
    lines += ["| claim | where | verdict | scale |", "|---|---|---|---|"]
    for entry in claims:
        status, scale = (entry.best.status, entry.best.scale) if entry.best else ("not yet", "")
        lines.append(f"| [{entry.id}](#{entry.id}) | {_cell(entry.where)} | {status} | {scale} |")
    for entry in claims:
        lines += ["", *_section(entry)]
    return "\n".join(lines) + "\n"


def _section(entry: Entry) -> list[str]:
    result = entry.best
    lines = [f"## {entry.id}", "", _words(entry.statement), "", *_figure(entry)]
    lines += [f"| where | {_cell(entry.where)} |", "|---|---|"]
    lines.append(f"| claimed | {_cell(entry.paper_value)} |")
    lines.append(f"| measured | {_cell(result.measured) if result else 'not yet'} |")
    lines.append(f"| how | {_cell(entry.measured_by)} |")
    lines.append(f"| tolerance | {_cell(entry.tolerance)}: {_cell(entry.tolerance_reason)} |")
    if result is None:
        return lines
    lines.append(f"| verdict | **{result.status}**, {result.scale} scale, {result.seconds:.0f} s, {result.when[:10]} |")
    for check in result.checks:
        if not check.ok:
            lines.append(
                f"| fails | {_cell(check.name)}: claimed {_cell(check.paper)}, measured {_cell(check.measured)} |"
            )
    for label, said in (("erratum", result.erratum_note), ("notes", result.notes)):
        if said:
            lines.append(f"| {label} | {_cell(said)} |")
    return lines


def _figure(entry: Entry) -> list[str]:
    """The claim's figure, a link to itself at full size; none unless it shows a result of the ledger."""
    result = shown(entry)
    if result is None:
        return []
    path = f"../images/papers/{entry.paper}/{image(entry).name}"
    return [
        f"[![{entry.id}: {_words(entry.statement)}]({path})]({path})",
        "",
        f"*The result of {result.when[:10]}, {result.scale} scale.*",
        "",
    ]


def _cell(value: Any) -> str:
    line = text(value)
    if not isinstance(value, str) and len(line) > LONGEST:
        line = line[:LONGEST] + " …"
    return _words(line).replace("|", "\\|").replace("\n", " ")


def _words(line: str) -> str:
    """Text as it stands: f* and g_l are no marks of Markdown."""
    marks = {ord(mark): f"\\{mark}" for mark in "\\[]*_`"}
    return line.translate({**marks, ord("<"): "&lt;"})
