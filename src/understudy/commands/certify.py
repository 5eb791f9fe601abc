"""`understudy certify`: the kind of a point in a file, where the flow leads from it, and a proof."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.options import options_of, translate
from understudy.commands.points import read_problem
from understudy.commands.screen import fail, new_table, show_table

if TYPE_CHECKING:
    from understudy.points import Certificate
    from understudy.tasks.task import Task

OPTIONS = options_of("cost", "penalty", "mean", "covariance", "activation")
MOST_DIRECTIONS = 8
"""The largest number of descending directions that `--follow` pushes along."""


def certify(
    file: Annotated[
        Path,
        typer.Argument(
            help="The point: .json or .npz with incoming, outgoing, bias, offset (or W1, b1, …), or a stored fit."
        ),
    ],
    teacher: Annotated[
        str | None, typer.Option(help="Number k of orthonormal teachers, or a file with incoming and outgoing.")
    ] = None,
    data: shared.Data = None,
    activation: shared.AnyActivation = "erf",
    student_activation: shared.StudentActivation = None,
    dim: Annotated[
        int | None, typer.Option(help="Input dimension of orthonormal teachers. Default: that of the point.")
    ] = None,
    mean: shared.Mean = None,
    covariance: shared.InputCovariance = None,
    sphere: shared.Sphere = False,
    target: shared.Target = None,
    cost: shared.DataCost = None,
    penalty: shared.Penalty = None,
    held_out: Annotated[
        str | None, typer.Option(help="With --data: share of the rows that the fit held out.", show_default="0")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run in a stored fit. Default: the best.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Push along each descending direction and name where the flow ends.")
    ] = False,
    proof: Annotated[
        bool, typer.Option("--proof", help="Also prove in ball arithmetic what the point is (extra 'proofs').")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File for the proof, which `understudy verify` checks.")] = None,
    json_: shared.Json = False,
) -> None:
    """Certify the point in a file, follow the flow from it (`--follow`), and prove what it is (`--proof`).

    The exit code is 1 if a proof was asked for and none was found.

    On your data: `understudy certify network.npz --data table.csv --activation tanh --follow`

    Example: `understudy certify point.json --teacher 8 --proof --out proof.json`
    """
    begun = time.perf_counter()
    if out is not None and not proof:
        fail("--out is the file for a proof: give --proof, too.")
    if out is not None and out.is_dir():
        fail(f"--out is a file for the proof; received the directory {out}. Try {out / 'proof.json'}.")
    chosen = {
        "teacher": teacher, "data": data, "activation": activation, "student_activation": student_activation,
        "dim": dim, "mean": mean, "covariance": covariance, "sphere": sphere, "target": target, "cost": cost,
        "penalty": penalty, "held_out": held_out, "seed": seed,
    }  # fmt: skip
    import understudy as us
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    try:
        task, point = read_problem(file, chosen)
        certificate = us.certify(task, point, proof=proof)
        if out is not None and certificate.proof.holds:
            certificate.proof.save(out)
    except (ValueError, TypeError, ImportError) as error:
        fail(translate(error, OPTIONS))
    except OSError as error:
        fail(f"Cannot write {out}: {error.strerror or error}.")
    ends = _follow(task, point, certificate) if follow else None
    _show(certificate, ends, time.perf_counter() - begun, out, json_)
    if proof and not certificate.proof.holds:
        raise typer.Exit(1)


def _follow(task: Task, point: Any, certificate: Certificate) -> list[dict[str, Any]]:
    """Where the flow ends after a push both ways along each direction in which the loss falls."""
    from understudy.points.destinations import follow_pushes

    directions = list(certificate.directions[:MOST_DIRECTIONS])
    if not directions:
        return []
    found = follow_pushes(task, [point] * len(directions), directions)
    told = ("sign", "kind", "name", "loss", "distance")
    return [{"direction": d.origin + 1, **{name: getattr(d, name) for name in told}} for d in found]


def _show(
    certificate: Certificate, ends: list[dict[str, Any]] | None, seconds: float, out: Path | None, as_json: bool
) -> None:
    proof = certificate.proof
    names = ("kind", "loss", "gradient_norm", "least_eigenvalue", "index", "zeros", "positives")
    content: dict[str, Any] = {name: getattr(certificate, name) for name in names}
    if as_json:
        content = {key: None if value != value else value for key, value in content.items()}
        content |= {"evidence": list(certificate.evidence), "seconds": round(seconds, 3), "proof": None}
        if ends is not None:
            content["destinations"] = ends
        if proof is not None:
            content["proof"] = {"holds": proof.holds, "statement": proof.statement, "file": out and str(out)}
        print(json.dumps(content, indent=1))
        return
    from rich.console import Console

    heads = [name.replace("_", " ") for name in names]
    table = new_table(heads, left=heads)
    table.add_row(*(f"{x:.6g}" if isinstance(x, float) else str(x) for x in content.values()))
    screen = Console()
    show_table(screen, table)
    for line in certificate.evidence:
        screen.print(f"- {line}", markup=False)
    if ends is not None:
        _show_ends(ends, len(certificate.directions), certificate.kind)
    if proof is not None:
        screen.print(f"\n{proof.statement}", markup=False)
        if out is not None and proof.holds:
            screen.print(f"The proof is in {out}; `understudy verify {out}` checks it.", markup=False)


def _show_ends(ends: list[dict[str, Any]], known: int, kind: str) -> None:
    from rich.console import Console

    screen = Console()
    if not ends:
        words = "No direction is known in which the loss falls, so there is nothing to follow."
        if kind in ("unconverged", "diverging"):
            words = (
                "The point is not critical, so there is nothing to push off. A fit that starts there goes on from it."
            )
        screen.print(f"\n{words}")
        return
    heads = ("push along", "ends in", "name", "loss", "distance")
    table = new_table(heads, left=heads[:3])
    for end in ends:
        along = f"{'+' if end['sign'] > 0 else '-'} direction {end['direction']}"
        table.add_row(along, end["kind"], end["name"], f"{end['loss']:.9g}", f"{end['distance']:.3g}")
    show_table(screen, table)
    if known > MOST_DIRECTIONS:
        screen.print(f"{known} directions are known; the first {MOST_DIRECTIONS} were followed.", highlight=False)
