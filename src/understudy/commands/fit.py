"""`understudy fit`: from random starts to certified, explained critical points."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.describing import describe, read_activation
from understudy.commands.options import (
    check_limit,
    check_out,
    option_of,
    options_of,
    parse_list,
    parse_seeds,
    read_place,
    translate,
)
from understudy.commands.screen import (
    complain,
    exit_interrupted,
    fail,
    new_table,
    on_two_lines,
    show_table,
    tell_files,
    unstored,
)

if TYPE_CHECKING:
    from understudy.experiments.collecting import Place
    from understudy.experiments.fit_seeds import FitOutcome
    from understudy.experiments.flow_fit import FlowFit

OPTIONS = options_of(
    "teacher", "student", "activation", "dim", "outgoing", "sphere", "init", "init_std", "tolerance", "max_time",
    "times", "proof", "cluster", "scheduler_file", "bias", "mean", "covariance", "student_activation", "layers", "cost",
    "penalty", "outputs", "jobs", workers="--jobs", width="--student",
)  # fmt: skip
CONTINUED = ("tolerance", "max_time", "times", "proof")
"""What `--continue` may change."""
FUNCTIONS = ("activation", "student_activation")


def fit(
    context: typer.Context,
    activation: shared.AnyActivation = "erf",
    teacher: Annotated[
        str | None,
        typer.Option(help="Number k of orthonormal teachers with outgoing weights 1, or a file.", show_default="8"),
    ] = None,
    student: Annotated[int | None, typer.Option(help="Number n of student neurons.", show_default="4")] = None,
    data: shared.Data = None,
    layers: Annotated[
        str | None, typer.Option(help="With --data: hidden layers of a deeper network with biases, such as 16-16.")
    ] = None,
    target: shared.Target = None,
    cost: shared.DataCost = None,
    penalty: shared.Penalty = None,
    held_out: Annotated[
        str | None,
        typer.Option(help="With --data: share of the rows not trained on, or a file.", show_default="0.2"),
    ] = None,
    seeds: shared.Seeds = "20",
    dim: shared.Dim = None,
    outgoing: shared.Outgoing = None,
    outputs: Annotated[
        int | None, typer.Option(help="Number m of outputs; teacher j writes to output j mod m.", show_default="1")
    ] = None,
    student_activation: shared.StudentActivation = None,
    bias: Annotated[
        str | None,
        typer.Option(help="none, or trained (a bias per student, and an offset).", show_default="none"),
    ] = None,
    mean: shared.Mean = None,
    covariance: shared.InputCovariance = None,
    sphere: shared.Sphere = False,
    init_std: Annotated[
        float | None, typer.Option(help="Standard deviation of the initial weights.", show_default="0.1")
    ] = None,
    init: Annotated[str | None, typer.Option(help="gaussian or glorot.", show_default="gaussian")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Relative and absolute tolerance of the flow.", show_default="1e-6")
    ] = None,
    max_time: Annotated[float | None, typer.Option(help="Largest flow time of a run.", show_default="1e12")] = None,
    times: Annotated[
        str | None, typer.Option(help="Keep parameters at these times, such as 0.1,1,10. Default: log-spaced.")
    ] = None,
    continue_: Annotated[
        Path | None,
        typer.Option("--continue", help="Continue from the end points of a stored result (a file or a directory)."),
    ] = None,
    proof: Annotated[bool, typer.Option("--proof", help="Also prove what each end point is (extra 'proofs').")] = False,
    limit: shared.Limit = None,
    jobs: shared.Jobs = None,
    cluster: shared.Cluster = None,
    scheduler_file: shared.SchedulerFile = None,
    out: shared.FigureOut = None,
    json_: shared.Json = False,
) -> None:
    """Follow gradient flow from many seeds to critical points, certify each, and show what every neuron became.

    On your data: `understudy fit --data table.csv --student 8 --activation tanh`

    Example: `understudy fit --activation erf --teacher 8 --student 4 --seeds 20 --out results`
    """
    begun = time.perf_counter()
    numbers = parse_seeds(seeds)
    check_out(out)
    check_limit(limit)
    chosen = {
        "activation": activation, "teacher": teacher, "student": student, "dim": dim, "outgoing": outgoing,
        "data": data, "layers": layers, "target": target, "cost": cost, "penalty": penalty, "held_out": held_out,
        "outputs": outputs,
        "student_activation": student_activation, "bias": bias, "mean": mean, "covariance": covariance,
        "sphere": sphere, "init": init, "init_std": init_std, "tolerance": tolerance, "max_time": max_time,
        "times": None if times is None else tuple(parse_list(times, "--times", "0.1,1,10")), "proof": proof or None,
    }  # fmt: skip
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    starts = None
    try:
        place = read_place(cluster, scheduler_file)
        if continue_ is not None:
            description, starts, numbers = _continued(continue_, numbers, chosen, place, context)
        else:
            description = describe(chosen)
        from understudy.experiments.estimates import check_fit
        from understudy.processes import job_count

        job_count(jobs)
        check_fit(description, len(numbers))
    except (ValueError, TypeError, OSError) as error:
        fail(translate(error, OPTIONS))
    if not json_:
        _say(f"{description.headline()}, {len(numbers)} seeds")
    outcome = _collect(description, numbers, out, place, jobs, limit, starts, quiet=json_)
    _report(description, outcome, time.perf_counter() - begun, json_)
    if out is not None and len(outcome.runs):
        _draw(description, outcome, out, json_)
    _complain(outcome, len(numbers), limit)


def _continued(
    place: Path, seeds: list[int], chosen: dict[str, Any], where: Place | None, context: typer.Context
) -> tuple[FlowFit, dict[int, Any], list[int]]:
    """The fit that continues a stored one, its starts by seed, and the seeds to continue: all, unless they are given.

    Everything else is as in the stored fit, so options that describe a task are refused.
    """
    from understudy.experiments.continuing import continue_fit
    from understudy.experiments.flow_fit import name_of_activation

    if where is not None:
        raise ValueError("--continue works on this machine; leave --cluster and --scheduler-file out.")
    for name, value in chosen.items():
        if name not in (*CONTINUED, *FUNCTIONS) and value is not None and value is not False:
            raise ValueError(
                f"--continue takes the task and its starts from the stored fit. Leave {option_of(name)} out."
            )
    # Import `module:function` before reading the stored fit, which refers to it by name.
    typed = {name: read_activation(chosen[name]) for name in FUNCTIONS if _was_typed(context, name)}
    changes = {name: chosen[name] for name in CONTINUED if chosen[name] is not None}
    description, ends, numbers = continue_fit(place, seeds if _was_typed(context, "seeds") else None, **changes)
    for name, activation in typed.items():
        stored = getattr(description, name, None) or description.activation
        if name_of_activation(activation) != name_of_activation(stored):
            option = option_of(name)
            raise ValueError(f"The stored fit has {stored}; received {option} {activation}. Leave {option} out.")
    return description, ends, numbers


def _was_typed(context: typer.Context, option: str) -> bool:
    """Whether an option is on the command line, and not at its default."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _collect(
    description: FlowFit, seeds: list[int], out: Path | None, place: Place | None, jobs: int | None,
    limit: float | None, starts: Any, quiet: bool,
) -> FitOutcome:  # fmt: skip
    from understudy.commands.progress import reporting
    from understudy.experiments.fit_seeds import collect_fit

    try:
        store = None
        if out is not None:
            from understudy.store import Store

            store = Store(out)
        with reporting("seeds", quiet) as reporter:
            return collect_fit(
                description,
                seeds,
                store,
                place=place,
                progress=reporter.collecting,
                limit=limit,
                starts=starts,
                jobs=jobs,
            )
    except KeyboardInterrupt:
        exit_interrupted("seeds", out)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        fail(translate(error, OPTIONS))


