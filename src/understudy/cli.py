"""The command line. Each command is in `understudy.commands`, and imports what it needs when it runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from understudy.commands.align import align
from understudy.commands.branch import branch
from understudy.commands.certify import certify
from understudy.commands.claims import claims
from understudy.commands.compare import compare
from understudy.commands.compress import compress
from understudy.commands.explore import explore
from understudy.commands.fit import fit
from understudy.commands.grow import grow
from understudy.commands.lab import lab
from understudy.commands.layers import layers
from understudy.commands.loading import announce_loading
from understudy.commands.merge import merge
from understudy.commands.online import online
from understudy.commands.reproduce import reproduce
from understudy.commands.split import split
from understudy.commands.sweep import sweep
from understudy.commands.verify import verify

app = typer.Typer(
    name="understudy",
    help="Finds, certifies and explains what a small network learns from a bigger one.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Exit codes: 0 for success; 1 if a claim failed or some work could not be done; 2 for bad input; 130 after "
    "Ctrl-C.",
)
FIND, INSIDE, CHANGE, PAPERS = "Find and certify", "Look inside", "Change networks", "Papers"
app.command(rich_help_panel=FIND)(fit)
app.command(rich_help_panel=FIND)(sweep)
app.command(rich_help_panel=FIND)(explore)
app.command(rich_help_panel=FIND)(certify)
app.command(rich_help_panel=FIND)(verify)
app.command(rich_help_panel=FIND)(align)
app.command(rich_help_panel=FIND)(online)
app.command(rich_help_panel=FIND)(branch)
app.command(rich_help_panel=INSIDE)(lab)
app.command(rich_help_panel=INSIDE)(layers)
app.command(rich_help_panel=INSIDE)(compare)
app.command(rich_help_panel=CHANGE)(split)
app.command(rich_help_panel=CHANGE)(grow)
app.command(rich_help_panel=CHANGE)(merge)
app.command(rich_help_panel=CHANGE)(compress)
app.command(rich_help_panel=PAPERS)(claims)
app.command(rich_help_panel=PAPERS)(reproduce)


def _version(value: bool | None) -> None:
    if value:
        from understudy import __version__

        print(f"understudy {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = None,
) -> None:
    """Finds, certifies and explains what a small network learns from a bigger one."""


def _told(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The same error with the extra to install, if the missing module belongs to one."""
    from understudy.extras import MODULES, need

    if "pip install" in str(error):
        return error
    try:
        need(*(extra for extra, modules in MODULES.items() if error.name == modules[0]))
    except ModuleNotFoundError as told:
        return told
    raise error


def main() -> None:
    """Entry point of the `understudy` command."""
    announce_loading()
    try:
        app()
    except ModuleNotFoundError as error:
        print(f"Error: {_told(error)}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
