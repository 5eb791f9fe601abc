"""`understudy grow`: from one neuron to many, by splitting the averaging neuron."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.commands.options import check_out
from understudy.commands.screen import fail, new_table

WIDE = 120  # columns of a screen that has room for the other neurons, too


def grow(
    activation: Annotated[str, typer.Option(help="erf, softplus[:β], sigmoid, tanh, …; smooth ones.")] = "erf",
    teacher: Annotated[int, typer.Option(help="Number k of teacher neurons, orthonormal, outgoing weights 1.")] = 8,
    student: Annotated[int, typer.Option(help="Number of student neurons to grow to.")] = 4,
    dim: Annotated[int | None, typer.Option(help="Input dimension d; k + 1 unless given.")] = None,
    angles: Annotated[
        str | None, typer.Option(help="Teachers in the plane instead, in units of π: 0,0.25,1.5.")
    ] = None,
    teacher_file: Annotated[Path | None, typer.Option(help="Your teacher: JSON with incoming, outgoing.")] = None,
    result: Annotated[Path | None, typer.Option(help="A file that `fit --out` stored: grow its best run.")] = None,
    seed: Annotated[int | None, typer.Option(help="Which run of --result.")] = None,
    mu: Annotated[float, typer.Option(help="Share of the first part when a neuron is split.")] = 0.5,
    push: Annotated[float, typer.Option(help="Length of the push along the least eigenvector.")] = 1e-2,
    out: Annotated[Path | None, typer.Option(help="Directory for the figure and the table as JSON.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Grow a student one neuron at a time: follow the flow, split the averaging neuron, push, and again.

    Example: `understudy grow --activation softplus --teacher 8 --student 6 --out results`
    """
    begun = time.perf_counter()
    check_out(out)
    from rich.console import Console

    from understudy.commands.sources import name_by_hash, read_result, read_teacher
    from understudy.compilation import keep_compiled_programs
    from understudy.surgery import grow as grow_student

    keep_compiled_programs()
    start = None
    try:
        if result is not None:
            source, start, told = read_result(result, seed)
            told["grown to"] = student
        else:
            source = read_teacher(activation, teacher, dim, angles, teacher_file)
            told = {
                "activation": source.activation.name,
                "teacher": source.width,
                "student": student,
                "dim": source.dim,
            }
        if source.activation.smoothness == 0:
            raise ValueError(
                f"grow needs a smooth activation: at a split point {source.activation.name} has no Hessian."
            )
        if not 0 < push < float("inf"):
            raise ValueError(f"--push is a positive length; received {push}.")
        screen = Console(stderr=True, quiet=json_)
        with screen.status("compiling") as status:
            stages = grow_student(
                source, student, start=start, mu=mu, push=push,
                watch=lambda s: status.update(f"{s.width} of {student} neurons, loss {s.loss:.6g}"),
            )  # fmt: skip
    except (ValueError, TypeError) as error:
        fail(str(error))
    content: dict[str, Any] = {
        "task": told,
        "seconds": round(time.perf_counter() - begun, 3),
        "stages": [_row(s) for s in stages],
    }
    if json_:
        print(json.dumps(content, indent=1))
    else:
        _print(content)
    if out is not None:
        from understudy import plots

        name = name_by_hash("grow", told, source, mu=mu, push=push)
        paths = [*plots.save(plots.grow(content["stages"], told), out / name), out / f"{name}.json"]
        paths[-1].write_text(json.dumps(content, indent=1) + "\n")
        if not json_:
            Console().print("Files: " + ", ".join(str(p) for p in paths), soft_wrap=True)


def _row(stage: Any) -> dict[str, Any]:
    return {
        "width": stage.width,
        "loss": stage.loss,
        "kind": stage.certificate.kind,
        "label": stage.structure.label,
        "gradient_norm": stage.certificate.gradient_norm,
        "least_eigenvalue": stage.certificate.least_eigenvalue,
        "averaging": stage.averaging,
        "norms": [float(x) for x in stage.norms],
        "outgoing": [float(x) for x in stage.outgoing],
        "correlations_with_averaging": [float(x) for x in stage.correlations[stage.averaging]],
        "split_neuron": stage.split_neuron,
        "scenario": None if stage.matrices is None else stage.matrices.scenario,
        "pushed_along": stage.pushed_along,
        "incoming": [[float(x) for x in row] for row in stage.parameters.incoming],
    }


def _print(content: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    wide = console.width >= WIDE
    table = new_table()
    others = ("others: |w|", "a", "u") if wide else ()
    for name in ("n", "verdict", "label", "loss", "average: |w|", "a", *others, "split", *(("λ",) if wide else ())):
        table.add_column(name, justify="left" if name in ("verdict", "label") else "right", no_wrap=True)
    for row in content["stages"]:
        rest = [i for i in range(row["width"]) if i != row["averaging"]]
        pick = lambda key, rest=rest, row=row: _range([row[key][i] for i in rest])  # noqa: E731
        table.add_row(
            str(row["width"]),
            row["kind"],
            row["label"],
            f"{row['loss']:.7g}",
            f"{row['norms'][row['averaging']]:.4f}",
            f"{row['outgoing'][row['averaging']]:.4f}",
            *((pick("norms"), pick("outgoing"), pick("correlations_with_averaging")) if wide else ()),
            "" if row["split_neuron"] is None else str(row["split_neuron"]) + (f" ({row['scenario']})" if wide else ""),
            *(("" if row["pushed_along"] is None else f"{row['pushed_along']:.1e}",) if wide else ()),
        )
    console.print(table)
    rest_of_it = (
        "u: its correlation with the others; split: the neuron that was split (scenario); λ: eigenvalue of the push."
        if wide
        else f"split: the neuron that was split. A screen of {WIDE} columns shows more, and so does --json."
    )
    console.print(
        f"{content['seconds']:.1f} s. average: the neuron whose best match to a teacher is worst; {rest_of_it}",
        highlight=False,
    )


def _range(values: list[float]) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:.4f}" if high - low < 5e-5 else f"{low:.4f}…{high:.4f}"
