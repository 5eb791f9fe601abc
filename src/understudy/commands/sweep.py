"""`understudy sweep`: a grid of fits on Dask workers, resumable."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands.fit import check_start, make_task
from understudy.commands.options import check_out, parse_seeds
from understudy.commands.screen import fail, new_table, on_two_lines

if TYPE_CHECKING:
    import xarray as xr


def sweep(
    activation: Annotated[str, typer.Option(help="One or several, separated by commas.")] = "erf",
    teacher: Annotated[str, typer.Option(help="Numbers of teachers: 9,11,13 or 9-16.")] = "5-8",
    student: Annotated[str, typer.Option(help="Numbers of students: 4 or 2,4,8 or 2-8.")] = "4",
    dim: Annotated[str, typer.Option(help="Input dimensions, or k+1 (the default), k+2, ….")] = "k+1",
    seeds: Annotated[str, typer.Option(help="Seeds of every cell: 20, or 0,3,7, or 5-9.")] = "20",
    outgoing: Annotated[str, typer.Option(help="trained, fixed, or both separated by a comma.")] = "trained",
    init: Annotated[str, typer.Option(help="gaussian or glorot.")] = "gaussian",
    init_std: Annotated[str, typer.Option(help="Standard deviations of the initial weights.")] = "0.1",
    tolerance: Annotated[float, typer.Option(help="Relative and absolute tolerance of the flow.")] = 1e-6,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:8786.")] = None,
    scheduler_file: Annotated[Path | None, typer.Option(help="Scheduler file of a Dask cluster.")] = None,
    workers: Annotated[int | None, typer.Option(help="Local workers; one a core unless given.")] = None,
    out: Annotated[Path, typer.Option(help="Directory of the stored cells, the table and the figure.")] = Path("sweep"),
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Fit every cell of a grid; finished cells are stored and skipped when the command is run again.

    Grids of SGD-trained ReLU students: lists of `--over` and `--polarity` of `understudy align`.

    Example: `understudy sweep --teacher 9-16 --student 8 --seeds 20 --out results/regimes`
    """
    from understudy.store import Store, configuration_hash
    from understudy.sweeps import run

    begun = time.perf_counter()
    cells = make_cells(
        activation.split(","),
        parse_numbers(teacher, "--teacher"),
        parse_numbers(student, "--student"),
        dim.split(","),
        parse_seeds(seeds),
        outgoing.split(","),
        init.split(","),
        [_number(x, "--init-std") for x in init_std.split(",")],
        tolerance,
    )
    check_out(out)
    store = Store(out)
    try:
        result = _with_progress(
            lambda progress: run(
                fit_cell,
                cells,
                store,
                cluster=cluster,
                scheduler_file=scheduler_file,
                workers=workers,
                progress=progress,
            ),
            quiet=json_,
        )
    except KeyboardInterrupt:
        typer.echo(f"Interrupted: finished cells are kept in {out}; run the same command to go on.", err=True)
        raise typer.Exit(130) from None
    except (OSError, ValueError) as error:
        fail(str(error))
    failed = {json.dumps(f.cell, sort_keys=True): f for f in result.failed}
    datasets = [(cell, store.load(cell)) for cell in cells]
    rows = [summarise_cell(cell, data) for cell, data in datasets if data is not None]
    seconds = time.perf_counter() - begun
    if json_:
        failures = [{"cell": f.cell, "error": f.error, "message": f.message} for f in result.failed]
        print(json.dumps({"seconds": round(seconds, 3), "cells": rows, "failed": failures}, indent=1))
    else:
        _print_table(rows, seconds, len(result.skipped), list(failed.values()))
    if rows:
        from understudy.plots.sweep import draw_sweep

        paths = draw_sweep(rows, out / f"sweep-{configuration_hash({'cells': cells})}")
        if not json_:
            typer.echo("Figure: " + ", ".join(str(p) for p in paths))
    if failed:
        raise typer.Exit(1)


def fit_cell(cell: dict[str, Any]) -> xr.Dataset:
    """One cell of the grid: all its seeds, as the rows of one dataset."""
    from understudy.commands.fit import compute_rows
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    return compute_rows(make_task(cell), cell, list(cell["seeds"]))


