"""`understudy branch`: follow a critical point as a parameter of the teacher or the inputs moves."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.options import check_out, options_of, translate
from understudy.commands.progress import reporting
from understudy.commands.screen import exit_if_unstored, fail, new_table, show_table, try_to_store
from understudy.commands.sources import read_teacher

if TYPE_CHECKING:
    from understudy.branches import Continuation, Family

FAMILIES = ("angle", "outgoing", "variance", "sharpness", "bias")


def branch(
    along: Annotated[
        str,
        typer.Option(
            help="What moves: angle (between teachers 0 and 1, radians), outgoing (weight of teacher 0), variance "
            "(of the first input), sharpness (β of softplus), bias (of all teachers)."
        ),
    ] = "angle",
    low: Annotated[float, typer.Option("--from", help="Lower end of the parameter.")] = 0.2,
    high: Annotated[float, typer.Option("--to", help="Upper end of the parameter.")] = 3.0,
    start: Annotated[
        float | None, typer.Option(help="Parameter at which the first point is found. Default: --from.")
    ] = None,
    activation: shared.Activation = "erf",
    teacher: shared.Teachers = 2,
    teacher_file: Annotated[Path | None, typer.Option(help="A teacher of your own: .npz, .json or .csv.")] = None,
    student: Annotated[int, typer.Option(help="Number n of student neurons.")] = 1,
    dim: Annotated[int | None, typer.Option(help="Input dimension d. Default: k.")] = None,
    seeds: Annotated[
        int, typer.Option(help="Seeds of the fit that finds the first point; the best one is followed.")
    ] = 8,
    step: Annotated[float, typer.Option(help="Largest step, as a share of the interval.")] = 0.02,
    depth: Annotated[int, typer.Option(help="Depth to which new branches are followed; 0 for none.")] = 1,
    out: shared.FigureOut = None,
    json_: shared.Json = False,
) -> None:
    """Follow the best point of a fit as a parameter moves: folds, pitchforks, and the branches that leave.

    Example: `understudy branch --along angle --activation relu --teacher 2 --student 1 --from 0.3 --to 3 --out results`
    """
    begun = time.perf_counter()
    check_out(out)
    if along not in FAMILIES:
        fail(f"--along is one of {', '.join(FAMILIES)}; received {along!r}.")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        fail(f"--from and --to are two numbers, the first one smaller; received {low:g} and {high:g}.")
    if seeds < 1:
        fail(f"--seeds is a positive number; received {seeds}.")
    begin = low if start is None else start
    if not low <= begin <= high:
        fail(f"--start lies between --from {low:g} and --to {high:g}; received {start:g}.")
    from understudy.branches import continuation
    from understudy.compilation import keep_compiled_programs
    from understudy.fitting import fit

    keep_compiled_programs()
    try:
        chosen = read_teacher(activation, teacher, teacher if dim is None else dim, None, teacher_file)
        family = _family(along, chosen, student)
        runs = fit(family(begin), seeds=seeds)
        first = min(runs, key=lambda run: run.loss)
        with reporting(f"in the {family.parameter}", quiet=json_) as progress:

            def report(number: int, parameter: float, points: int) -> None:
                progress.show(parameter - low, high - low, f"branch {number}, {points} points")

            result = continuation(
                family, first.parameters, (low, high), start=begin, step=step, depth=depth, report=report
            )
    except ValueError as error:
        fail(translate(error, options_of("step", "depth", width="--student")))
    paths, problem = try_to_store(lambda: [] if out is None else _store(result, out, along))
    if json_:
        record = result.to_dict() | {"seconds": time.perf_counter() - begun, "files": [str(path) for path in paths]}
        print(json.dumps(record))
    else:
        _print(result, paths, time.perf_counter() - begun)
    exit_if_unstored(problem)


def _family(along: str, teacher: Any, student: int) -> Family:
    from understudy import branches

    makers: dict[str, Any] = {
        "angle": branches.teacher_angle,
        "outgoing": branches.outgoing_weight,
        "variance": branches.input_variance,
        "sharpness": branches.softplus_sharpness,
        "bias": branches.teacher_bias,
    }
    made: Family = makers[along](teacher, student)
    return made


def _store(result: Continuation, out: Path, along: str) -> list[Path]:
    from understudy.plots.branches_figure import branches
    from understudy.plots.style import save

    out.mkdir(parents=True, exist_ok=True)
    return [result.save(out / f"branch-{along}"), *save(branches(result), out / f"branch-{along}")]


def _print(result: Continuation, paths: list[Path], seconds: float) -> None:
    from rich.console import Console

    from understudy.branches.table import BRANCHES, SPECIALS, branch_rows, special_rows

    console = Console()
    tables = [(BRANCHES, branch_rows(result))]
    if result.special_points:
        tables.append((SPECIALS, special_rows(result)))
    for heads, rows in tables:
        table = new_table()
        for head in heads:
            table.add_column(head, no_wrap=head not in ("before", "after", "leaves", "ends"))
        for row in rows:
            table.add_row(*row)
        show_table(console, table)
    if not result.special_points:
        console.print("No special points: the number of negative eigenvalues does not change.")
    for path in paths:
        console.print(f"wrote {path}", soft_wrap=True, highlight=False)
    console.print(f"{seconds:.1f} s", highlight=False)
