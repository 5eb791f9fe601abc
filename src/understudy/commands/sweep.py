"""`understudy sweep`: a grid of fits on Dask workers, resumable."""

from __future__ import annotations

import itertools
import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.fit import OPTIONS
from understudy.commands.options import check_limit, check_out, parse_list, parse_seeds, translate
from understudy.commands.screen import complain, fail, new_table, on_two_lines, show_table, tell_files, unstored

if TYPE_CHECKING:
    from understudy.experiments.collecting import Collection
    from understudy.experiments.fit import Fit


def sweep(
    activation: Annotated[str, typer.Option(help="One activation, or several separated by commas.")] = "erf",
    teacher: Annotated[str, typer.Option(help="Numbers of teachers: 9,11,13 or 9-16; or a file, as for fit.")] = "5-8",
    student: Annotated[str, typer.Option(help="Numbers of students: 4 or 2,4,8 or 2-8.")] = "4",
    dim: Annotated[str, typer.Option(help="Input dimensions, or k+1 (the default), k+2, ….")] = "k+1",
    seeds: Annotated[str, typer.Option(help="Seeds of every cell: 20, or 0,3,7, or 5-9.")] = "20",
    outgoing: Annotated[str, typer.Option(help="trained, fixed, or both separated by a comma.")] = "trained",
    bias: Annotated[str, typer.Option(help="none, trained, or both separated by a comma.")] = "none",
    mean: shared.Mean = None,
    covariance: shared.InputCovariance = None,
    init: Annotated[str, typer.Option(help="gaussian or glorot.")] = "gaussian",
    init_std: Annotated[
        str | None, typer.Option(help="Standard deviations of the initial weights.", show_default="0.1")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Relative and absolute tolerance of the flow.")] = 1e-6,
    limit: shared.Limit = None,
    cluster: shared.Cluster = None,
    scheduler_file: shared.SchedulerFile = None,
    workers: Annotated[
        int | None, typer.Option("--jobs", "--workers", help="Local processes. Default: one per core.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory of the stored cells, the table and the figure.")] = Path("sweep"),
    json_: shared.Json = False,
) -> None:
    """Fit every cell of a grid. Seeds that this command or `fit` has stored are not computed again.

    For grids of ReLU students trained by SGD use `understudy align`.

    Example: `understudy sweep --teacher 9-16 --student 8 --seeds 20 --out results/regimes`
    """
    begun = time.perf_counter()
    numbers = parse_seeds(seeds)
    axes: dict[str, list[Any]] = {
        "activation": [_activation(name) for name in activation.split(",")],
        "teacher": [Path(teacher)] if is_file_name(teacher) else parse_numbers(teacher, "--teacher"),
        "student": parse_numbers(student, "--student"),
        "dim": dim.split(","),
        "outgoing": outgoing.split(","),
        "bias": bias.split(","),
        "init": init.split(","),
        "init_std": [None] if init_std is None else parse_list(init_std, "--init-std", "0.1 or 0.1,1"),
    }
    check_out(out)
    check_limit(limit)
    cells = make_cells(axes, numbers, tolerance, mean, covariance)
    place = {"cluster": cluster, "scheduler_file": scheduler_file, "workers": workers}
    found = _collect(cells, numbers, out, place, limit, quiet=json_)
    rows = _summaries(cells, found)
    seconds = time.perf_counter() - begun
    if json_:
        failures = [_failure(f) for f in found.failed]
        print(json.dumps({"seconds": round(seconds, 3), "cells": rows, "failed": failures}, indent=1))
    else:
        _print_table(rows, seconds, found)
    if rows:
        _draw(rows, cells, out, json_)
    _complain(found, limit)


def _activation(text: str) -> str:
    from understudy.commands.describing import read_activation

    try:
        return read_activation(text)
    except ValueError as error:
        fail(str(error))


def make_cells(
    axes: dict[str, list[Any]],
    seeds: list[int],
    tolerance: float,
    mean: str | None = None,
    covariance: Path | None = None,
) -> list[Fit]:
    """The product of the axes, each cell checked before anything runs."""
    from understudy.commands.sources import read_inputs
    from understudy.experiments.estimates import check_cells, check_fit
    from understudy.experiments.fit import Fit

    try:
        check_cells(math.prod(map(len, axes.values())))
        inputs = read_inputs(mean, covariance)
        cells = []
        for values in itertools.product(*axes.values()):
            chosen = dict(zip(axes, values, strict=True))
            arrays = inputs | _teacher_arrays(chosen)
            if not isinstance(chosen["dim"], int):
                chosen["dim"] = _dimension(str(chosen["dim"]), chosen["teacher"])
            cells.append(Fit(**chosen, tolerance=tolerance, arrays=arrays))
            check_fit(cells[-1], len(seeds))
    except (OSError, ValueError) as error:
        fail(translate(error, OPTIONS))
    return cells


def is_file_name(text: str) -> bool:
    """Whether `--teacher` names a file and not numbers."""
    return Path(text).suffix in (".npz", ".npy", ".csv", ".json")


def _teacher_arrays(chosen: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a teacher from a file, whose sizes and activation are filled in; none for orthonormal teachers."""
    if not isinstance(chosen["teacher"], Path):
        return {}
    from understudy.commands.sources import read_teacher_arrays

    arrays, chosen["activation"] = read_teacher_arrays(chosen["teacher"], chosen["activation"])
    chosen["teacher"], dim = arrays["teacher_incoming"].shape
    if chosen["dim"] == "k+1":  # the default
        chosen["dim"] = dim
    return arrays


def parse_numbers(text: str, option: str) -> list[int]:
    """`4`, `2,4,8`, `2-8` or `8-32:4` (with a step) as a list of positive whole numbers."""
    numbers: list[int] = []
    try:
        for part in text.split(","):
            span, colon, step = part.partition(":")
            low, dash, high = span.partition("-")
            whole = range(int(low), int(high if dash else low) + 1, int(step) if colon else 1)
            if len(whole) > 10**6:
                fail(f"{option} is at most a million numbers; received {text!r}.")
            numbers += whole
    except (ValueError, OverflowError):
        fail(f"{option} is a list of whole numbers like 4 or 2,4,8 or 2-8 or 8-32:4; received {text!r}.")
    if not numbers or min(numbers) < 1:
        fail(f"{option} needs positive whole numbers; received {text!r}.")
    return numbers


def _dimension(text: str, teacher: int) -> int:
    head, plus, extra = text.partition("+")
    try:
        return teacher + int(extra or 0) if head == "k" and (plus or not extra) else int(text)
    except ValueError:
        fail(f"--dim is a whole number, k, or k+1, k+2, …; received {text!r}.")


def _collect(
    cells: list[Fit], seeds: list[int], out: Path, where: dict[str, Any], limit: float | None, quiet: bool
) -> Collection:
    from understudy.commands.progress import reporting
    from understudy.experiments.collecting import Place, collect_rows
    from understudy.store import Store

    try:
        with reporting("seeds", quiet) as reporter:
            return collect_rows(
                cells, seeds, Store(out), place=Place(**where), progress=reporter.collecting, limit=limit
            )
    except KeyboardInterrupt:
        typer.echo(f"Interrupted: finished seeds are kept in {out}; run the same command to continue.", err=True)
        raise typer.Exit(130) from None
    except (OSError, ValueError, RuntimeError) as error:
        fail(translate(error, OPTIONS))


def _summaries(cells: list[Fit], found: Collection) -> list[dict[str, Any]]:
    from understudy.experiments.fit_seeds import runs_of_rows
    from understudy.results.cells import summarise_cell

    return [
        summarise_cell(runs_of_rows(cell, rows))
        for cell, rows in zip(cells, found.rows, strict=True)
        if rows is not None
    ]


def _failure(failure: Any) -> dict[str, Any]:
    told = {"cell": failure.description.configuration(), "seeds": list(failure.seeds)}
    return {**told, "error": failure.error.error, "message": failure.error.message}


def _print_table(rows: list[dict[str, Any]], seconds: float, found: Collection) -> None:
    from rich.console import Console

    from understudy.results.cells import describe_point

    console = Console()
    if rows:
        table = new_table()
        for name in ("activation", "k", "n", "d"):
            table.add_column(name, justify="left" if name == "activation" else "right", overflow="fold")
        varied = [name for name in ("outgoing", "bias", "init", "init_std") if len({row[name] for row in rows}) > 1]
        if varied:
            table.add_column(", ".join(name.replace("_", " ") for name in varied), overflow="fold")
        table.add_column("where the runs end", overflow="fold")
        table.add_column("best loss", justify="right", no_wrap=True)
        table.add_column("|∇L|", justify="right", no_wrap=True)
        shape = on_two_lines if console.width < (100 if varied else 80) else str
        for row in rows:
            more = len(row["points"]) - 3
            ends = "\n".join(shape(describe_point(p)) for p in row["points"][:3])
            table.add_row(
                row["activation"],
                str(row["teacher"]),
                str(row["student"]),
                str(row["dim"]),
                *([", ".join(_word(row, name) for name in varied if _word(row, name))] if varied else []),
                ends + (f"\n{more} more kinds" if more > 0 else ""),
                "not a number" if row["best_loss"] is None else f"{row['best_loss']:.9f}",
                f"≤ {row['largest_gradient_norm']:.0e}",
            )
        show_table(console, table)
    cells = f"{len(rows)} cell{'s' * (len(rows) != 1)} in {seconds:.1f} s"
    console.print(f"{cells}: {found.computed} seeds computed, {found.reused} stored before.", highlight=False)


def _word(row: dict[str, Any], name: str) -> str:
    """The value of a cell for a column in which cells differ."""
    if name == "bias":
        return "biases" if row["bias"] else "no biases"
    return "" if row[name] is None else str(row[name])


def _draw(rows: list[dict[str, Any]], cells: list[Fit], out: Path, quiet: bool) -> None:
    from understudy import plots
    from understudy.files import content_hash

    stem = out / f"sweep-{content_hash({'cells': [cell.configuration() for cell in cells]})}"
    try:
        paths = plots.save(plots.sweep(rows), stem)
    except OSError as error:
        complain(f"The figure could not be written: {error}")
        return
    if not quiet:
        tell_files("Figure", paths)


def _complain(found: Collection, limit: float | None) -> None:
    """Report unfinished work. Exit with code 1 if there is any."""
    for failure in found.failed:
        complain(f"failed: {failure}")
    left = sum(map(len, found.unfinished.values()))
    if left:
        complain(f"{left} seeds of {len(found.unfinished)} cells did not finish within --limit {limit:g} s.")
    if found.unsaved is not None:
        complain(unstored(found.unsaved))
    if found.failed or left or found.unsaved is not None:
        raise typer.Exit(1)
