"""`understudy certify`: what a point in a file is, in double precision and, if asked, as a theorem."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands.screen import fail, new_table

if TYPE_CHECKING:
    from understudy.networks import Teacher, TwoLayer
    from understudy.points import Certificate


def certify(
    file: Annotated[Path, typer.Argument(help="The point: .json or .npz with incoming (n, d) and outgoing (n).")],
    teacher: Annotated[
        str, typer.Option(help="Number k of orthonormal teachers, or a file with incoming and outgoing.")
    ],
    activation: Annotated[str, typer.Option(help="erf, relu, softplus[:β], hermite:ρ, …")] = "erf",
    dim: Annotated[
        int | None, typer.Option(help="Input dimension of orthonormal teachers; that of the point unless given.")
    ] = None,
    sphere: Annotated[bool, typer.Option("--sphere", help="Students and teachers of norm 1, hermite:ρ.")] = False,
    proof: Annotated[bool, typer.Option("--proof", help="Prove it in ball arithmetic (extra 'proofs').")] = False,
    out: Annotated[Path | None, typer.Option(help="File for the proof, which `understudy verify` checks.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Say what kind of critical point a file holds, and prove it.

    The exit code is 1 if a proof was asked for and none was found.

    Example: `understudy certify point.json --teacher 8 --proof --out proof.json`
    """
    begun = time.perf_counter()
    if out is not None and not proof:
        fail("--out keeps a proof: give --proof, too.")
    if out is not None and out.is_dir():
        fail(f"--out is a file for the proof; received the directory {out}. Try {out / 'proof.json'}.")
    import understudy as us
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    try:
        point = _read_point(file)
        source = _teacher(teacher, activation, point.dim if dim is None else dim)
        task: Any = us.Sphere(source, point.width) if sphere else us.Population(source, point.width)
        certificate = us.certify(task, point, proof=proof)
        if out is not None and certificate.proof.holds:
            certificate.proof.save(out)
    except (ValueError, TypeError, ImportError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"Cannot write {out}: {error.strerror or error}.")
    _show(certificate, time.perf_counter() - begun, out, json_)
    if proof and not certificate.proof.holds:
        raise typer.Exit(1)


def _show(certificate: Certificate, seconds: float, out: Path | None, as_json: bool) -> None:
    proof = certificate.proof
    names = ("kind", "loss", "gradient_norm", "least_eigenvalue", "index", "zeros", "positives")
    content: dict[str, Any] = {name: getattr(certificate, name) for name in names}
    if as_json:
        content |= {"evidence": list(certificate.evidence), "seconds": round(seconds, 3), "proof": None}
        if proof is not None:
            content["proof"] = {"holds": proof.holds, "statement": proof.statement, "file": out and str(out)}
        print(json.dumps(content, indent=1))
        return
    from rich.console import Console

    table = new_table()
    for name in names:
        table.add_column(name.replace("_", " "))
    table.add_row(*(f"{x:.6g}" if isinstance(x, float) else str(x) for x in content.values()))
    screen = Console()
    screen.print(table)
    for line in certificate.evidence:
        screen.print(f"- {line}", markup=False)
    if proof is not None:
        screen.print(f"\n{proof.statement}", markup=False)
        if out is not None and proof.holds:
            screen.print(f"The proof is in {out}; `understudy verify {out}` checks it.", markup=False)


def _teacher(text: str, activation: str, dim: int) -> Teacher:
    """Orthonormal teachers by number, or those in a file."""
    from understudy.commands.sources import read_teacher

    if text.isdigit():
        return read_teacher(activation, int(text), dim, None, None)
    return read_teacher(activation, 0, None, None, Path(text))


def _read_point(file: Path) -> TwoLayer:
    """A network from .json or .npz with incoming and outgoing, or from an .npz archive with W1 and W2."""
    import numpy as np

    from understudy.network_files import read_network
    from understudy.networks import TwoLayer

    try:
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                named = {name: arrays[name] for name in arrays.files}
        else:
            named = json.loads(file.read_text())
        if "W1" in named:
            network = read_network(file).network
            if not isinstance(network, TwoLayer):
                raise ValueError(f"{file} holds a network with biases or more layers; a point has two layers.")
            return network
        incoming = np.asarray(named["incoming"], float)
        outgoing = np.asarray(named.get("outgoing", np.ones(len(incoming))), float)
    except OSError as error:
        raise ValueError(f"Cannot read the point in {file}: {error.strerror or error}.") from None
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError(
            f"A point is .json or .npz with incoming (n rows of d numbers) and outgoing (n numbers); {file} is not."
        ) from None
    if incoming.ndim != 2 or not len(incoming):
        raise ValueError(f"The incoming weights in {file} form a matrix (n, d); received shape {incoming.shape}.")
    return TwoLayer(incoming, outgoing)
