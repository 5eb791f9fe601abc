"""`understudy explore`: critical points of any index, and how they are connected."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.describing import describe
from understudy.commands.fit import OPTIONS
from understudy.commands.options import check_out, options_of, translate
from understudy.commands.screen import exit_interrupted, fail, new_table, on_two_lines, show_table, storing, tell_files

if TYPE_CHECKING:
    from understudy.experiments.exploring import Explore
    from understudy.landscape import Graph


def explore(
    activation: shared.Activation = "erf",
    teacher: Annotated[
        str, typer.Option(help="Number k of orthonormal teachers with outgoing weights 1, or a file.")
    ] = "4",
    student: Annotated[int, typer.Option(help="Number n of student neurons.")] = 2,
    angles: shared.Angles = None,
    dim: shared.Dim = None,
    outgoing: shared.Outgoing = None,
    sphere: shared.Sphere = False,
    starts: Annotated[int, typer.Option(help="Number of random searches.")] = 256,
    seed: Annotated[int, typer.Option(help="Seed of the random searches.")] = 0,
    init_std: Annotated[float, typer.Option(help="Standard deviation of the starts.")] = 0.5,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the stored graph and its figures; an interrupted run resumes.")
    ] = None,
    json_: shared.Json = False,
) -> None:
    """Find critical points of any index, certify them, remove symmetric copies, and follow saddles down to minima.

    Example: `understudy explore --activation erf --teacher 4 --student 2 --out results`
    """
    begun = time.perf_counter()
    check_out(out)
    chosen = {
        "activation": activation, "teacher": teacher, "student": student, "dim": dim, "outgoing": outgoing,
        "sphere": sphere,
    }  # fmt: skip
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    try:
        description = _describe(chosen, angles, seed, init_std)
        graph = _collect(description, starts, out, quiet=json_)
    except (ValueError, TypeError, OSError) as error:
        fail(translate(error, OPTIONS | options_of("starts", "seed")))
    _report(graph, time.perf_counter() - begun, json_)
    if out is not None:
        _draw(graph, out, json_)


def _describe(chosen: dict[str, Any], angles: str | None, seed: int, init_std: float) -> Explore:
    from understudy.experiments.exploring import Explore
    from understudy.experiments.fit import Fit

    if angles is None:
        described = describe(chosen)
        assert isinstance(described, Fit)  # there is no --data
        return Explore(described, seed, init_std)
    import numpy as np

    from understudy.commands.sources import read_teacher

    found = read_teacher(chosen["activation"], 0, None, angles, None)
    arrays = {"teacher_incoming": np.asarray(found.incoming), "teacher_outgoing": np.asarray(found.outgoing)}
    given = {k: v for k, v in chosen.items() if v is not None and k not in ("teacher", "dim")}
    return Explore(Fit(**given, arrays=arrays), seed, init_std)


def _collect(description: Explore, starts: int, out: Path | None, quiet: bool) -> Graph:
    from understudy.commands.progress import reporting
    from understudy.experiments.exploring import collect_graph

    store = None
    if out is not None:
        from understudy.store import Store

        store = Store(out)
    try:
        with reporting("searches", quiet) as reporter:
            return collect_graph(description, starts, store, progress=reporter.collecting)
    except KeyboardInterrupt:
        exit_interrupted("searches", out)


def _report(graph: Graph, seconds: float, as_json: bool) -> None:
    if as_json:
        from understudy.files import jsonable

        print(json.dumps(jsonable({**graph.to_dict(), "seconds": round(seconds, 3)}), indent=1))
        return
    from rich.console import Console

    from understudy.landscape.table import LEFT, LEGEND, columns, title, told

    console = Console()
    heads, rows = columns(graph)
    table = new_table(heads, [heads[i] for i in LEFT])
    for row in rows:
        row[3] = on_two_lines(row[3]) if console.width < 110 else row[3]
        table.add_row(*row)
    console.print(title(graph), highlight=False)
    show_table(console, table)
    for sentence in [*told(graph), LEGEND]:
        console.print(sentence, highlight=False, style="dim" if sentence == LEGEND else None)


def _draw(graph: Graph, out: Path, quiet: bool) -> None:
    from understudy import plots
    from understudy.store import configuration_hash

    stem = out / f"explore-{configuration_hash(dict(graph.configuration or {}))}"
    with storing():
        paths = plots.save(plots.explore(graph), stem)
    if not quiet:
        tell_files("Figures", paths)
