"""`understudy merge`: the same network with fewer neurons."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.options import check_out
from understudy.commands.screen import exit_if_unstored, fail, new_table, show_table, tell_files, try_to_store
from understudy.commands.sources import name_of, read_stored

if TYPE_CHECKING:
    from understudy.network_files import StoredNetwork
    from understudy.surgery import Merged


def merge(
    network: shared.StoredNetworkFile,
    seed: shared.StoredSeed = None,
    activation: Annotated[str | None, typer.Option(help="relu, abs, linear or quadratic. Default: as stored.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Inputs (N, d) as .npy, or `inputs` in an .npz, on which the change is measured."),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="What to merge. weights: aligned neurons, which keeps the outputs everywhere; the other methods keep "
            "them on the data only. activations: neurons with proportional activations; activity: ReLU neurons active "
            "on the same data (one output; 4N for scalar inputs); covariance: at most N(N+1) neurons per layer."
        ),
    ] = "weights",
    tolerance: Annotated[
        float, typer.Option(help="Distance between unit vectors up to which neurons count as aligned.")
    ] = 1e-6,
    out: Annotated[Path | None, typer.Option(help="Directory for the reduced network and the figure.")] = None,
    json_: shared.Json = False,
) -> None:
    """Merge aligned neurons of a stored network, and report the change of its outputs and norm.

    Example: `understudy merge network.npz --activation relu --out results`
    """
    check_out(out)
    from understudy.network_files import write_network
    from understudy.surgery.methods import METHODS

    if by not in METHODS:
        fail(f"--by is one of {', '.join(METHODS)}; received {by!r}.")

    try:
        stored = read_stored(network, seed)
        sigma = activation or stored.activation
        if sigma is None:
            fail(f"{network} does not say which activation its network has. Give --activation, such as relu.")
        merged, elsewhere = _merge(stored, sigma, data, by, tolerance)
    except ValueError as error:
        fail(str(error))

    def write() -> list[Path]:
        from understudy import plots

        if out is None:
            return []
        name = f"{name_of(network, seed)}-merged"
        first = write_network(out / f"{name}.npz", merged.network, sigma, like=stored)
        return [first, *plots.save(plots.merge(stored.network, merged, sigma), out / name)]

    files, problem = try_to_store(write)
    if json_:
        print(json.dumps(_as_json(stored, sigma, by, merged, elsewhere, files), indent=1))
    else:
        _print_table(stored, sigma, merged, elsewhere, files)
    exit_if_unstored(problem)


def _merge(
    stored: StoredNetwork, activation: str, data: Path | None, by: str, tolerance: float
) -> tuple[Merged, float | None]:
    """The merged network, and the relative change on other inputs if the outputs are kept on the data only."""
    from understudy.network_files import read_data
    from understudy.surgery.methods import change_elsewhere, merge_by

    inputs = read_data(data)[0] if data is not None else None
    if by == "weights":
        return merge_by(by, stored.network, activation, inputs, tolerance), None
    inputs = stored.inputs if inputs is None else inputs
    if inputs is None:
        raise ValueError(f"--by {by} keeps the outputs on data, and none are given. Add --data inputs.npy.")
    merged = merge_by(by, stored.network, activation, inputs, tolerance)
    return merged, change_elsewhere(stored.network, merged, activation, inputs)


def _as_json(
    stored: StoredNetwork, activation: str, by: str, merged: Merged, elsewhere: float | None, files: list[Path]
) -> dict[str, Any]:
    told = asdict(merged.report)
    where = {"measured_on": told.pop("inputs"), "relative_change_elsewhere": elsewhere}
    named = {"network": stored.source, "activation": activation, "by": by}
    return {**named, **told, **where, "files": [str(file) for file in files]}


def _print_table(
    stored: StoredNetwork, activation: str, merged: Merged, elsewhere: float | None, files: list[Path]
) -> None:
    from rich.console import Console

    report = merged.report
    console = Console()
    console.print(f"[bold]{stored.source}[/], {activation}", soft_wrap=True, highlight=False)
    heads = ("hidden layer", "neurons before", "after", "groups", "removed")
    table = new_table(heads, left=heads[:1])
    for layer in report.layers:
        cells = (layer.layer, layer.before, layer.after, len(layer.groups), len(layer.removed))
        table.add_row(*(str(cell) for cell in cells))
    show_table(console, table)
    where = "on the data" if report.inputs == "data" else "on standard normal inputs"
    console.print(
        f"Squared norm {report.norm_before:.6g} → {report.norm_after:.6g}. Outputs {where} changed by "
        f"{report.largest_change:.1e} at most, {report.relative_change:.1e} relative (root mean square).",
        highlight=False,
    )
    if elsewhere is not None:
        console.print(
            "The outputs are kept on these inputs only: on other inputs of the same means and spreads they changed "
            f"by {elsewhere:.1e} relative.",
            highlight=False,
        )
    tell_files("Written", files)
