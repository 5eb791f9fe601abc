"""`understudy grow`: grow a student neuron by neuron, by splitting the averaging neuron."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.options import check_out, options_of, read_place, translate
from understudy.commands.screen import fail, new_table, show_table, storing, tell_files

if TYPE_CHECKING:
    from understudy.experiments.collecting import Place
    from understudy.experiments.growing import Grow
    from understudy.tasks.task import Task

OPTIONS = options_of("student", "layer", "mu", "push", "cluster", "scheduler_file", width="--student")
WIDE = 120  # columns of a screen that has room for the other neurons, too


def grow(
    activation: shared.Activation = "erf",
    teacher: shared.Teachers = 8,
    student: Annotated[int, typer.Option(help="Number of student neurons to grow to.")] = 4,
    dim: shared.Dim = None,
    angles: shared.Angles = None,
    teacher_file: shared.TeacherFile = None,
    result: Annotated[Path | None, typer.Option(help="A file stored by `fit --out`: grow its best run.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run in --result.")] = None,
    layer: shared.HiddenLayer = 0,
    mu: Annotated[float, typer.Option(help="Share of the first part when a neuron is split.")] = 0.5,
    push: Annotated[float, typer.Option(help="Length of the push along the least eigenvector.")] = 1e-2,
    cluster: shared.Cluster = None,
    scheduler_file: shared.SchedulerFile = None,
    out: shared.TableOut = None,
    json_: shared.Json = False,
) -> None:
    """Grow a student one neuron at a time: follow the flow, split the averaging neuron, push, and repeat.

    Example: `understudy grow --activation softplus --teacher 8 --student 6 --out results`
    """
    begun = time.perf_counter()
    check_out(out)
    from understudy.commands.sources import name_by_hash
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    try:
        numbers = {"student": student, "layer": layer, "mu": mu, "push": push}
        described, task, told = _describe((activation, teacher, dim, angles, teacher_file), result, seed, **numbers)
        stages = _grow(described, read_place(cluster, scheduler_file), json_)
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        fail(translate(error, OPTIONS))
    content = {"task": told, "seconds": round(time.perf_counter() - begun, 3), "stages": stages}
    if json_:
        print(json.dumps(content, indent=1))
    else:
        _print(content)
    if out is not None:
        _store(content, out / name_by_hash("grow", told, task, **numbers), json_)


def _describe(
    source: tuple[Any, ...], result: Path | None, seed: int | None, **numbers: Any
) -> tuple[Grow, Task, dict[str, Any]]:
    """The growth that the options describe, its first task, and a readable description."""
    import numpy as np

    from understudy.commands.sources import describe_source, read_run, read_teacher
    from understudy.experiments.fit import Fit
    from understudy.experiments.growing import Grow
    from understudy.surgery.grow import first_neuron
    from understudy.tasks import Population

    student = numbers["student"]
    if result is not None:
        fit, task, point, told = read_run(result, seed, reduced=False)
        start = np.asarray(task.flatten(point))
        return Grow(fit, **numbers, start=start), task, {**told, "grown to": student}
    teacher = read_teacher(*source)
    task = Population(teacher, 1)
    arrays = {name: array for name, (_, array) in task.givens().items()}
    told = describe_source(teacher, student)
    fit = Fit(student=1, activation=teacher.activation.name, arrays=arrays)
    return Grow(fit, **numbers, start=np.asarray(task.flatten(first_neuron(teacher)))), task, told


def _grow(described: Grow, place: Place | None, quiet: bool) -> list[dict[str, Any]]:
    from understudy.commands.progress import reporting
    from understudy.experiments.growing import collect_stages

    with reporting("neurons", quiet) as reporter:
        return collect_stages(
            described,
            place,
            lambda stage: reporter.show(stage.width, described.student, f"loss {stage.loss:.6g}"),
        )


def _store(content: dict[str, Any], stem: Path, quiet: bool) -> None:
    from understudy import plots
    from understudy.files import write_json

    with storing():
        paths = plots.save(plots.grow(content["stages"], content["task"]), stem)
        paths.append(write_json(stem.with_name(f"{stem.name}.json"), content))
    if not quiet:
        tell_files("Files", paths)


def _print(content: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    wide = console.width >= WIDE
    others = ("others: |w|", "a", "u") if wide else ()
    heads = ("n", "verdict", "label", "loss", "average: |w|", "a", *others, "split", *(("λ",) if wide else ()))
    table = new_table(heads, left=("verdict", "label"))
    for row in content["stages"]:
        rest = [i for i in range(row["width"]) if i != row["averaging"]]
        pick = lambda key, rest=rest, row=row: _range([_size(row[key][i]) for i in rest])  # noqa: E731
        table.add_row(
            str(row["width"]),
            row["kind"],
            row["label"],
            f"{row['loss']:.7g}",
            f"{row['norms'][row['averaging']]:.4f}",
            f"{_size(row['outgoing'][row['averaging']]):.4f}",
            *((pick("norms"), pick("outgoing"), pick("correlations_with_averaging")) if wide else ()),
            "" if row["split_neuron"] is None else str(row["split_neuron"]) + (f" ({row['scenario']})" if wide else ""),
            *(("" if row["pushed_along"] is None else f"{row['pushed_along']:.1e}",) if wide else ()),
        )
    show_table(console, table)
    taught = "teacher" in content["task"]
    chosen = "the neuron whose best match to a teacher is worst" if taught else "the neuron whose split has the least λ"
    rest_of_it = (
        "u: its correlation with the others; split: the neuron that was split (scenario); λ: eigenvalue of the push."
        if wide
        else f"split: the neuron that was split. A screen of {WIDE} columns shows more, and so does --json."
    )
    console.print(
        f"{content['seconds']:.1f} s. average: {chosen}; {rest_of_it}",
        highlight=False,
    )


def _size(weight: float | list[float]) -> float:
    """An outgoing weight, or the norm of several."""
    return math.hypot(*weight) if isinstance(weight, list) else weight


def _range(values: list[float]) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:.4f}" if high - low < 5e-5 else f"{low:.4f}…{high:.4f}"
