"""`understudy compress`: a smaller PyTorch network with nearly the same outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.modules import read_module, read_module_data
from understudy.commands.options import check_out
from understudy.commands.screen import exit_if_unstored, fail, show_text, tell_files, try_to_store
from understudy.extras import need

FORMATS = ("pt", "safetensors", "pt2", "onnx", "npz")


def compress(
    network: Annotated[
        Path, typer.Argument(help="A state_dict (.pt, .pth), .safetensors, .pt2, or .npz of weights W1, b1, …")
    ],
    data: Annotated[
        Path | None, typer.Option(help="Inputs (N, …) as .npy, or inputs and targets in an .npz; no labels are needed.")
    ] = None,
    widths: Annotated[str | None, typer.Option(help="New widths of the layers that can change, such as 64,32.")] = None,
    keep: Annotated[float | None, typer.Option(help="Share of neurons to keep in every layer.")] = None,
    params: Annotated[
        float | None, typer.Option(help="Largest number of parameters; below 1, a share of the present number.")
    ] = None,
    macs: Annotated[
        float | None, typer.Option(help="Largest number of multiply-adds per input; below 1, a share.")
    ] = None,
    loss_increase: Annotated[
        float | None,
        typer.Option(help="Largest increase of cross-entropy (without labels: relative squared change)."),
    ] = None,
    module: Annotated[
        str | None, typer.Option(help="The network's class, as file:Class, if the file holds only weights.")
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Number of inputs to use.")] = None,
    select: Annotated[
        str, typer.Option(help="How neurons are chosen: elimination, or qr (with pivots).")
    ] = "elimination",
    epochs: Annotated[int, typer.Option(min=0, help="Epochs of training afterwards, on the original's outputs.")] = 0,
    seconds: Annotated[float | None, typer.Option(help="Largest time for this training, in seconds.")] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help=f"Format to write: {', '.join(FORMATS)}. Default: as read.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for the smaller network.")] = None,
    json_: shared.Json = False,
) -> None:
    """Make a trained PyTorch network narrower, without labels and without training.

    Without a target size it prints what is redundant in each layer, and the width that each layer needs.

    Example: `understudy compress network.pt --data inputs.npy --keep 0.25 --out results`
    """
    need("torch")
    check_out(out)
    from understudy import torch as ut

    targets: dict[str, Any] = {
        "widths": _numbers(widths),
        "keep": keep,
        "params": params,
        "macs": macs,
        "loss_increase": loss_increase,
    }
    ending = format_ or network.suffix.removeprefix(".")
    if format_ is not None and format_ not in FORMATS:
        fail(f"--format is one of {', '.join(FORMATS)}; received {format_!r}.")
    files: list[Path] = []
    problem = None
    try:
        model = read_module(network, module)
        given = None if data is None else read_module_data(data)
        found: Any
        if all(value is None for value in targets.values()):
            if given is None:
                fail(
                    "Give --data for a report of what is redundant, or one of --widths, --keep, --params, --macs, "
                    "--loss-increase."
                )
            found = ut.report(model, given)
        else:
            others: dict[str, Any] = {"samples": samples, "select": select, "epochs": epochs, "seconds": seconds}
            found = ut.compress(model, given, **others, **targets)
        if out is not None:
            files, problem = try_to_store(lambda: _write(found, out, network.stem, ending))
    except (ValueError, TypeError, OSError) as error:
        fail(str(error))
    report = found.report if isinstance(found, ut.Compressed) else found
    paths = [str(file) for file in files]
    if json_:
        print(json.dumps({"network": str(network), **report.to_dict(), "files": paths}, indent=1))
    else:
        show_text(str(found))
        tell_files("Written", paths)
    exit_if_unstored(problem)


def _write(found: Any, out: Path, stem: str, ending: str) -> list[Path]:
    """The narrower network, or the figure of a report."""
    from understudy import torch as ut

    if isinstance(found, ut.Compressed):
        return [found.save(out / f"{stem}-small.{ending}")]
    found.figure(out / f"{stem}-report")
    return [out / f"{stem}-report.{kind}" for kind in ("png", "svg")]


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        fail(f"--widths are whole numbers, such as 64,32; received {text!r}.")
