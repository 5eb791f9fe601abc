"""`understudy layers`: forces, covariances, ranks and mergeable neurons of a stored network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands.claims import fail

if TYPE_CHECKING:
    from understudy.tasks.regularised import Regularised


def layers(
    network: Annotated[Path, typer.Argument(help="Weights W1 … WL (and biases b1 … bL) in an .npz or .nc file.")],
    data: Annotated[
        Path | None, typer.Option(help="File with inputs x (N, d) and targets y; the network's own file if not given.")
    ] = None,
    penalty: Annotated[float, typer.Option(help="λ of the L2 regularisation C + λ‖W‖².")] = 1e-3,
    bias: Annotated[float, typer.Option(help="β, the constant row: biases are β times a regularised column.")] = 1.0,
    activation: Annotated[str, typer.Option(help="Activation of the hidden layers.")] = "relu",
    cost: Annotated[
        str, typer.Option(help="squared, or cross-entropy (targets: classes or probabilities).")
    ] = "squared",
    cosine: Annotated[float, typer.Option(help="Neurons aligned at least this much can be merged.")] = 0.999,
    out: Annotated[Path | None, typer.Option(help="Directory for the figure and the forces (.npz).")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Look inside a trained network: what holds each hidden layer, its ranks, and which neurons are one.

    Example: `understudy layers network.npz --penalty 0.001 --cost cross-entropy --out results`
    """
    from rich.console import Console

    try:
        weights, biases, x, y = read_network(network, data)
        task, parameters = make_problem(weights, biases, x, y, penalty, bias, activation, cost)
        if not 0 < cosine <= 1:
            raise ValueError(f"--cosine lies between 0 and 1; received {cosine}.")
    except (ValueError, TypeError, OSError, KeyError) as error:
        fail(str(error))
    with Console(stderr=True, quiet=json_).status("forces, covariances and rays …"):
        rows, summary, arrays = examine(task, parameters, cosine)
    paths = []
    if out is not None:
        import numpy as np

        from understudy.plots.layers import draw_layers

        out.mkdir(parents=True, exist_ok=True)
        np.savez(out / "layers.npz", **arrays)
        paths = [str(out / "layers.npz"), *(str(p) for p in draw_layers(rows, arrays, out))]
    if json_:
        print(json.dumps({"network": str(network), **summary, "layers": rows, "files": paths}, indent=1))
    else:
        _print(rows, summary, paths)


def read_network(network: Path, data: Path | None) -> tuple[list[Any], list[Any] | None, Any, Any]:
    """Weights, biases (None if there are none), inputs and targets from the files."""
    import numpy as np

    stored = _read(network)
    weights: list[Any] = []
    while f"W{len(weights) + 1}" in stored:
        weights.append(np.asarray(stored[f"W{len(weights) + 1}"], float))
    if len(weights) < 2:
        raise ValueError(f"{network} has no weights W1, W2, …: it holds {sorted(stored)}. Store at least two layers.")
    names = [f"b{i + 1}" for i in range(len(weights))]
    found = [name for name in names if name in stored]
    if found and found != names:
        raise ValueError(f"{network} has biases {found} where {names} are needed: all of them, or none.")
    source = stored if data is None else _read(data)
    if "x" not in source or "y" not in source:
        raise ValueError(
            f"{data or network} has no arrays x (N, d) and y: it holds {sorted(source)}. Give --data FILE."
        )
    biases = [np.asarray(stored[name], float).ravel() for name in names] if found else None
    return weights, biases, np.asarray(source["x"], float), np.asarray(source["y"])


def _read(file: Path) -> dict[str, Any]:
    import numpy as np

    if not file.is_file():
        raise ValueError(f"There is no file {file}.")
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    if file.suffix == ".nc":
        import xarray as xr

        with xr.open_dataset(file, engine="h5netcdf") as stored:
            return {str(name): stored[name].values for name in stored.variables}
    raise ValueError(f"{file} is neither .npz nor .nc. Save the weights with numpy.savez(file, W1=…, W2=…, x=…, y=…).")


