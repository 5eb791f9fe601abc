"""`understudy lab`: watch a student learn, in the browser."""

from typing import Annotated

import typer

from understudy.commands.screen import fail
from understudy.extras import need


def lab(
    link: Annotated[str | None, typer.Argument(help="A link of the lab to open, from any machine.")] = None,
    port: Annotated[int, typer.Option(help="Port on this machine.", show_default="a free one", min=0, max=65535)] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address; do not open a browser.")
    ] = False,
    token: Annotated[
        str | None, typer.Option(help="Last part of the address: letters, digits, - and _. Default: random.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the address as one JSON object.")] = False,
) -> None:
    """Open the lab: choose a teacher and a student, watch the gradient flow, see the verdict.

    The server listens on this machine only, needs no network, and ends with Ctrl-C.

    Example: `understudy lab --port 8765`
    """
    need("lab")
    import json
    import re

    from understudy.lab.address import question_of
    from understudy.lab.question import BadQuestionError
    from understudy.lab.server import serve

    if token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{8,100}", token):
        fail(f"--token is 8 to 100 letters, digits, - and _; received {token!r}.")
    try:
        question = None if link is None else question_of(link)
    except BadQuestionError as error:
        fail(str(error))

    def say(address: str) -> None:
        if json_:
            typer.echo(json.dumps({"address": address}))
            return
        typer.echo(f"The lab is at {address}")
        typer.echo("Only this machine can reach it. Press Ctrl-C to stop it.")

    try:
        serve(question, port=port, token=token, browser=not no_browser, say=say)
    except OSError as error:
        fail(f"Port {port} cannot be used: {error.strerror}. Leave --port out to take a free one.")
