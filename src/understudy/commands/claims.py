"""``understudy claims``: every claim, the paper's value, ours, and the verdict."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.screen import fail

if TYPE_CHECKING:
    from rich.text import Text

    from understudy.papers.findings import Verdict

WIDEST = 44  # characters of a value in a table of up to 120 columns, more in a wider one; --json has all of it
STYLES = {
    "reproduced": "bold blue",
    "reproduced in part": "blue",
    "differs": "bold dark_orange",
    "misprint": "magenta",
    "proof gap": "bold magenta",
    "false as stated": "bold red",
    "extends": "green",
    "failed": "bold reverse",
    "not yet": "dim",
}


def claims(
    paper: Annotated[str | None, typer.Argument(help="The short name of a paper. Default: all papers.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list: one object per finding.")] = False,
    all_scales: Annotated[
        bool, typer.Option("--all-scales", help="List the quick and the full result of each claim.")
    ] = False,
    results: shared.LedgerDirectory = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="First update the stored statements from the code.")
    ] = False,
) -> None:
    """List every claim with the paper's value, the last measured value and the finding.

    Example: `understudy claims few-neurons --all-scales`
    """
    from understudy.papers.ledger import Entry, entries, record
    from understudy.papers.registry import PAPERS, UnknownNameError, claims_of, find_paper
    from understudy.papers.result import BadRecordError, Result
    from understudy.papers.view import rows as rows_of

    try:
        chosen = list(PAPERS) if paper is None else [find_paper(paper).handle]
        if refresh:
            for handle in chosen:
                if claims_of(handle):
                    record(handle, directory=results)
        listed = {handle: entries(handle, results) for handle in chosen}
    except (UnknownNameError, BadRecordError, OSError) as error:
        fail(str(error))

    def shown(entry: Entry) -> list[Result | None]:
        return list(entry.results.values()) if all_scales and entry.results else [entry.best]

    rows = {handle: [row for e in found for row in rows_of(e, shown(e))] for handle, found in listed.items()}
    if json_:
        print(json.dumps([row for found in rows.values() for row in found], indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    console = Console()
    for handle, found in rows.items():
        if found:
            print_table(console, handle, found)
        else:
            console.print(f"[bold]{handle}[/bold]: no claims yet")


def print_table(console: Any, title: str, rows: list[dict[str, Any]]) -> None:
    """Print the rows of ``understudy claims --json`` as a table."""
    from rich.table import Table
    from rich.text import Text

    from understudy.papers.values import text

    # On a narrow screen two readable columns of values are better than six that are cut; below 72 there is room for
    # none.
    wide, values_fit = console.width >= 120, console.width >= 72
    widest = WIDEST + max(console.width - 120, 0)
    table = Table(title=title, title_style="bold", title_justify="left", show_lines=values_fit and not wide)
    table.add_column("Claim", no_wrap=True)
    if wide:
        table.add_column("Where", ratio=2)
    if values_fit:
        table.add_column("Paper", ratio=3)
        table.add_column("Measured", ratio=4)
    table.add_column("Finding", no_wrap=True)
    if wide:
        table.add_column("When", no_wrap=True)
    for row in rows:
        both = (row["paper_value"], row["measured"]) if values_fit else ()
        values = [Text(_cut(text(value), widest)) for value in both]
        when = Text(f"{row['when'][:10]} ({row['settings_of']})" if row["when"] else "–")
        cells = [Text(row["id"]), *([Text(row["where"])] if wide else []), *values, verdict_text(row["status"])]
        table.add_row(*cells, *([when] if wide else []))
    console.print(table)
    if not values_fit:
        console.print("The screen is too narrow to show: Paper, Measured.", highlight=False)


def verdict_text(status: "Verdict") -> "Text":
    """The status with its mark and colour."""
    from rich.text import Text

    from understudy.papers.view import marked

    return Text(marked(status), style=STYLES[status])


def _cut(line: str, widest: int) -> str:
    return line if len(line) <= widest else line[: widest - 1] + "…"