def make_problem(
    weights: list[Any],
    biases: list[Any] | None,
    x: Any,
    y: Any,
    penalty: float,
    bias: float,
    activation: str,
    cost: str,
) -> tuple[Regularised, Any]:
    """The regularised problem and the network's place in it; W_ℓ may have the bias column already."""
    import numpy as np

    from understudy.tasks.regularised import Regularised

    for i, w in enumerate(weights):
        if w.ndim != 2:
            raise ValueError(f"W{i + 1} must be a matrix (outputs × inputs); received shape {w.shape}.")
    if x.ndim != 2:
        raise ValueError(f"x must be a matrix (samples × inputs); received shape {x.shape}.")
    expected = [x.shape[1], *(w.shape[0] for w in weights[:-1])]
    extra = {w.shape[1] - n for w, n in zip(weights, expected, strict=True)}
    if extra not in ({0}, {1}) or (extra == {1} and biases is not None):
        shapes = [w.shape for w in weights]
        raise ValueError(f"Weights of shapes {shapes} do not fit together for inputs of {x.shape[1]} columns.")
    if biases is not None or extra == {1}:
        if not bias:
            raise ValueError("This network has biases: --bias must be positive.")
    else:
        bias = 0.0
    full = weights
    if biases is not None:
        full = [np.concatenate([w, b[:, None] / bias], axis=1) for w, b in zip(weights, biases, strict=True)]
    task = Regularised(
        x, y, [w.shape[0] for w in full[:-1]], penalty=penalty, bias=bias, activation=activation, cost=cost
    )
    return task, tuple(full)


def examine(
    task: Regularised, parameters: Any, cosine: float
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """One row a hidden layer, a summary, and the arrays behind them."""
    import numpy as np

    from understudy.layers import covariances, forces, rays, representation_loss, to_representations

    found = forces(task, parameters)
    pairs, output = covariances(task, parameters)
    rows, arrays = [], {"output": output}
    for layer, (own, after) in zip(found, pairs, strict=True):
        groups = rays(layer.representation, cosine=cosine)
        dead = layer.representation.shape[0] - sum(len(g) for g in groups)
        attraction, repulsion = (float(np.linalg.norm(f)) for f in (layer.attraction, layer.repulsion))
        rows.append(
            {
                "layer": layer.layer,
                "neurons": int(layer.representation.shape[0]),
                "rank": _rank(own),
                "rank_activated": _rank(after),
                "rays": len(groups),
                "mergeable": sum(len(g) - 1 for g in groups),
                "dead": dead,
                "groups": [g.tolist() for g in groups if len(g) > 1],
                "attraction": attraction,
                "repulsion": repulsion,
                "imbalance": layer.residual / max(attraction, repulsion, 1e-300),
            }
        )
        number = layer.layer
        arrays |= {f"Z{number}": layer.representation, f"attraction{number}": layer.attraction}
        arrays |= {f"repulsion{number}": layer.repulsion, f"K{number}": own, f"K_activated{number}": after}
    loss = float(task.loss(parameters))
    summary = {
        "samples": task.samples,
        "widths": list(task.widths),
        "penalty": task.penalty,
        "bias": task.bias,
        "loss": loss,
        "gradient_norm": float(np.linalg.norm(np.asarray(task.gradient(parameters)))),
        "useless_weights": (loss - representation_loss(task, to_representations(task, parameters))) / task.penalty,
    }
    return rows, summary, arrays


def _rank(gram: Any) -> int:
    """Numerical rank of Z from its covariance: singular values above 1e-6 of the largest (1e-12 of the eigenvalues)."""
    import numpy as np

    values = np.linalg.eigvalsh(gram)
    return int(np.sum(values > 1e-12 * max(values[-1], 1e-300)))


def _print(rows: list[dict[str, Any]], summary: dict[str, Any], paths: list[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(
        f"widths {summary['widths']}, {summary['samples']} inputs, λ = {summary['penalty']:g}: loss {summary['loss']:.6g}, "
        f"|∇L| {summary['gradient_norm']:.1e}, ‖useless weights‖² {max(summary['useless_weights'], 0):.2g}",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    heads = ("layer", "neurons", "rank", "rank σ", "rays", "mergeable", "dead", "attraction", "repulsion", "imbalance")
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        counts = [str(row[k]) for k in ("layer", "neurons", "rank", "rank_activated", "rays", "mergeable", "dead")]
        sizes = [f"{row[k]:.2e}" for k in ("attraction", "repulsion", "imbalance")]
        table.add_row(*counts, *sizes)
    console.print(table)
    console.print(
        "rank: of the layer's covariance, before and after the activation. mergeable: neurons beyond the first of their ray. "
        "imbalance: |attraction + repulsion| over the larger; 0 at a minimum without kinks.",
        highlight=False,
        soft_wrap=True,
    )
    if paths:
        console.print("Files: " + ", ".join(paths), soft_wrap=True, highlight=False)
