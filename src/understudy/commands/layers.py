"""`understudy layers`: forces, covariances, ranks and mergeable neurons of a stored network."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.options import check_out, options_of, translate
from understudy.commands.screen import exit_if_unstored, fail, new_table, show_table, tell_files, try_to_store
from understudy.commands.sources import name_of, read_stored

OPTIONS = options_of("activation", "bias", "cost", "penalty")

LOOSE = 0.05
"""Gaps above this share of the loss come with the remark that the bound itself may be loose."""


def layers(
    network: shared.StoredNetworkFile,
    seed: shared.StoredSeed = None,
    data: Annotated[
        Path | None, typer.Option(help="An .npz with inputs (N, d) and targets. Default: the archive's own.")
    ] = None,
    penalty: Annotated[float, typer.Option(help="λ of the L2 regularisation C + λ‖W‖².")] = 1e-3,
    bias: Annotated[
        float, typer.Option(help="β of the constant row of inputs: biases are β times a regularised column of weights.")
    ] = 1.0,
    activation: Annotated[
        str | None, typer.Option(help="Activation of the hidden layers. Default: as stored, or relu.")
    ] = None,
    cost: Annotated[
        str, typer.Option(help="squared, or cross-entropy (targets: classes or probabilities).")
    ] = "squared",
    tolerance: Annotated[
        float, typer.Option(help="Distance between unit vectors up to which neurons share a ray and can be merged.")
    ] = 0.05,
    bound: Annotated[
        bool, typer.Option("--bound", help="Also bound the loss of the best network of any width (one hidden layer).")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Directory for the figure and the forces (.npz).")] = None,
    json_: shared.Json = False,
) -> None:
    """Look inside a trained network: forces on each hidden layer, its ranks, and neurons that can be merged.

    The archive is np.savez("network.npz", W1=…, b1=…, W2=…, b2=…, activation="relu", inputs=…, targets=…).

    Example: `understudy layers network.npz --penalty 0.001 --cost cross-entropy --out results`
    """
    check_out(out)
    from rich.console import Console

    from understudy.network_files import read_data
    from understudy.regularised.layer_rows import best_of_any_width, chunks_of, examine_layers

    try:
        stored = read_stored(network, seed)
        inputs, targets = (stored.inputs, stored.targets) if data is None else read_data(data)
        if inputs is None or targets is None:
            raise ValueError(f"{data or network} has no arrays inputs (N, d) and targets. Give --data FILE.npz.")
        chunks, parameters = chunks_of(
            stored.network, inputs, targets, penalty, bias, activation or stored.activation or "relu", cost
        )
        if not 0 <= tolerance < 2:
            raise ValueError(f"--tolerance is at least 0 and below 2; received {tolerance}.")
        if bound and len(parameters) != 2:
            raise ValueError(f"--bound is for networks with one hidden layer; this one has {len(parameters) - 1}.")
    except (ValueError, TypeError, OSError) as error:
        fail(translate(error, OPTIONS))
    with Console(stderr=True, quiet=json_).status("forces, covariances and rays …"):
        rows, summary, arrays = examine_layers(chunks, parameters, tolerance)
    if bound:
        with Console(stderr=True, quiet=json_).status("the best network of any width …"):
            summary["any_width"] = best_of_any_width(chunks.take(slice(None)), summary["loss"])
    paths: list[str] = []
    problem = None
    if out is not None:
        place = out / f"{name_of(network, seed)}-layers"
        files, problem = try_to_store(lambda: _write(place, rows, arrays))
        paths = [str(file) for file in files]
    if json_:
        print(json.dumps({"network": str(network), **summary, "layers": rows, "files": paths}, indent=1))
    else:
        _print(rows, summary, paths)
    exit_if_unstored(problem)


def _write(place: Path, rows: list[dict[str, Any]], arrays: dict[str, Any]) -> list[Path]:
    """The arrays and the figure, under this name."""
    import numpy as np

    from understudy import plots
    from understudy.files import write_atomically

    content = io.BytesIO()
    np.savez(content, **arrays)
    archive = write_atomically(place.with_name(f"{place.name}.npz"), content.getvalue())
    return [archive, *plots.save(plots.layers(rows, arrays), place)]


def _of_any_width(summary: dict[str, Any]) -> str:
    """The bound in one or two sentences."""
    known = summary["any_width"]
    words = (
        f"The best network of any width has a loss between {known['lower_bound']:.6g} and {known['best_found']:.6g}: "
        f"this one is within {100 * known['within']:.3g} % of it."
    )
    if known["best_found"] - known["lower_bound"] > LOOSE * known["best_found"]:
        words += (
            " The lower bound comes from a relaxation and can be far too low (gaps of 17 to 86 % have been seen), so "
            "the network may be much better than this says."
        )
    return words


def _print(rows: list[dict[str, Any]], summary: dict[str, Any], paths: list[str]) -> None:
    from rich.console import Console

    console = Console()
    console.print(
        f"widths {summary['widths']}, {summary['samples']} inputs, λ = {summary['penalty']:g}: loss "
        f"{summary['loss']:.6g}, "
        f"|∇L| {summary['gradient_norm']:.1e}, ‖useless weights‖² {max(summary['useless_weights'], 0):.2g}",
        highlight=False,
    )
    table = new_table(("layer", "neurons", "ranks", "rays", "merge", "dead", "attract", "repel", "imbalance"))
    for row in rows:
        counts = [str(row[k]) for k in ("rays", "mergeable", "dead")]
        sizes = [f"{row[k]:.1e}" for k in ("attraction", "repulsion", "imbalance")]
        ranks = f"{row['rank']}, {row['rank_activated']}"
        table.add_row(str(row["layer"]), str(row["neurons"]), ranks, *counts, *sizes)
    show_table(console, table)
    console.print(
        "ranks: of the layer before and after the activation. merge: neurons beyond the first of their ray, which can "
        "be merged. dead: zero on all inputs. imbalance: |attraction + repulsion| over the larger; 0 at a minimum. "
        "Where a pre-activation is zero (a kink), forces and ∇L use the slope that makes ‖∇L‖ smallest.",
        highlight=False,
    )
    if "any_width" in summary:
        console.print(_of_any_width(summary), highlight=False)
    tell_files("Files", paths)
