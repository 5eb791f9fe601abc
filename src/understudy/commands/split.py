"""`understudy split`: what splitting each neuron of a minimum makes of it."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands.options import check_out
from understudy.commands.screen import fail, new_table

if TYPE_CHECKING:
    from understudy.networks import Teacher, TwoLayer


def split(
    activation: Annotated[str, typer.Option(help="erf, softplus[:β], sigmoid, tanh, …; smooth ones.")] = "erf",
    teacher: Annotated[int, typer.Option(help="Number k of teacher neurons, orthonormal, outgoing weights 1.")] = 5,
    student: Annotated[int, typer.Option(help="Number n of student neurons before the split.")] = 2,
    dim: Annotated[int | None, typer.Option(help="Input dimension d; k + 1 unless given.")] = None,
    angles: Annotated[
        str | None, typer.Option(help="Teachers in the plane instead, in units of π: 0,0.25,1.5.")
    ] = None,
    teacher_file: Annotated[Path | None, typer.Option(help="Your teacher: JSON with incoming, outgoing.")] = None,
    result: Annotated[Path | None, typer.Option(help="A file that `fit --out` stored: split its best run.")] = None,
    seed: Annotated[int | None, typer.Option(help="Which run; without --result, which start is followed.")] = None,
    neuron: Annotated[int | None, typer.Option(help="Split this neuron only.")] = None,
    mus: Annotated[str, typer.Option(help="Shares μ to certify, as -1,0.5.")] = "-1,-0.25,0,0.25,0.5",
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Push every split point that is no non-strict saddle to both sides and follow."),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Directory for the figure and the table as JSON.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Split each neuron of a minimum, tell what the split points are, and where the flow goes from them.

    Y and V decide ("few neurons", Theorem 4.1): scenario i gives minima for μ in (0, 1), ii outside, iii nowhere.

    Example: `understudy split --activation softplus --angles 0,0.25,0.75,1.5 --student 4 --seed 3 --follow --out results`
    """
    begun = time.perf_counter()
    check_out(out)
    shares = _shares(mus)
    from rich.console import Console

    from understudy.commands.sources import name_by_hash, read_result, read_teacher
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    screen = Console(stderr=True, quiet=json_)
    try:
        if result is not None:
            source, network, told = read_result(result, seed)
            _check(source)
        else:
            source = read_teacher(activation, teacher, dim, angles, teacher_file)
            _check(source)
            told = {
                "activation": source.activation.name,
                "teacher": source.width,
                "student": student,
                "dim": source.dim,
            }
            with screen.status("following the flow to a minimum"):
                network, told["seed"] = _minimum(source, student, seed)
        width = network.width
        if neuron is not None and not 0 <= neuron < width:
            raise ValueError(f"The student has neurons 0 to {width - 1}; received --neuron {neuron}.")
    except (ValueError, TypeError) as error:
        fail(str(error))
    with screen.status("splitting") as status:
        report = _report(source, network, range(width) if neuron is None else [neuron], shares, follow, status)
    content = {"task": told, "seconds": round(time.perf_counter() - begun, 3), **report["json"]}
    if json_:
        print(json.dumps(content, indent=1))
    else:
        _print(report["json"])
    if out is not None:
        from understudy import plots
        from understudy.files import write_json

        name = name_by_hash("split", told, source, mus=shares, neuron=neuron, follow=follow)
        paths = plots.save(plots.split(report["lines"], report["json"]), out / name)
        paths.append(write_json(out / f"{name}.json", content))
        if not json_:
            Console().print("Files: " + ", ".join(str(p) for p in paths), soft_wrap=True)


def _shares(text: str) -> list[float]:
    """`-1,0.5` as a list of finite numbers."""
    try:
        shares = [float(x) for x in text.split(",")]
    except ValueError:
        shares = [math.nan]
    if not all(math.isfinite(mu) for mu in shares):
        fail(f"--mus are finite numbers separated by commas; received {text!r}. Try --mus=-1,0.5.")
    return shares


def _check(source: Teacher) -> None:
    if source.outgoing.ndim != 1 or source.activation.smoothness == 0:
        raise ValueError(
            f"split takes a teacher of one output with a smooth activation; received {source.activation.name} and outgoing weights of "
            f"shape {source.outgoing.shape}."
        )


def _minimum(source: Teacher, width: int, seed: int | None) -> tuple[TwoLayer, int]:
    """Where one Glorot start ends; the best of eight unless a seed is given."""
    import numpy as np

    from understudy.commands.sources import population_of
    from understudy.dynamics import FlowOptions, starts
    from understudy.fitting import fit
    from understudy.tasks import Population

    seeds = list(range(8)) if seed is None else [seed]
    if min(seeds) < 0:
        raise ValueError(f"--seed is not negative; received {seed}.")
    task = population_of(source, width)
    begin = starts.glorot(Population(source, width), seeds)
    runs = fit(task, seeds, init=begin, options=FlowOptions(snapshots=0))
    minima = [r for r in runs if r.certificate.kind == "minimum"]
    if not minima:
        raise ValueError(
            f"No start ended in a minimum: {sorted({r.certificate.kind for r in runs})}. Try another --seed."
        )
    best = min(minima, key=lambda r: r.loss)
    order = np.argsort(-np.asarray(best.parameters.outgoing))
    return type(best.parameters)(best.parameters.incoming[order], best.parameters.outgoing[order]), best.seed


