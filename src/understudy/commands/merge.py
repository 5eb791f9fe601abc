"""`understudy merge`: the same network with fewer neurons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands.options import check_out
from understudy.commands.screen import fail, new_table
from understudy.commands.sources import name_of

if TYPE_CHECKING:
    from understudy.network_files import StoredNetwork
    from understudy.surgery import Merged

BY = ("weights", "activity", "covariance")


def merge(
    network: Annotated[
        Path, typer.Argument(help="An .npz archive of weights W1…WL, b1…bL, or the .nc of a stored fit.")
    ],
    seed: Annotated[
        int | None, typer.Option(help="Which network of a stored fit; the one of least loss unless given.")
    ] = None,
    activation: Annotated[
        str | None, typer.Option(help="relu, abs, linear, quadratic; as stored unless given.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Inputs (N, d) as .npy, or `inputs` in an .npz: keep the outputs there only.")
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="weights: aligned neurons; activity: ReLU neurons active on the same data (one output; 4N for scalar "
            "inputs); covariance: at most N(N+1) a layer. The last two need data."
        ),
    ] = "weights",
    tolerance: Annotated[
        float, typer.Option(help="Distance of unit vectors up to which neurons count as aligned.")
    ] = 1e-6,
    out: Annotated[Path | None, typer.Option(help="Directory for the reduced network and the figure.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Merge aligned neurons of a stored network and say what changed in function and norm.

    Example: `understudy merge network.npz --activation relu --out results`
    """
    if by not in BY:
        fail(f"--by is one of {', '.join(BY)}; received {by!r}.")
    check_out(out)
    from understudy.network_files import read_network, write_network

    try:
        stored = read_network(network, seed)
        sigma = activation or stored.activation
        if sigma is None:
            fail(f"{network} does not say which activation its network has. Give --activation, as relu.")
        merged = _merge(stored, sigma, data, by, tolerance)
    except ValueError as error:
        fail(str(error))
    files: list[Path] = []
    if out is not None:
        from understudy import plots

        name = f"{name_of(network, seed)}-merged"
        files = [write_network(out / f"{name}.npz", merged.network, sigma)]
        files += plots.save(plots.merge(stored.network, merged, sigma), out / name)
    if json_:
        print(json.dumps(_as_json(stored, sigma, by, merged, files), indent=1))
    else:
        _print_table(stored, sigma, merged, files)


def _merge(stored: StoredNetwork, activation: str, data: Path | None, by: str, tolerance: float) -> Merged:
    from understudy import surgery
    from understudy.network_files import read_data

    inputs = read_data(data)[0] if data is not None else None
    if by == "weights":
        return surgery.merge(stored.network, activation, inputs=inputs, tolerance=tolerance)
    inputs = stored.inputs if inputs is None else inputs
    if inputs is None:
        raise ValueError(f"--by {by} keeps the outputs on data, and none are given. Add --data inputs.npy.")
    if by == "activity":
        return surgery.merge_by_activity(stored.network, inputs, activation)
    return surgery.reduce_by_covariance(stored.network, activation, inputs)


def _as_json(stored: StoredNetwork, activation: str, by: str, merged: Merged, files: list[Path]) -> dict[str, Any]:
    report = merged.report
    return {
        "network": stored.source,
        "activation": activation,
        "by": by,
        "layers": [
            {
                "layer": layer.layer,
                "before": layer.before,
                "after": layer.after,
                "groups": [list(group) for group in layer.groups],
                "removed": list(layer.removed),
            }
            for layer in report.layers
        ],
        "norm_before": report.norm_before,
        "norm_after": report.norm_after,
        "largest_change": report.largest_change,
        "relative_change": report.relative_change,
        "measured_on": report.inputs,
        "files": [str(file) for file in files],
    }


def _print_table(stored: StoredNetwork, activation: str, merged: Merged, files: list[Path]) -> None:
    from rich.console import Console

    report = merged.report
    console = Console()
    console.print(f"[bold]{stored.source}[/], {activation}", soft_wrap=True, highlight=False)
    table = new_table()
    table.add_column("hidden layer")
    for name in ("neurons before", "after", "groups", "removed"):
        table.add_column(name, justify="right")
    for layer in report.layers:
        cells = (layer.layer, layer.before, layer.after, len(layer.groups), len(layer.removed))
        table.add_row(*(str(cell) for cell in cells))
    console.print(table)
    where = "on the data" if report.inputs == "data" else "on standard normal inputs"
    console.print(
        f"Squared norm {report.norm_before:.6g} → {report.norm_after:.6g}. Outputs {where} changed by "
        f"{report.largest_change:.1e} at most, {report.relative_change:.1e} relative (root mean square).",
        highlight=False,
    )
    if files:
        console.print("Written: " + ", ".join(str(f) for f in files), soft_wrap=True, highlight=False)
