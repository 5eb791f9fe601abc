"""`understudy align`: ReLU students trained by SGD on a teacher of strong and weak nodes; which of them they recover."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands.options import check_out, parse_seeds
from understudy.commands.screen import fail, new_table

if TYPE_CHECKING:
    import xarray as xr

    from understudy.experiments.aligning import Experiment


def align(
    teacher: Annotated[
        str, typer.Option(help="Hidden widths of the teacher: 20, or 50-75-100-125 for four layers.")
    ] = "20",
    over: Annotated[str, typer.Option(help="How many times wider the students are: 10, or 1,2,5,10.")] = "10",
    polarity: Annotated[str, typer.Option(help="p of the teachers' strengths 1/j^p: 1.5, or 0.5,1,1.5.")] = "1.5",
    seeds: Annotated[str, typer.Option(help="How many seeds, or which: 32, or 0,3,7, or 5-9.")] = "32",
    epochs: Annotated[int, typer.Option(help="How long to train.")] = 100,
    dim: Annotated[int, typer.Option(help="Input dimension.")] = 100,
    outputs: Annotated[int, typer.Option(help="Number of outputs.")] = 50,
    samples: Annotated[int, typer.Option(help="Training samples, and as many to evaluate on.")] = 10_000,
    steps: Annotated[int, typer.Option(help="Batches an epoch.")] = 1000,
    batch: Annotated[int, typer.Option(help="Samples a batch.")] = 16,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = 0.01,
    optimizer: Annotated[str, typer.Option(help="sgd or adam.")] = "sgd",
    weight_decay: Annotated[float, typer.Option(help="Weight decay.")] = 0.0,
    init: Annotated[float, typer.Option(help="Standard deviation of the students' weights; 0 for Glorot's.")] = 0.005,
    standardise: Annotated[
        bool, typer.Option("--standardise", help="Teachers' outputs of mean 0, variance 1.")
    ] = False,
    threshold: Annotated[float, typer.Option(help="Correlation above which a teacher counts as recovered.")] = 0.95,
    workers: Annotated[int | None, typer.Option(help="Threads; one a core unless given.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:8786.")] = None,
    scheduler_file: Annotated[Path | None, typer.Option(help="Scheduler file of a Dask cluster.")] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for stored results, checkpoints and the figure.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Train ReLU students on teachers of strong and weak nodes and say which of them they recover, with intervals over seeds.

    Lists of `--over` and `--polarity` make a grid. With `--out` finished cells are reused, and an interrupted one goes on from its last checkpoint.
    With `--cluster` groups of seeds are trained on its workers, as `understudy sweep` does with cells.

    Example: `understudy align --teacher 20 --over 10 --polarity 1.5 --seeds 32 --epochs 100 --out results/align`
    """
    begun = time.perf_counter()
    numbers = parse_seeds(seeds)
    check_out(out)
    if not 0 < threshold < 1:
        fail(f"--threshold is a correlation between 0 and 1; received {threshold}.")
    if workers is not None and workers < 1:
        fail(f"--workers is at least 1; received {workers}.")
    if (cluster or scheduler_file) and out is None:
        fail("What a cluster trains is kept in a directory; name one with --out.")
    if (cluster or scheduler_file) and workers is not None:
        fail(f"A cluster's workers have threads of their own; received --workers {workers}: leave it out.")
    widths = _numbers(teacher.split("-"), "--teacher", "20 or 50-75-100-125")
    if any(m != int(m) for m in widths):
        fail(f"--teacher is whole numbers joined by hyphens, as 20 or 50-75-100-125; received {teacher!r}.")
    factors = _numbers(over.split(","), "--over", "10 or 1,2,5,10")
    powers = _numbers(polarity.split(","), "--polarity", "1.5 or 0.5,1,1.5")
    if "jax" not in sys.modules:  # our own threads share the seeds; threads inside small products only cost
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    from understudy.compilation import keep_compiled_programs
    from understudy.experiments.aligning import Experiment, schedule

    keep_compiled_programs()
    try:
        cells = [
            Experiment(
                teacher=tuple(int(m) for m in widths),
                over=factor,
                polarity=power,
                dim=dim,
                outputs=outputs,
                samples=samples,
                evaluation=samples,
                optimizer=optimizer,
                rate=rate,
                weight_decay=weight_decay,
                batch=batch,
                steps=steps,
                init=init,
                standardise=standardise,
                record=schedule(epochs),
            )
            for power in powers
            for factor in factors
        ]
    except ValueError as error:
        fail(str(error))
    work = (
        partial(_on_cluster, cluster, scheduler_file, out)
        if out is not None and (cluster or scheduler_file)
        else partial(_here, out, workers)
    )
    results = _train(cells, numbers, out, work, quiet=json_)
    summaries = [summarise(cell, rows, threshold) for cell, rows in zip(cells, results, strict=True)]
    seconds = time.perf_counter() - begun
    if json_:
        print(json.dumps({"seconds": round(seconds, 3), "threshold": threshold, "cells": summaries}, indent=1))
    else:
        _print_table(summaries, seconds)
    if out is not None:
        from understudy import plots
        from understudy.store import configuration_hash

        asked = {"cells": [cell.configuration() for cell in cells], "seeds": numbers, "threshold": threshold}
        paths = plots.save(plots.align(cells, results, threshold), out / f"align-{configuration_hash(asked)}")
        if not json_:
            typer.echo("Figure: " + ", ".join(str(p) for p in paths))