def make_cells(
    activations: list[str],
    teachers: list[int],
    students: list[int],
    dims: list[str],
    seeds: list[int],
    outgoing: list[str],
    inits: list[str],
    stds: list[float],
    tolerance: float,
) -> list[dict[str, Any]]:
    """The product of the axes, each cell checked before anything runs."""
    from understudy import activations as known
    from understudy.sweeps import grid

    cells = []
    for cell in grid(
        activation=activations,
        teacher=teachers,
        student=students,
        dim=dims,
        outgoing=outgoing,
        init=inits,
        init_std=stds,
    ):
        cell = {"kind": "sweep-fit", **cell, "seeds": seeds, "tolerance": tolerance}
        cell["dim"] = _dimension(str(cell["dim"]), cell["teacher"])
        try:
            known.get(cell["activation"])
            check_start(cell)
            if cell["outgoing"] not in ("trained", "fixed"):
                raise ValueError(f"--outgoing is 'trained' or 'fixed'; received {cell['outgoing']!r}.")
            if cell["dim"] < cell["teacher"]:
                raise ValueError(
                    f"{cell['teacher']} orthonormal teachers need at least as many dimensions; "
                    f"received dim={cell['dim']}."
                )
        except ValueError as error:
            fail(str(error))
        cells.append(cell)
    return cells


def parse_numbers(text: str, option: str) -> list[int]:
    """`4`, `2,4,8`, `2-8` or `8-32:4` (with a step) as a list of positive whole numbers."""
    numbers: list[int] = []
    try:
        for part in text.split(","):
            span, _, step = part.partition(":")
            low, _, high = span.partition("-")
            numbers += range(int(low), int(high or low) + 1, int(step or 1))
    except ValueError:
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


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        fail(f"{option} is a number or several separated by commas; received {text!r}.")


def summarise_cell(cell: dict[str, Any], data: xr.Dataset) -> dict[str, Any]:
    """What a cell's runs ended in: counts by label, best loss (None if no run has one), worst gradient norm."""
    from understudy.summaries import summarise

    lines = summarise(data, cell)
    losses = [float(loss) for loss in data["loss"].values if not math.isnan(loss)]
    return {
        **{k: cell[k] for k in ("activation", "teacher", "student", "dim", "outgoing", "init", "init_std")},
        "runs": int(data.sizes["seed"]),
        "points": [
            {"kind": x.kind, "label": x.label, "count": x.count, "loss": x.loss, "theory": x.predicted_loss}
            for x in lines
        ],
        "best_loss": min(losses, default=None),
        "largest_gradient_norm": float(data["gradient_norm"].values.max()),
    }


def _with_progress(work: Any, quiet: bool) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True) as bar:
        item = bar.add_task("cells", total=None)

        def show(p: Any) -> None:
            left = "" if p.seconds_left is None else f", about {p.seconds_left:.0f} s left"
            skipped = f", {p.skipped} stored before" if p.skipped else ""
            bar.update(
                item, total=p.total, completed=p.done + p.skipped + p.failed, description=f"cells{skipped}{left}"
            )

        return work(show)


def _print_table(rows: list[dict[str, Any]], seconds: float, skipped: int, failed: list[Any]) -> None:
    from rich.console import Console

    table = new_table()
    for name in ("activation", "k", "n", "d"):
        table.add_column(name, justify="left" if name == "activation" else "right", overflow="fold")
    varied = [name for name in ("outgoing", "init", "init_std") if len({row[name] for row in rows}) > 1]
    if varied:
        table.add_column(", ".join(name.replace("_", " ") for name in varied), overflow="fold")
    table.add_column("where the runs end", overflow="fold")
    table.add_column("best loss", justify="right", no_wrap=True)
    table.add_column("|∇L|", justify="right", no_wrap=True)
    console = Console()
    shape = on_two_lines if varied and console.width < 100 else str
    for row in rows:
        ends = "\n".join(
            f"{p['count']} {shape(p['label'])}" + ("" if p["kind"] == "minimum" else f" ({p['kind']})")
            for p in row["points"][:3]
        )
        more = len(row["points"]) - 3
        table.add_row(
            row["activation"],
            str(row["teacher"]),
            str(row["student"]),
            str(row["dim"]),
            *([", ".join(str(row[name]) for name in varied)] if varied else []),
            ends + (f"\n{more} more kinds" if more > 0 else ""),
            "not a number" if row["best_loss"] is None else f"{row['best_loss']:.9f}",
            f"≤ {row['largest_gradient_norm']:.0e}",
        )
    console.print(table)
    console.print(f"{len(rows)} cell{'s' * (len(rows) != 1)} in {seconds:.1f} s, {skipped} of them stored before.")
    for failure in failed:
        console.print(f"[bold]failed[/]: {failure}", soft_wrap=True)
