"""`understudy align`: train ReLU students by SGD, and count which of the teacher's nodes they recover."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.options import check_out, options_of, parse_seeds, translate
from understudy.commands.screen import exit_if_unstored, fail, new_table, show_table, tell_files, unstored
from understudy.extras import need

if TYPE_CHECKING:
    import xarray as xr

    from understudy.experiments.aligning import Experiment

OPTIONS = options_of(
    "teacher", "over", "polarity", "epochs", "dim", "outputs", "samples", "steps", "batch", "rate", "optimizer",
    "weight_decay", "init", "workers", "cluster", "scheduler_file",
)  # fmt: skip


def align(
    teacher: Annotated[
        str, typer.Option(help="Hidden widths of the teacher: 20, or 50-75-100-125 for four layers.")
    ] = "20",
    over: Annotated[
        str, typer.Option(help="How many times wider than the teacher students are: 10, or 1,2,5,10.")
    ] = "10",
    polarity: Annotated[str, typer.Option(help="p: node j has the strength 1/j^p. 1.5, or 0.5,1,1.5.")] = "1.5",
    seeds: shared.Seeds = "32",
    epochs: Annotated[int, typer.Option(help="Number of epochs.")] = 100,
    dim: Annotated[int, typer.Option(help="Input dimension.")] = 100,
    outputs: Annotated[int, typer.Option(help="Number of outputs.")] = 50,
    samples: Annotated[int, typer.Option(help="Number of training samples, and of evaluation samples.")] = 10_000,
    steps: Annotated[int, typer.Option(help="Batches per epoch.")] = 1000,
    batch: Annotated[int, typer.Option(help="Samples per batch.")] = 16,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = 0.01,
    optimizer: Annotated[str, typer.Option(help="sgd or adam.")] = "sgd",
    weight_decay: Annotated[float, typer.Option(help="Weight decay.")] = 0.0,
    init: Annotated[
        float, typer.Option(help="Standard deviation of the initial weights; 0 for Glorot's rule.")
    ] = 0.005,
    standardise: Annotated[
        bool, typer.Option("--standardise", help="Scale the teachers' outputs to mean 0 and variance 1.")
    ] = False,
    threshold: Annotated[float, typer.Option(help="Correlation above which a teacher counts as recovered.")] = 0.95,
    workers: Annotated[
        int | None, typer.Option("--jobs", "--workers", help="Number of threads. Default: one per core.")
    ] = None,
    cluster: shared.Cluster = None,
    scheduler_file: shared.SchedulerFile = None,
    out: Annotated[Path | None, typer.Option(help="Directory for stored results, checkpoints and the figure.")] = None,
    json_: shared.Json = False,
) -> None:
    """Train ReLU students on teachers with strong and weak nodes, and count the nodes that they recover.

    Lists of `--over` and `--polarity` make a grid. With `--out` finished cells are reused, and an interrupted cell
    continues. With `--cluster` groups of seeds are trained on its workers, as `understudy sweep` does with cells.

    Example: `understudy align --teacher 20 --over 10 --polarity 1.5 --seeds 32 --epochs 100 --out results/align`
    """
    begun = time.perf_counter()
    numbers = parse_seeds(seeds)
    need("store", "train")
    check_out(out)
    remote = cluster is not None or scheduler_file is not None
    _check(threshold, workers, remote, out)
    widths = _numbers(teacher.split("-"), "--teacher", "20 or 50-75-100-125")
    if any(m != int(m) for m in widths):
        fail(f"--teacher is whole numbers joined by hyphens, such as 20 or 50-75-100-125; received {teacher!r}.")
    if "jax" not in sys.modules:  # our own threads share the seeds; threads inside small products only cost
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    from understudy.compilation import keep_compiled_programs
    from understudy.experiments.aligning import Experiment, schedule, summarise_recovery
    from understudy.experiments.estimates import check_align

    keep_compiled_programs()
    factors = _numbers(over.split(","), "--over", "10 or 1,2,5,10")
    powers = _numbers(polarity.split(","), "--polarity", "1.5 or 0.5,1,1.5")
    try:
        cells = [
            Experiment(
                teacher=tuple(int(m) for m in widths), over=factor, polarity=power, dim=dim, outputs=outputs,
                samples=samples, evaluation=samples, optimizer=optimizer, rate=rate, weight_decay=weight_decay,
                batch=batch, steps=steps, init=init, standardise=standardise, record=schedule(epochs),
            )
            for power in powers
            for factor in factors
        ]  # fmt: skip
        for cell in cells:
            check_align(cell, len(numbers))
    except ValueError as error:
        fail(translate(error, OPTIONS))
    results, unsaved = _train(cells, numbers, out, workers, (cluster, scheduler_file) if remote else None, json_)
    summaries = [summarise_recovery(cell, rows, threshold) for cell, rows in zip(cells, results, strict=True)]
    seconds = time.perf_counter() - begun
    if json_:
        print(json.dumps({"seconds": round(seconds, 3), "threshold": threshold, "cells": summaries}, indent=1))
    else:
        _print_table(summaries, seconds)
    if out is not None and unsaved is None:
        unsaved = _draw(cells, results, numbers, threshold, out, json_)
    exit_if_unstored(None if unsaved is None else unstored(unsaved))


def _check(threshold: float, workers: int | None, remote: bool, out: Path | None) -> None:
    if not 0 < threshold < 1:
        fail(f"--threshold is a correlation between 0 and 1; received {threshold}.")
    if workers is not None and workers < 1:
        fail(f"--jobs is at least 1; received {workers}.")
    if remote and out is None:
        fail("Results of a cluster are kept in a directory; name one with --out.")
    if remote and workers is not None:
        fail(f"A cluster's workers have threads of their own; received --jobs {workers}: leave it out.")


def _numbers(parts: list[str], option: str, example: str) -> list[float]:
    try:
        found = [float(part) for part in parts]
    except ValueError:
        fail(f"{option} is a number or several, such as {example}; received {','.join(parts)!r}.")
    if not all(math.isfinite(x) for x in found) or (len(set(found)) != len(found) and option != "--teacher"):
        fail(f"{option} takes distinct finite numbers, such as {example}; received {','.join(parts)!r}.")
    return found


def _train(
    cells: list[Experiment], seeds: list[int], out: Path | None, workers: int | None, remote: Any, quiet: bool
) -> tuple[list[xr.Dataset], str | None]:
    """Rows of every cell, and the reason if they could not be stored."""
    from understudy.commands.progress import reporting
    from understudy.experiments import aligning
    from understudy.store import Store

    try:
        with reporting("cells" if remote is None else "seeds", quiet) as reporter:
            if remote is not None:
                store, place = Store(out or "."), dict(zip(("cluster", "scheduler_file"), remote, strict=True))
                return aligning.collect_on_cluster(cells, seeds, store, **place, progress=reporter.collecting), None
            found, unsaved = [], None
            for number, cell in enumerate(cells):
                note = f"{cell.over:g}x, p = {cell.polarity:g}"

                def show(share: float, done: int = number, note: str = note) -> None:
                    reporter.show(done + share, len(cells), note)

                try:
                    rows = aligning.collect(
                        cell, seeds, None if out is None else Store(out), workers=workers, progress=show
                    )
                except aligning.NotStoredError as error:
                    rows, unsaved = error.rows, str(error)
                found.append(rows)
            return found, unsaved
    except KeyboardInterrupt:
        kept = (
            f"finished work is kept in {out}; run the same command to continue"
            if out
            else "nothing is kept: there is no --out"
        )
        typer.echo(f"Interrupted: {kept}.", err=True)
        raise typer.Exit(130) from None
    except (OSError, ValueError, RuntimeError) as error:
        fail(translate(error, OPTIONS))


def _draw(
    cells: list[Experiment], results: list[xr.Dataset], seeds: list[int], threshold: float, out: Path, quiet: bool
) -> str | None:
    """Save the figure. Returns the reason if that was not possible."""
    from understudy import plots
    from understudy.files import content_hash

    asked = {"cells": [cell.configuration() for cell in cells], "seeds": seeds, "threshold": threshold}
    try:
        paths = plots.save(plots.align(cells, results, threshold), out / f"align-{content_hash(asked)}")
    except OSError as error:
        return str(error)
    if not quiet:
        tell_files("Figure", paths)
    return None


def _print_table(summaries: list[dict[str, Any]], seconds: float) -> None:
    from rich.console import Console

    table = new_table(("p", "over", "layer", "k", "n", "seeds", "epoch 5", "recovered", "loss"))
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
    show_table(console, table)
    console.print(
        f"{seconds:.1f} s. k, n: teachers and students in the layer; epoch 5, recovered: share of teachers recovered "
        "then, and at the end with a 95 % bootstrap interval over seeds; "
        "loss: median of ½ mean ‖f* - f‖² on evaluation samples.",
        highlight=False,
    )


def _with_interval(entry: dict[str, Any]) -> str:
    text = f"{100 * entry['recovered']:.1f} %"
    return text if entry["low"] is None else f"{text} [{100 * entry['low']:.1f}, {100 * entry['high']:.1f}]"
