"""`understudy verify`: check a proof file with independent code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from understudy.commands import shared
from understudy.commands.screen import complain, fail


def verify(
    file: Annotated[Path, typer.Argument(help="A proof that `understudy certify --proof --out` wrote.")],
    json_: shared.Json = False,
) -> None:
    """Check a proof: derive everything from the numbers in the file, by code that shares no formula with the prover.

    Exit codes: 0 if the theorem holds, 1 if the file is refused, 2 if it is not a proof file.

    Example: `understudy verify proof.json`
    """
    try:
        from understudy.proofs import verify as check

        found = check(file)
    except (ValueError, ImportError) as error:
        fail(str(error))
    if json_:
        print(json.dumps({"accepted": found.accepted, "statement": found.statement, "reason": found.reason}, indent=1))
    elif found.accepted:
        from rich.console import Console

        Console().print(f"Accepted: {found.statement}", highlight=False, markup=False)
    else:
        complain(f"Refused: {found.reason}.")
    if not found.accepted:
        raise typer.Exit(1)