def _numbers(parts: list[str], option: str, example: str) -> list[float]:
    try:
        found = [float(part) for part in parts]
    except ValueError:
        fail(f"{option} is a number or several, as {example}; received {','.join(parts)!r}.")
    if not all(math.isfinite(x) for x in found) or (len(set(found)) != len(found) and option != "--teacher"):
        fail(f"{option} is finite numbers, each once, as {example}; received {','.join(parts)!r}.")
    return found


def _train(
    cells: list[Experiment], seeds: list[int], out: Path | None, work: Callable[..., list[xr.Dataset]], quiet: bool
) -> list[xr.Dataset]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    try:
        with Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True) as bar:
            return work(cells, seeds, bar)
    except KeyboardInterrupt:
        kept = (
            f"finished work is kept in {out}; run the same command to go on"
            if out
            else "nothing is kept: there is no --out"
        )
        typer.echo(f"Interrupted: {kept}.", err=True)
        raise typer.Exit(130) from None
    except (OSError, ValueError, RuntimeError) as error:
        fail(str(error))


def _here(out: Path | None, workers: int | None, cells: list[Experiment], seeds: list[int], bar: Any) -> list[Any]:
    from understudy.experiments.aligning import collect
    from understudy.store import Store

    store = None if out is None else Store(out)
    results = []
    for number, cell in enumerate(cells, start=1):
        of = f"{number}/{len(cells)} " if len(cells) > 1 else ""
        item = bar.add_task(f"{of}{cell.over:g}x, p = {cell.polarity:g}", total=1.0)
        results.append(collect(cell, seeds, store, workers=workers, progress=partial(_show, bar, item)))
        bar.remove_task(item)
    return results


def _on_cluster(
    cluster: str | None, scheduler_file: Path | None, out: Path, cells: list[Experiment], seeds: list[int], bar: Any
) -> list[Any]:
    from understudy.experiments.aligning import collect_on_cluster
    from understudy.store import Store

    item = bar.add_task("groups of seeds", total=1.0)

    def show(p: Any) -> None:
        bar.update(item, completed=(p.done + p.skipped + p.failed) / max(p.total, 1))

    return collect_on_cluster(cells, seeds, Store(out), cluster=cluster, scheduler_file=scheduler_file, progress=show)


def _show(bar: Any, item: Any, share: float) -> None:
    bar.update(item, completed=share)


def summarise(cell: Experiment, rows: xr.Dataset, threshold: float) -> dict[str, Any]:
    """A cell in numbers: recovery with its interval by layer and epoch, evaluation loss by epoch."""
    import numpy as np

    from understudy.alignment import recovery_interval

    def clean(value: float) -> float | None:
        return value if math.isfinite(value) else None

    layers = []
    for l in range(1, len(cell.teacher) + 1):
        best = rows[f"best_of_teacher_{l}"].values
        by_epoch = []
        for i, epoch in enumerate(rows["epoch"].values):
            share, low, high = recovery_interval(best[:, i] > threshold)
            by_epoch.append({"epoch": float(epoch), "recovered": share, "low": clean(low), "high": clean(high)})
        layers.append(
            {"layer": l, "teachers": cell.teacher[l - 1], "students": cell.student[l - 1], "recovery": by_epoch}
        )
    return {
        "teacher": list(cell.teacher),
        "over": cell.over,
        "polarity": cell.polarity,
        "seeds": int(rows.sizes["seed"]),
        "epochs": cell.epochs,
        "layers": layers,
        "loss": [
            {"epoch": float(e), "median": clean(float(np.median(rows["loss"].values[:, i])))}
            for i, e in enumerate(rows["epoch"].values)
        ],
    }


def _print_table(summaries: list[dict[str, Any]], seconds: float) -> None:
    from rich.console import Console

    table = new_table()
    for name in ("p", "over", "layer", "k", "n", "seeds", "epoch 5", "recovered", "loss"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in summaries:
        for layer in cell["layers"]:
            early = next((r for r in layer["recovery"] if r["epoch"] == 5), None)
            last = layer["recovery"][-1]
            table.add_row(
                f"{cell['polarity']:g}",
                f"{cell['over']:g}x",
                str(layer["layer"]),
                str(layer["teachers"]),
                str(layer["students"]),
                str(cell["seeds"]),
                "" if early is None else f"{100 * early['recovered']:.1f} %",
                _with_interval(last),
                f"{cell['loss'][-1]['median']:.1e}" if cell["loss"][-1]["median"] is not None else "not finite",
            )
    console = Console()
    console.print(table)
    console.print(
        f"{seconds:.1f} s. k, n: teachers and students in the layer; epoch 5, recovered: share of teachers recovered then, and at the end with a 95 % bootstrap interval over seeds; "
        "loss: median of ½ mean ‖f* - f‖² on evaluation samples.",
        highlight=False,
    )


def _with_interval(entry: dict[str, Any]) -> str:
    text = f"{100 * entry['recovered']:.1f} %"
    return text if entry["low"] is None else f"{text} [{100 * entry['low']:.1f}, {100 * entry['high']:.1f}]"
