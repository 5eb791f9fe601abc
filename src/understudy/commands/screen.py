"""Shared by all commands: error messages with exit codes, and tables."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table


def fail(message: str) -> NoReturn:
    """Print an error message on standard error, and exit with code 2."""
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(2)


def complain(message: str) -> None:
    """Print a warning on standard error; the command continues."""
    typer.echo(message, err=True)


def unstored(reason: object) -> str:
    """What to say if results could not be stored."""
    return f"Results could not be stored: {reason}. Name another place with --out."


def tell_files(what: str, paths: Iterable[object]) -> None:
    """Name the files that were written, in one line that is not broken; nothing if there are none."""
    if listed := ", ".join(map(str, paths)):
        typer.echo(f"{what}: {listed}")


@contextmanager
def storing() -> Iterator[None]:
    """Turn a failure to write results (such as a full disk) into one line on standard error and exit code 1."""
    try:
        yield
    except OSError as error:
        complain(unstored(error))
        raise typer.Exit(1) from None


def try_to_store(write: Callable[[], Iterable[Path]]) -> tuple[list[Path], str | None]:
    """The files that `write` has written, or none and what to say at the end; see `exit_if_unstored`.

    So a full disk does not keep the results from the screen.
    """
    try:
        return list(write()), None
    except OSError as error:
        return [], unstored(error)


def exit_if_unstored(problem: str | None) -> None:
    """Say what could not be stored, if anything, and exit with code 1."""
    if problem is not None:
        complain(problem)
        raise typer.Exit(1)


def exit_interrupted(what: str, out: Path | None) -> NoReturn:
    """Say which work is kept after Ctrl-C, and exit with code 130.

    The process ends at once: a compilation under way in a worker thread cannot be interrupted otherwise.
    """
    kept = f"finished {what} are kept in {out}" if out is not None else "nothing is kept: there is no --out"
    sys.stderr.write(f"\nInterrupted: {kept}.\n")
    sys.stderr.flush()
    os._exit(130)


def new_table(heads: Iterable[str] = (), left: Collection[str] = ()) -> Table:
    """A table without rows in the style of all commands: a rule below the headings, and no other lines.

    Columns in `left` are aligned to the left, the others to the right. They are not broken over lines.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", no_wrap=True)
    return table


def show_table(console: Console, table: Table) -> None:
    """Print a table. On a narrow screen its last columns are left out, whole, and named."""
    from rich.measure import Measurement

    left_out: list[str] = []
    while len(table.columns) > 2:
        wide = console.options.update(width=10_000)
        if Measurement.get(console, wide, table).maximum <= console.width:
            break
        left_out.insert(0, str(table.columns.pop().header))
    console.print(table)
    if left_out:
        console.print(f"The screen is too narrow to show: {', '.join(left_out)}.", highlight=False)


def show_text(text: str) -> None:
    """Print text, with sentences broken at the width of the screen. Rows of a table, which have gaps, stay whole."""
    import shutil
    import textwrap

    width = shutil.get_terminal_size().columns
    for line in text.splitlines():
        typer.echo(line if "  " in line else textwrap.fill(line, width, break_long_words=False))


def on_two_lines(label: str) -> str:
    """A label such as `perturbed-2-copy-1-average` on two lines, for narrow columns.

    >>> on_two_lines("3-copy-1-average"), on_two_lines("(1,1,2)-copy-average")
    ('3-copy-\\n1-average', '(1,1,2)-\\ncopy-average')
    """
    return re.sub(r"(?=copy-average)|(?<=copy-)(?=\d)", "\n", label)
