"""What every command shows: the end with a message, and tables of one look."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from rich.table import Table


def fail(message: str) -> NoReturn:
    """Say what was wrong on standard error and end with exit code 2."""
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(2)


def new_table() -> Table:
    """An empty table in the look of all commands: a rule under the heads, and no other lines."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