def _report(description: FlowFit, outcome: FitOutcome, seconds: float, as_json: bool) -> None:
    if as_json:
        from understudy.files import jsonable

        task = {k: v for k, v in description.configuration().items() if k != "kind"}
        runs = [{k: None if v != v else v for k, v in run.summary().items()} for run in outcome.runs]
        for row, run in zip(runs, outcome.runs, strict=True):
            if (proof := run.certificate.proof) is not None:
                row["proof"] = {"holds": proof.holds, "statement": proof.statement}
        print(json.dumps(jsonable({"task": task, "seconds": round(seconds, 3), "runs": runs}), indent=1))
    elif len(outcome.runs):
        print_runs(outcome.runs, seconds, outcome.reused)
        _tell_proofs(outcome)


def _tell_proofs(outcome: FitOutcome) -> None:
    """Count the proved end points by kind, and say why the others were not proved."""
    proofs = [run.certificate.proof for run in outcome.runs if run.certificate.proof is not None]
    told = Counter(f"proved: {p.kind}" if p.holds else f"not proved: {p.reason}" for p in proofs)
    for words, count in told.most_common():
        _say(f"{count} of {len(proofs)} {words}")


def print_runs(runs: Any, seconds: float, reused: int) -> None:
    """Print the table of runs; long words take two lines on a narrow screen."""
    from rich.console import Console

    from understudy.results.table import HELD_OUT, LEGEND, columns, tell_biases, tell_reasons, tell_recovery

    heads, rows = columns(runs.lines)
    console = Console()
    # 46 columns are the numbers and the space between; 10 more if there is a theory.
    room = console.width - 46 - 10 * sum(head in ("- theory", "held out") for head in heads)
    if max(len(row[0]) for row in rows) + max(len(row[1]) for row in rows) > room:
        rows = [[row[0].replace(" ", "\n"), on_two_lines(row[1]), *row[2:]] for row in rows]
    table = new_table()
    table.add_column(heads[0], no_wrap=True)
    table.add_column(heads[1], overflow="fold")
    for head in heads[2:]:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    show_table(console, table)
    recovery = tell_recovery(runs)
    for sentence in [*tell_reasons(runs), *tell_biases(runs), *([recovery] if recovery else [])]:
        console.print(sentence, highlight=False)
    again = f", {reused} seeds reused from the store" if reused else ""
    legend = f"{HELD_OUT} {LEGEND}" if "held out" in heads else LEGEND
    console.print(f"{len(runs)} runs in {seconds:.1f} s{again}. {legend}", highlight=False)


def _draw(description: FlowFit, outcome: FitOutcome, out: Path, quiet: bool) -> None:
    from understudy import plots
    from understudy.plots.style import save
    from understudy.store import Store

    try:
        paths = save(
            plots.fit(outcome.runs, rows=outcome.rows), Store(out).path(description.configuration()).with_suffix("")
        )
    except OSError as error:
        complain(f"The figure could not be written: {error}")
        return
    if not quiet:
        tell_files("Figure", paths)


def _complain(outcome: FitOutcome, asked: int, limit: float | None) -> None:
    """Report unfinished work. Exit with code 1 if there is any."""
    for failure in outcome.failed:
        complain(f"failed: {failure}")
    if outcome.unfinished:
        complain(f"{len(outcome.runs)} of {asked} seeds finished within --limit {limit:g} s.")
    if outcome.unsaved is not None:
        complain(unstored(outcome.unsaved))
    if outcome.abandoned:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # a compilation under way in the worker thread cannot be interrupted otherwise
    if outcome.failed or outcome.unfinished or outcome.unsaved is not None:
        raise typer.Exit(1)


def _say(text: str) -> None:
    from rich.console import Console

    Console().print(text, soft_wrap=True)
