"""The hidden layers of a network on data, one row each: forces, ranks, and neurons on a common ray."""

from typing import Any

import numpy as np

from understudy.activations import activate
from understudy.networks import Deep, TwoLayer
from understudy.regularised.frank_wolfe import minimise_globally
from understudy.regularised.representation import activations_before, to_representations
from understudy.regularised.streamed import Chunks, sum_over
from understudy.surgery import aligned_groups
from understudy.surgery.parts import check_inputs, unpack
from understudy.tasks import costs
from understudy.tasks.regularised import Regularised

SHOWN = 1000
"""The largest number of inputs whose covariances (N × N) are kept for figures. All else uses all inputs."""

SILENT = 1e-6
"""Neurons whose largest activation is at most this share of the layer's largest are dead."""


def problem_of(
    network: TwoLayer | Deep, inputs: Any, targets: Any, penalty: float, bias: float, activation: str, cost: str
) -> tuple[Regularised, tuple[np.ndarray, ...]]:
    """The regularised problem on all inputs, and the network as a point of it."""
    chunks, parameters = chunks_of(network, inputs, targets, penalty, bias, activation, cost)
    return chunks.take(slice(None)), parameters


def chunks_of(
    network: TwoLayer | Deep, inputs: Any, targets: Any, penalty: float, bias: float, activation: str, cost: str
) -> tuple[Chunks, tuple[np.ndarray, ...]]:
    """The regularised problem in chunks, and the weights. Biases are β times a column; β is 0 without biases."""
    weights, biases = unpack(network)
    x = check_inputs(inputs, weights[0].shape[1])
    if not any(b.any() for b in biases):
        bias = 0.0
    elif not bias:
        raise ValueError(f"bias must be positive, because this network has biases; received bias={bias:g}.")
    else:
        weights = [np.concatenate([w, b[:, None] / bias], axis=1) for w, b in zip(weights, biases, strict=True)]
    hidden = [len(w) for w in weights[:-1]]
    if not np.all(np.isfinite(np.asarray(targets, float))):
        raise ValueError("Targets must be finite; received NaN or infinite entries.")
    y = costs.targets_for(costs.get(cost), targets, (len(x), len(weights[-1])))
    chunks = Chunks(x, y, hidden, penalty=penalty, bias=bias, activation=activation, cost=cost)
    chunks.take(slice(0, 1)).flatten(tuple(weights))  # raises if the other arguments are wrong
    return chunks, tuple(weights)


def examine_layers(
    chunks: Chunks, parameters: tuple[Any, ...], tolerance: float
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """One row per hidden layer, a summary, and the arrays behind them for the first SHOWN inputs."""
    sums = sum_over(chunks, parameters)
    shown = chunks.take(slice(0, SHOWN))
    representations = to_representations(shown, parameters)
    before = activations_before(shown, representations)
    rows, arrays = [], {"output": representations[-1]}
    for number, layer in enumerate(sums.layers[:-1], start=1):
        representation = layer.representation()
        alive = np.flatnonzero(layer.largest > SILENT * layer.largest.max())
        near = aligned_groups(representation[alive], tolerance=tolerance, silent=SILENT)
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


def best_of_any_width(task: Regularised, loss: float) -> dict[str, Any]:
    """What is known of the best network of any width: a lower bound of its loss, and the best network found."""
    found = minimise_globally(task)
    least = min(loss, found.value)
    lower = max(found.value - found.gap, 0.0)
    return {"lower_bound": lower, "best_found": least, "within": (loss - lower) / loss if loss > 0 else 0.0}


def _rank(matrix: np.ndarray) -> int:
    """Numerical rank: singular values above 1e-6 of the largest."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return int((values > 1e-6 * max(float(values[0]), 1e-300)).sum())
