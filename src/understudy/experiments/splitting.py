"""What splitting each neuron of a minimum makes of it: the points on the line of splits, their bounds, where they lead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from understudy.dynamics import FlowOptions
from understudy.fitting import fit
from understudy.gaussian import has_closed_form
from understudy.networks import Teacher, TwoLayer
from understudy.points import Certificate, certify
from understudy.points.destinations import Catalogue, follow_pushes, least_direction
from understudy.points.splitting import SplitMatrices, expected_kind, lower_bound, split_matrices
from understudy.surgery import split
from understudy.tasks import Population, on_grid
from understudy.tasks.task import Task

STARTS = 8
"""Starts among which the best minimum is chosen, unless a seed is given."""

AXIS = np.linspace(-1.0, 0.5, 61)
"""Shares μ at which spectra are computed for the figure."""


def population_of(teacher: Teacher, width: int) -> Task:
    """The population loss: on a lattice in the plane where there is no closed form, else from pair interactions."""
    closed = has_closed_form(teacher.activation, teacher.activation)
    if teacher.dim <= 2 and not closed and teacher.activation.smoothness > 0:
        return on_grid(teacher, width)
    return Population(teacher, width)


def find_minimum(teacher: Teacher, width: int, seed: int | None = None) -> tuple[TwoLayer, int]:
    """The minimum that a Glorot start leads to, neurons by falling outgoing weight, and its seed; the best of eight unless given."""
    seeds = list(range(STARTS)) if seed is None else [seed]
    task, exact = population_of(teacher, width), Population(teacher, width)
    begin = exact.unflatten(
        exact.starts(seeds, "glorot")
    )  # as networks: a lattice orders its flat vectors in another way
    runs = fit(task, seeds, init=begin, options=FlowOptions(snapshots=0))
    minima = [run for run in runs if run.certificate.kind == "minimum"]
    if not minima:
        kinds = sorted({run.certificate.kind for run in runs})
        raise ValueError(f"No start ended in a minimum: {kinds}. Try another seed.")
    best = min(minima, key=lambda run: run.loss)
    order = np.argsort(-np.asarray(best.parameters.outgoing))
    return TwoLayer(best.parameters.incoming[order], best.parameters.outgoing[order]), best.seed


def split_report(
    teacher: Teacher,
    network: TwoLayer,
    neurons: Sequence[int],
    shares: Sequence[float],
    *,
    follow: bool = False,
    watch: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Certify the splits of each neuron at these shares μ, with the bounds of their least eigenvalue.

    **Arguments**

    - `follow`: push every split point, except non-strict saddles, along its least eigenvector in both senses, and follow the flow.
    - `watch`: called with what is going on, in words.

    Returns `json`, the point and a row per neuron in JSON types, and `lines`, the spectra along the line of splits for the figure.
    """
    task, wide = population_of(teacher, network.width), population_of(teacher, network.width + 1)
    point = certify(task, network)
    catalogue = Catalogue(wide, {"the minimum that was split": network})
    rows, lines = [], []
    for j in neurons:
        watch(f"neuron {j}")
        matrices = split_matrices(task, network, j)
        points = [split(network, {j: [mu, 1 - mu]}) for mu in shares]
        certificates = [certify(wide, p) for p in points]
        row = _neuron(network, j, matrices, shares, certificates, isolated=point.kind == "minimum" and not point.zeros)
        if follow:
            row["destinations"] = _destinations(wide, points, certificates, shares, catalogue, j, watch)
        line = _line(wide, network, j, matrices)
        for told in row["splits"]:
            told["lower_bound"] = float(line["lower_bound"](told["mu"]))
        rows.append(row)
        lines.append({**line, "row": row})
    names = ("kind", "loss", "gradient_norm", "least_eigenvalue")
    return {"json": {"point": {name: getattr(point, name) for name in names}, "neurons": rows}, "lines": lines}


def _neuron(
    network: TwoLayer,
    j: int,
    matrices: SplitMatrices,
    shares: Sequence[float],
    certificates: Sequence[Certificate],
    isolated: bool,
) -> dict[str, Any]:
    y = np.linalg.eigvalsh(matrices.curvature)
    splits = [
        {
            "mu": mu,
            "kind": c.kind,
            "expected": expected_kind(matrices.scenario, mu) if isolated else None,
            "index": c.index,
            "least_eigenvalue": c.least_eigenvalue,
            "upper_bound": float(matrices.upper_bound(mu)),
        }
        for mu, c in zip(shares, certificates, strict=True)
    ]
    return {
        "neuron": j,
        "outgoing": float(network.outgoing[j]),
        "norm": float(np.linalg.norm(np.asarray(network.incoming[j]))),
        "scenario": matrices.scenario,
        "least_of_Y": float(y[0]),
        "largest_of_Y": float(y[-1]),
        "splits": splits,
    }


def _destinations(
    wide: Task,
    points: Sequence[TwoLayer],
    certificates: Sequence[Certificate],
    shares: Sequence[float],
    catalogue: Catalogue,
    j: int,
    watch: Callable[[str], None],
) -> list[dict[str, Any]]:
    # At a non-strict saddle, such as a minimum split at μ = 0 or 1, the least eigenvalue is zero: there is no direction
    # along which a push is known to leave.
    pushed = [i for i, c in enumerate(certificates) if c.kind != "non-strict saddle"]
    if not pushed:
        return []
    directions = [least_direction(wide, points[i])[1] for i in pushed]

    def tell(done: int, total: int) -> None:
        watch(f"neuron {j}: {done} of {total} pushes")

    found = follow_pushes(wide, [points[i] for i in pushed], directions, catalogue=catalogue, watch=tell)
    return [
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


def _line(wide: Task, network: TwoLayer, j: int, matrices: SplitMatrices) -> dict[str, Any]:
    """Five least eigenvalues along the line of splits, and both bounds; the lower one needs Hessians at μ = -1, 0 and 1."""
    shares = [*AXIS, -1.0, 0.0, 1.0]
    vectors = np.stack([np.asarray(wide.flatten(split(network, {j: [mu, 1 - mu]}))) for mu in shares])
    hessians = np.asarray(wide.hessian(vectors))
    below = lower_bound(*hessians[-3:])
    return {
        "mu": AXIS,
        "five": np.linalg.eigvalsh(hessians[:-3])[:, :5],
        "upper": matrices.upper_bound(AXIS),
        "lower": below(AXIS),
        "lower_bound": below,
    }