def _report(
    source: Teacher, network: TwoLayer, neurons: Any, shares: list[float], follow: bool, status: Any
) -> dict[str, Any]:
    import numpy as np

    from understudy.commands.sources import population_of
    from understudy.points import certify
    from understudy.points.destinations import Catalogue, follow_pushes, least_direction
    from understudy.points.splitting import expected_kind, lower_bound, split_matrices
    from understudy.surgery import split as split_neuron

    task, wide = population_of(source, network.width), population_of(source, network.width + 1)
    point = certify(task, network)
    axis = np.linspace(-1.0, 0.5, 61)
    rows, lines = [], []
    catalogue = Catalogue(wide, {"the minimum that was split": network})
    for j in neurons:
        status.update(f"neuron {j}")
        matrices = split_matrices(task, network, j)
        y = np.linalg.eigvalsh(matrices.curvature)
        points = [split_neuron(network, {j: [mu, 1 - mu]}) for mu in shares]
        certificates = [certify(wide, p) for p in points]
        row: dict[str, Any] = {
            "neuron": j,
            "outgoing": float(network.outgoing[j]),
            "norm": float(np.linalg.norm(np.asarray(network.incoming[j]))),
            "scenario": matrices.scenario,
            "least_of_Y": float(y[0]),
            "largest_of_Y": float(y[-1]),
            "splits": [
                {
                    "mu": mu,
                    "kind": c.kind,
                    "expected": expected_kind(matrices.scenario, mu)
                    if point.kind == "minimum" and not point.zeros
                    else None,
                    "index": c.index,
                    "least_eigenvalue": c.least_eigenvalue,
                    "upper_bound": float(matrices.upper_bound(mu)),
                }
                for mu, c in zip(shares, certificates, strict=True)
            ],
        }
        if follow:
            # At a non-strict saddle, such as a minimum split at μ = 0 or 1, the least eigenvalue is zero: there is no direction
            # along which a push is known to leave.
            pushed = [i for i, c in enumerate(certificates) if c.kind != "non-strict saddle"]
            directions = [least_direction(wide, points[i])[1] for i in pushed]

            def watch(done: int, total: int, j: int = j) -> None:
                status.update(f"neuron {j}: {done} of {total} pushes")

            chosen = [points[i] for i in pushed]
            found = follow_pushes(wide, chosen, directions, catalogue=catalogue, watch=watch) if pushed else []
            row["destinations"] = [
                {
                    "mu": shares[pushed[d.origin]],
                    "sign": d.sign,
                    "kind": d.kind,
                    "name": d.name,
                    "loss": d.loss,
                    "escape": d.escape.words if d.escape else None,
                }
                for d in found
            ]
        rows.append(row)
        line = [*axis, -1.0, 0.0, 1.0]
        vectors = np.stack([np.asarray(wide.flatten(split_neuron(network, {j: [mu, 1 - mu]}))) for mu in line])
        hessians = np.asarray(wide.hessian(vectors))
        below = lower_bound(*hessians[-3:])
        spectra = np.linalg.eigvalsh(hessians[:-3])
        for told_split in row["splits"]:
            told_split["lower_bound"] = float(below(told_split["mu"]))
        lines.append(
            {
                "mu": axis,
                "five": spectra[:, :5],
                "upper": matrices.upper_bound(axis),
                "lower": below(axis),
                "row": row,
            }
        )
    told = {
        "point": {
            "kind": point.kind,
            "loss": point.loss,
            "gradient_norm": point.gradient_norm,
            "least_eigenvalue": point.least_eigenvalue,
        },
        "neurons": rows,
    }
    return {"json": told, "lines": lines}


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    point = report["point"]
    console.print(
        f"The point: {point['kind']}, loss {point['loss']:.9g}, |∇L| {point['gradient_norm']:.0e}, least λ {point['least_eigenvalue']:.1e}",
        highlight=False,
    )
    for row in report["neurons"]:
        console.print(
            f"\n[bold]Neuron {row['neuron']}[/]: a = {row['outgoing']:.3f}, |w| = {row['norm']:.3f}, scenario {row['scenario']}, "
            f"eigenvalues of Y {row['least_of_Y']:.1e} to {row['largest_of_Y']:.1e}",
            highlight=False,
        )
        table = new_table()
        for name in ("μ", "verdict", "index", "least λ", "lower bound", "upper bound"):
            table.add_column(name, justify="left" if name == "verdict" else "right", no_wrap=True)
        for s in row["splits"]:
            numbers = (f"{s[key]:.1e}" for key in ("least_eigenvalue", "lower_bound", "upper_bound"))
            table.add_row(f"{s['mu']:g}", s["kind"], str(s["index"]), *numbers)
        console.print(table)
    console.print(
        "least λ: least Hessian eigenvalue; bounds: of the least one that is not trivially zero (App. D.2.1, Lemma 4.2).",
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
