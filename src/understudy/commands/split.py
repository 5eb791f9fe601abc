"""`understudy split`: split each neuron of a minimum and certify the result."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.options import check_out, parse_list
from understudy.commands.screen import fail, new_table, show_table, storing, tell_files

if TYPE_CHECKING:
    from understudy.tasks.task import Task


def split(
    activation: shared.Activation = "erf",
    teacher: shared.Teachers = 5,
    student: Annotated[int, typer.Option(help="Number n of student neurons before the split.")] = 2,
    dim: shared.Dim = None,
    angles: shared.Angles = None,
    teacher_file: shared.TeacherFile = None,
    result: Annotated[Path | None, typer.Option(help="A file stored by `fit --out`: split its best run.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run in --result, or of the start.")] = None,
    neuron: Annotated[int | None, typer.Option(help="Split only this neuron.")] = None,
    layer: shared.HiddenLayer = 0,
    mus: Annotated[str, typer.Option(help="Shares μ to certify, such as -1,0.5.")] = "-1,-0.25,0,0.25,0.5",
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Push each split point (except non-strict saddles) both ways; follow the flow."),
    ] = False,
    out: shared.TableOut = None,
    json_: shared.Json = False,
) -> None:
    """Split each neuron of a minimum, certify the split points, and follow the flow from them.

    Split points are minima for μ in (0, 1) in scenario i, outside [0, 1] in scenario ii, and nowhere in scenario iii
    (few-neurons, Theorem 4.1).

    Example:
    `understudy split --activation softplus --angles 0,0.25,0.75,1.5 --student 4 --seed 3 --follow --out results`
    """
    begun = time.perf_counter()
    check_out(out)
    shares = parse_list(mus, "--mus", "--mus=-1,0.5")
    from understudy.commands.progress import reporting
    from understudy.commands.sources import describe_source, name_by_hash, read_run, read_teacher
    from understudy.compilation import keep_compiled_programs
    from understudy.experiments.splitting import find_minimum, population_of

    keep_compiled_programs()
    try:
        if result is not None:
            _, task, point, told = read_run(result, seed)
        else:
            source = read_teacher(activation, teacher, dim, angles, teacher_file)
            told = describe_source(source, student)
            task = population_of(source, student)
            with reporting("starts", json_) as reporter:
                point, told["seed"] = find_minimum(
                    task, seed, lambda p: reporter.show(p.finished, p.total, f"flow to a minimum, t ≤ {p.time:.3g}")
                )
        report = _split(task, point, neuron, shares, layer, follow, json_)
    except (ValueError, TypeError) as error:
        fail(str(error))
    content = {"task": told, "seconds": round(time.perf_counter() - begun, 3), **report["json"]}
    if json_:
        print(json.dumps(content, indent=1))
    else:
        _print(report["json"])
    if out is not None:
        from understudy import plots
        from understudy.files import write_json

        name = name_by_hash("split", told, task, mus=shares, neuron=neuron, layer=layer, follow=follow)
        with storing():
            paths = plots.save(plots.split(report["lines"], report["json"]), out / name)
            paths.append(write_json(out / f"{name}.json", content))
        if not json_:
            tell_files("Files", paths)


def _split(
    task: Task, point: Any, neuron: int | None, shares: list[float], layer: int, follow: bool, quiet: bool
) -> dict[str, Any]:
    """The report on the splits of one neuron, or of all; progress is shown."""
    from understudy.commands.progress import reporting
    from understudy.experiments.splitting import split_report

    width = task.hidden_layer(point, layer).width
    if neuron is not None and not 0 <= neuron < width:
        raise ValueError(f"The student has neurons 0 to {width - 1}; received --neuron {neuron}.")
    neurons = list(range(width)) if neuron is None else [neuron]
    with reporting("neurons split", quiet) as reporter:

        def show(done: float, note: str) -> None:
            reporter.show(done, len(neurons), note)

        return split_report(task, point, neurons, shares, layer=layer, follow=follow, watch=show)


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    point = report["point"]
    console.print(
        f"The point: {point['kind']}, loss {point['loss']:.9g}, |∇L| {point['gradient_norm']:.0e}, "
        f"least λ {point['least_eigenvalue']:.1e}",
        highlight=False,
    )
    for row in report["neurons"]:
        weights = row["outgoing"] if isinstance(row["outgoing"], list) else [row["outgoing"]]
        console.print(
            f"\n[bold]Neuron {row['neuron']}[/]: a = {', '.join(f'{a:.3f}' for a in weights)}, |w| = "
            f"{row['norm']:.3f}, "
            f"scenario {row['scenario']}, eigenvalues of Y {row['least_of_Y']:.1e} to {row['largest_of_Y']:.1e}",
            highlight=False,
        )
        table = new_table(("μ", "verdict", "index", "least λ", "lower bound", "upper bound"), left=("verdict",))
        for s in row["splits"]:
            values = [s[key] for key in ("least_eigenvalue", "lower_bound", "upper_bound")]
            numbers = ("" if value is None else f"{value:.1e}" for value in values)
            table.add_row(f"{s['mu']:g}", s["kind"], str(s["index"]), *numbers)
        show_table(console, table)
    console.print(
        "least λ: least Hessian eigenvalue; bounds: of the least one that is not trivially zero (App. D.2.1, Lemma "
        "4.2; the upper one for one output).",
        highlight=False,
    )
    for row in report["neurons"]:
        for d in row.get("destinations", []):
            sign = "+" if d["sign"] > 0 else "-"
            words = d["escape"] or f"{d['kind']}, loss {d['loss']:.7g}"
            console.print(
                f"neuron {row['neuron']}, μ = {d['mu']:g}, push {sign}: {d['name']} ({words})",
                highlight=False,
                soft_wrap=True,
            )
