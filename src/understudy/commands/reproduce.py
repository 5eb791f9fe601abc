"""``understudy reproduce``: measure a paper's claims again, with figures and a page."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.claims import print_table, verdict_text
from understudy.commands.options import check_out, options_of, read_place, translate
from understudy.commands.progress import Lines
from understudy.commands.screen import fail

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from understudy.papers.result import Result
    from understudy.papers.runner import Event, Reproduction


def reproduce(
    target: Annotated[
        str | None,
        typer.Argument(metavar="PAPER[/CLAIM]", help="A paper or one of its claims, such as copy-average/one-neuron."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Reproduce every paper.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Measure at the paper's scale or close to it, not in a quick run of minutes.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Directory for results, figures and the page.")] = Path("results/papers"),
    json_: shared.Json = False,
    force: Annotated[bool, typer.Option("--force", help="Measure finished claims and parts again.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Also enter the results in the ledger.")] = False,
    jobs: shared.Jobs = None,
    results: shared.LedgerDirectory = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting: seeds=32, or channels=[64,64].")
    ] = None,
    cluster: shared.Cluster = None,
    scheduler_file: shared.SchedulerFile = None,
    cost: Annotated[bool, typer.Option("--cost", help="Only print how long it would take.")] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Compare with the ledger; exit with code 1 if a check or a status differs."),
    ] = False,
) -> None:
    """Measure the claims of a paper, compare the numbers with the paper's, and write figures and a page.

    Finished claims are kept in --out and not measured again. A claim whose data are not on this machine stays "not
    yet". With --cluster the parts of long computations (seeds, cells) run on its workers, one task each. Exit codes: 0
    for success, 1 if a claim differs or failed, 2 for bad input.

    Example: `understudy reproduce copy-average/one-neuron --out results/papers`
    """
    from rich.console import Console

    from understudy.papers.registry import UnknownNameError
    from understudy.papers.report import write_index
    from understudy.processes import job_count, use_jobs

    changes = _settings(settings or [])
    try:
        job_count(jobs)
        place = read_place(cluster, scheduler_file)
        wanted = _targets(target, every)
        if cost:
            _print_costs(wanted, full, changes, results)
            return
    except UnknownNameError as error:
        fail(str(error))
    except ValueError as error:
        fail(translate(error, options_of("jobs", "cluster", "scheduler_file")))
    check_out(out)
    options = {"full": full, "out": out, "force": force, "record": record, "results": results}
    with use_jobs(jobs):
        runs = _each(wanted, {**options, "settings": changes, "place": place})
    pages = [run.page for run in runs]
    if every:
        pages.insert(0, write_index(out, [run.paper for run in runs], {r.paper: r.results.values() for r in runs}))
    _print_errors(runs)
    if json_:
        _print_json(runs, pages)
    else:
        _print_tables(Console(), runs, pages)
    same = not compare or _compare(runs, results)
    raise typer.Exit(0 if same and all(run.ok for run in runs) else 1)


def _each(wanted: list[tuple[str, str | None]], options: dict[str, Any]) -> "list[Reproduction]":
    """Reproduce one paper, or one of its claims, after another."""
    from rich.console import Console

    from understudy.papers.registry import UnknownNameError
    from understudy.papers.result import BadRecordError
    from understudy.papers.runner import reproduce as reproduce_paper

    screen = _Screen(Console(stderr=True))
    runs: list[Reproduction] = []
    for paper, claim in wanted:
        try:
            with screen:
                runs.append(reproduce_paper(paper, claim, progress=screen.show, **options))
        except (UnknownNameError, ConnectionError, BadRecordError) as error:
            fail(str(error))
        except OSError as error:
            fail(f"Cannot write the results: {error}. Give a directory you may write to with --out (or --results).")
        except KeyboardInterrupt:
            kept = options["out"] / paper
            typer.echo(f"Interrupted. Finished work is kept in {kept}; run the same command to continue.", err=True)
            raise typer.Exit(130) from None
    return runs


def _print_errors(runs: "list[Reproduction]") -> None:
    for run in runs:
        for name, result in run.results.items():
            if result.error:
                typer.echo(f"{run.paper}/{name}: {_reason(result)}", err=True)
        for name, error_text in run.figure_errors.items():
            typer.echo(f"The figure of {run.paper}/{name} could not be drawn:\n{error_text}", err=True)


def _settings(given: list[str]) -> dict[str, Any]:
    """`name=value` as a dictionary; values are JSON."""
    found: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            equals = ""
        if not (equals and name.strip()):
            fail(f"--set takes name=value with a JSON value; received {item!r}. Try --set seeds=32.")
    return found


def _print_costs(
    wanted: list[tuple[str, str | None]], full: bool, changes: dict[str, Any], results: Path | None
) -> None:
    """Print how long each claim takes, estimated from the times in the ledger."""
    from understudy.papers.registry import find_claims
    from understudy.papers.runner import changed, expected_seconds
    from understudy.papers.values import duration

    for paper, claim in wanted:
        claims = changed(find_claims(paper, claim), "full" if full else "quick", changes)
        for name, seconds in expected_seconds(claims, "full" if full else "quick", results).items():
            told = "never measured at this scale" if seconds is None else f"about {duration(seconds)} on two cores"
            typer.echo(f"{paper}/{name}: {told}")


def _compare(runs: "list[Reproduction]", results: Path | None) -> bool:
    """Print how each claim compares with the ledger, and a summary per paper. Returns whether all agree."""
    from understudy.papers.agreement import compare
    from understudy.papers.ledger import Entry, entries
    from understudy.papers.registry import claims_of
    from understudy.papers.values import duration

    summaries, agree = [], True
    for run in runs:
        recorded = {claim.id: Entry.of(claim) for claim in claims_of(run.paper)}
        recorded |= {entry.id: entry for entry in entries(run.paper, results)}
        found = {name: compare(recorded[name], result) for name, result in run.results.items()}
        for name, compared in found.items():
            typer.echo(f"{run.paper}/{name}: {'agrees' if compared.agrees else 'does not agree'} with the ledger")
            for sign, lines in (("≠", compared.differs), ("…", compared.open), ("~ moved:", compared.moved)):
                for line in lines:
                    typer.echo(f"  {sign} {line}")
        same = sum(compared.agrees for compared in found.values())
        left, moved = (sum(map(len, lines)) for lines in zip(*((c.open, c.moved) for c in found.values()), strict=True))
        summaries.append(
            f"{run.paper}: {same} of {len(found)} claims agree with the ledger ({run.scale}, {duration(run.seconds)}); "
            f"left to full scale: {left}; numbers that moved: {moved}"
        )
        agree = agree and same == len(found)
    for line in summaries:
        typer.echo(line)
    return agree


def _reason(result: "Result") -> str:
    """Why there is no number: which data are missing, or the last line of what was raised."""
    if result.status == "not yet":
        return f"not yet, data are missing. {result.error}"
    return f"failed, {result.error.strip().splitlines()[-1]} (the page has the traceback)"


def _targets(target: str | None, every: bool) -> list[tuple[str, str | None]]:
    """The papers, each with one claim or all, that were asked for."""
    from understudy.papers.registry import PAPERS, UnknownNameError, claims_of, find_claims

    known = ", ".join(PAPERS)
    if every == (target is not None):
        received = f"{target!r} and --all" if every else "neither"
        raise UnknownNameError(f"Name one paper or say --all; received {received}. The papers are: {known}.")
    if target is None:
        chosen: list[tuple[str, str | None]] = [(handle, None) for handle in PAPERS if claims_of(handle)]
        if not chosen:
            raise UnknownNameError("No paper has claims yet: there is nothing to reproduce.")
        return chosen
    paper, slash, claim = target.partition("/")
    if not find_claims(paper, claim if slash else None):
        raise UnknownNameError(f"The paper {paper!r} has no claims yet: there is nothing to reproduce.")
    return [(paper, claim if slash else None)]


def _rows(run: "Reproduction") -> list[dict[str, Any]]:
    from understudy.papers.ledger import Entry
    from understudy.papers.registry import claims_of
    from understudy.papers.view import rows

    return [
        {**row, "error": run.results[c.id].error}
        for c in claims_of(run.paper)
        if c.id in run.results
        for row in rows(Entry.of(c), [run.results[c.id]])
    ]


def _print_json(runs: "list[Reproduction]", pages: list[Path]) -> None:
    summary = {
        "claims": [row for run in runs for row in _rows(run)],
        "seconds": round(sum(run.seconds for run in runs), 3),
        "pages": [str(page) for page in pages],
        "figure_errors": {f"{run.paper}/{name}": error for run in runs for name, error in run.figure_errors.items()},
    }
    print(json.dumps(summary, indent=2, ensure_ascii=False))


def _print_tables(console: "Console", runs: "list[Reproduction]", pages: list[Path]) -> None:
    from understudy.papers.values import duration

    for run in runs:
        rows = _rows(run)
        print_checks(console, rows)
        print_table(console, f"{run.paper}, {run.scale}, {duration(run.seconds)}", rows)
    for page in pages:
        # Not through Rich, which would break a long path over lines.
        typer.echo(f"{'Page' if len(pages) == 1 or page != pages[0] else 'Start'}: {page.resolve().as_uri()}")


def print_checks(console: "Console", rows: list[dict[str, Any]]) -> None:
    """Print every check of every finding: what was expected, what was measured, and when it would have failed."""
    from rich.text import Text

    from understudy.papers.values import text

    shown = ""
    for row in rows:
        if row["id"] != shown:
            shown = row["id"]
            console.print(Text(f"{row['paper']}/{shown}: {row['statement']}", style="bold"))
            if row["mutation"]:
                console.print(Text(f"  A wrong number that fails: {row['mutation']['because']}.", style="dim"))
        console.print(Text.assemble("  ", verdict_text(row["status"]), f" ({row['scale']}): {row['finding']}"))
        for check in row["check"]:
            mark = "✓" if check["ok"] else "✕"
            line = f"    {mark} {check['name']}: expected {text(check['expected'])}, measured {text(check['measured'])}"
            console.print(Text(f"{line}; {check['limit']}"))


class _Screen:
    """A line that is redrawn while claims run, and a permanent line for each finished claim."""

    def __init__(self, console: "Console"):
        from rich.live import Live

        self.console = console
        self.event: Event | None = None
        self.since = time.perf_counter()
        self.lines = Lines()
        self._live_type = Live

    def __enter__(self) -> "_Screen":
        self.event = None
        # Without a terminal nothing can be redrawn: only the lines that stay are printed.
        self.live = self._live_type(get_renderable=self.line, console=self.console, transient=True)
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def show(self, event: "Event") -> None:
        """Record the progress of the reproduction."""
        from rich.text import Text

        from understudy.papers.values import duration

        self.event, self.since = event, time.perf_counter()
        if event.stage == "start":
            self.lines = Lines()
        if not self.console.is_terminal and (event.stage == "start" or (event.stage == "running" and self.lines.due())):
            self.console.print(self.line())
        if event.result is not None:
            from understudy.papers.ledger import Entry
            from understudy.papers.view import claim_view

            found = claim_view(Entry.of(event.claim), event.result)["statuses"]
            status = Text(", ").join(map(verdict_text, found))
            took = " (kept from before)" if event.stage == "kept" else f" in {duration(event.result.seconds)}"
            count = f"[{event.index + 1}/{event.total}] "
            self.console.print(Text.assemble(count, f"{event.claim.paper}/{event.claim.id}  ", status, took))

    def line(self) -> "Text":
        """The present state: claim i of N, its note, the time passed and left."""
        from rich.text import Text

        from understudy.papers.values import duration

        event = self.event
        if event is None or event.stage in ("finished", "kept"):
            return Text("")
        passed = time.perf_counter() - self.since
        share = f" {event.fraction:.0%}" if event.fraction else ""
        note = f" ({event.note})" if event.note else ""
        return Text(
            f"Claim {event.index + 1} of {event.total}: {event.claim.id}{share}{note} · "
            f"{duration(event.elapsed + passed)} passed · {_left_text(event, passed)}",
            style="cyan",
        )


def _left_text(event: "Event", passed: float) -> str:
    from understudy.papers.values import duration

    left = max(event.left.seconds - passed, 0.0)
    untimed = f"{event.left.unknown} claim{'s' * (event.left.unknown != 1)} never timed"
    if not event.left.unknown:
        return f"about {duration(left)} left"
    return f"about {duration(left)} left and {untimed}" if left else f"time left not known ({untimed})"
