"""`understudy layers`: forces, covariances, ranks and mergeable neurons of a stored network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.options import check_out
from understudy.commands.screen import exit_if_unstored, fail, new_table, show_table, try_to_store
from understudy.commands.sources import name_of, read_stored

if TYPE_CHECKING:
    from understudy.networks import Deep, TwoLayer
    from understudy.regularised.streamed import Chunks
    from understudy.tasks.regularised import Regularised


SHOWN = 1000
"""The largest number of inputs whose covariances (N × N) are drawn and stored. All else uses all inputs."""


def layers(
    network: shared.StoredNetworkFile,
    seed: shared.StoredSeed = None,
    data: Annotated[
        Path | None, typer.Option(help="An .npz with inputs (N, d) and targets. Default: the archive's own.")
    ] = None,
    penalty: Annotated[float, typer.Option(help="λ of the L2 regularisation C + λ‖W‖².")] = 1e-3,
    bias: Annotated[float, typer.Option(help="β, the constant row: biases are β times a regularised column.")] = 1.0,
    activation: Annotated[str | None, typer.Option(help="Activation of the hidden layers; as stored, or relu.")] = None,
    cost: Annotated[
        str, typer.Option(help="squared, or cross-entropy (targets: classes or probabilities).")
    ] = "squared",
    tolerance: Annotated[
        float, typer.Option(help="Distance of unit vectors up to which neurons share a ray and can be merged.")
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

    try:
        stored = read_stored(network, seed)
        inputs, targets = (stored.inputs, stored.targets) if data is None else read_data(data)
        if inputs is None or targets is None:
            raise ValueError(f"{data or network} has no arrays inputs (N, d) and targets. Give --data FILE.npz.")
        chunks, parameters = make_chunks(
            stored.network, inputs, targets, penalty, bias, activation or stored.activation or "relu", cost
        )
        if not 0 <= tolerance < 2:
            raise ValueError(f"--tolerance is at least 0 and below 2; received {tolerance}.")
        if bound and len(parameters) != 2:
            raise ValueError(f"--bound is for networks with one hidden layer; this one has {len(parameters) - 1}.")
    except (ValueError, TypeError, OSError) as error:
        fail(str(error))
    with Console(stderr=True, quiet=json_).status("forces, covariances and rays …"):
        rows, summary, arrays = examine(chunks, parameters, tolerance)
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

    place.parent.mkdir(parents=True, exist_ok=True)
    archive = place.with_name(f"{place.name}.npz")
    np.savez(archive, **arrays)
    return [archive, *plots.save(plots.layers(rows, arrays), place)]


def make_problem(
    network: TwoLayer | Deep, inputs: Any, targets: Any, penalty: float, bias: float, activation: str, cost: str
) -> tuple[Regularised, Any]:
    """The regularised problem on all inputs, and the network as a point of it."""
    chunks, parameters = make_chunks(network, inputs, targets, penalty, bias, activation, cost)
    return chunks.take(slice(None)), parameters


def make_chunks(
    network: TwoLayer | Deep, inputs: Any, targets: Any, penalty: float, bias: float, activation: str, cost: str
) -> tuple[Chunks, tuple[Any, ...]]:
    """The regularised problem in chunks, and the weights. Biases are β times a column; β is 0 without biases."""
    import numpy as np

    from understudy.regularised.streamed import Chunks
    from understudy.surgery.parts import check_inputs, unpack

    weights, biases = unpack(network)
    x = check_inputs(inputs, weights[0].shape[1])
    if not any(b.any() for b in biases):
        bias = 0.0
    elif not bias:
        raise ValueError("This network has biases: --bias must be positive.")
    else:
        weights = [np.concatenate([w, b[:, None] / bias], axis=1) for w, b in zip(weights, biases, strict=True)]
    hidden = [len(w) for w in weights[:-1]]
    targets = check_targets(targets, len(weights[-1]), cost)
    if not np.all(np.isfinite(targets)):
        raise ValueError("Targets must be finite; received NaN or infinite entries.")
    chunks = Chunks(x, targets, hidden, penalty=penalty, bias=bias, activation=activation, cost=cost)
    chunks.take(slice(0, 1)).flatten(tuple(weights))  # raises if options are wrong or the targets do not fit
    return chunks, tuple(weights)


def check_targets(targets: Any, outputs: int, cost: str) -> Any:
    """Targets as the cost takes them: class labels become one row of probabilities each."""
    import numpy as np

    from understudy.tasks.costs import one_hot

    y = np.asarray(targets)
    if y.ndim == 1 and outputs > 1 and cost == "squared":
        raise ValueError(
            f"The network has {outputs} outputs and the targets are one number per input. If they are class labels, "
            "give --cost cross-entropy."
        )
    if cost != "cross-entropy":
        return y
    if y.ndim == 1:
        if not np.all(y == np.round(y)) or np.any(y < 0) or np.any(y >= outputs):
            raise ValueError(
                f"Class labels are whole numbers from 0 to {outputs - 1}, because the network has {outputs} outputs; "
                f"received {', '.join(f'{value:g}' for value in np.unique(y)[:6])}."
            )
        return one_hot(y, outputs)
    if np.any(y < 0) or not np.allclose(y.sum(axis=1), 1, atol=1e-6):
        raise ValueError(
            "--cost cross-entropy takes class labels, or probabilities: numbers of at least 0 that add up to 1 per "
            "input."
        )
    return y


def examine(
    chunks: Chunks, parameters: tuple[Any, ...], tolerance: float
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """One row per hidden layer, a summary, and the arrays behind them for the first SHOWN inputs."""
    import numpy as np

    from understudy.activations import activate
    from understudy.regularised.representation import activations_before, to_representations
    from understudy.regularised.streamed import sum_over
    from understudy.surgery import aligned_groups

    sums = sum_over(chunks, parameters)
    shown = chunks.take(slice(0, SHOWN))
    representations = to_representations(shown, parameters)
    before = activations_before(shown, representations)
    rows, arrays = [], {"output": representations[-1]}
    for number, layer in enumerate(sums.layers[:-1], start=1):
        representation = layer.representation()
        alive = np.flatnonzero(layer.largest > 1e-6 * layer.largest.max())
        near = aligned_groups(representation[alive], tolerance=tolerance, silent=1e-6)
        groups = [tuple(int(alive[i]) for i in group) for group in near]
        attraction, repulsion = layer.forces(shown.penalty)
        sizes = [float(np.linalg.norm(f)) for f in (attraction, repulsion, attraction + repulsion)]
        after = sums.layers[number].factor[:, : len(representation)]  # without the constant row of the biases
        rows.append(
            {
                "layer": number,
                "neurons": len(representation),
                "rank": _rank(representation),
                "rank_activated": _rank(after),
                "rays": len(groups),
                "mergeable": sum(len(g) - 1 for g in groups),
                "dead": len(representation) - sum(len(g) for g in groups),
                "groups": [list(g) for g in groups if len(g) > 1],
                "attraction": sizes[0],
                "repulsion": sizes[1],
                "imbalance": sizes[2] / max(sizes[0], sizes[1], 1e-300),
            }
        )
        z = representations[number - 1]
        h = activate(shown.activation, z)
        arrays |= {
            f"Z{number}": z,
            f"attraction{number}": layer.onto_inputs(attraction, before[number - 1]),
            f"repulsion{number}": layer.onto_inputs(repulsion, before[number - 1]),
            f"K{number}": z.T @ z,
            f"K_activated{number}": h.T @ h + shown.bias**2,
        }
    slopes = [layer.gradient + 2 * shown.penalty * layer.weights for layer in sums.layers]
    summary = {
        "samples": chunks.samples,
        "widths": list(shown.widths),
        "penalty": shown.penalty,
        "bias": shown.bias,
        "loss": sums.cost + shown.penalty * sum(float(np.sum(layer.weights**2)) for layer in sums.layers),
        "gradient_norm": float(np.sqrt(sum(np.sum(slope**2) for slope in slopes))),
        "kinks": 0 if sums.gates is None else int(np.sum(np.abs(sums.gates) < 1)),
        "useless_weights": sum(float(np.sum((s.weights - s.least_weights()) ** 2)) for s in sums.layers),
    }
    return rows, summary, arrays


LOOSE = 0.05
"""Gaps above this share of the loss come with the remark that the bound itself may be loose."""


def best_of_any_width(task: Regularised, loss: float) -> dict[str, Any]:
    """What is known of the best network of any width: a lower bound of its loss, and the best network found."""
    from understudy.regularised import minimise_globally

    found = minimise_globally(task)
    least = min(loss, found.value)
    lower = max(found.value - found.gap, 0.0)
    return {"lower_bound": lower, "best_found": least, "within": (loss - lower) / loss if loss > 0 else 0.0}


def _of_any_width(summary: dict[str, Any]) -> str:
    """The bound in a sentence or two."""
    known = summary["any_width"]
    words = (
        f"The best network of any width has a loss between {known['lower_bound']:.6g} and {known['best_found']:.6g}: "
        f"this one is within {100 * known['within']:.3g} % of it."
    )
    if known["best_found"] - known["lower_bound"] > LOOSE * known["best_found"]:
        words += (
            " The lower bound comes from a relaxation and can be far too low (gaps of 58 to 86 % have been seen), so "
            "the network may be much better than this says."
        )
    return words


def _rank(matrix: Any) -> int:
    """Numerical rank: singular values above 1e-6 of the largest."""
    import numpy as np

    values = np.linalg.svd(matrix, compute_uv=False)
    return int((values > 1e-6 * max(float(values[0]), 1e-300)).sum())


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
    if paths:
        console.print("Files: " + ", ".join(paths), soft_wrap=True, highlight=False)
