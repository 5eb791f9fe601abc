"""Split each neuron of a point: certificates and bounds along the line of splits, and where the flow goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from understudy.dynamics import FlowOptions
from understudy.files import finite_or_none
from understudy.fitting import FitProgress, fit
from understudy.gaussian import has_closed_form
from understudy.networks import HiddenLayer, Teacher
from understudy.points import Certificate, certify
from understudy.points.destinations import Catalogue, follow_pushes, least_direction
from understudy.points.splitting import SplitMatrices, expected_kind, lower_bound, split_matrices
from understudy.tasks import Population, on_grid
from understudy.tasks.task import Task

STARTS = 8
"""Number of starts among which the best minimum is chosen. With a given seed there is one."""

AXIS = np.linspace(-1.0, 0.5, 61)
"""Shares μ at which spectra are computed for the figure."""

INSIDE = np.linspace(0.0, 1.0, 61)
"""The same with a penalty, under which shares are not negative."""


def population_of(teacher: Teacher, width: int) -> Task:
    """The population loss: on a lattice in the plane where there is no closed form, else from pair interactions."""
    closed = has_closed_form(teacher.activation, teacher.activation)
    plain = teacher.bias is None and teacher.offset is None
    if teacher.dim <= 2 and not closed and plain and teacher.activation.smoothness > 0:
        return on_grid(teacher, width)
    return Population(teacher, width)


def find_minimum(
    task: Task, seed: int | None = None, watch: Callable[[FitProgress], None] | None = None
) -> tuple[Any, int]:
    """The minimum to which a Glorot start leads, and its seed. Without a seed, the best of eight.

    Its neurons are sorted by falling outgoing weight, or by its norm if there are several outputs.
    """
    seeds = list(range(STARTS)) if seed is None else [seed]
    runs = fit(task, seeds, init="glorot", options=FlowOptions(snapshots=0), watch=watch)
    minima = [run for run in runs if run.certificate.kind == "minimum"]
    if not minima:
        kinds = sorted({run.certificate.kind for run in runs})
        raise ValueError(f"No start ended in a minimum: {kinds}. Try another seed.")
    best = min(minima, key=lambda run: run.loss)
    hidden = task.hidden_layer(best.parameters)
    outgoing = np.asarray(hidden.outgoing)
    strength = outgoing[:, 0] if outgoing.shape[1] == 1 else np.linalg.norm(outgoing, axis=1)
    ordered = hidden.take(np.argsort(-strength), np.ones(hidden.width))
    return task.unflatten(task.with_hidden_layer(best.parameters, ordered)[1]), best.seed


def split_report(
    task: Task,
    parameters: Any,
    neurons: Sequence[int],
    shares: Sequence[float],
    *,
    layer: int = 0,
    follow: bool = False,
    watch: Callable[[float, str], None] = lambda *_: None,
) -> dict[str, Any]:
    """Certify the splits of each neuron at these shares μ, with the bounds of their least eigenvalue.

    **Arguments**

    - `task`, `parameters`: any point whose neurons can be split; `layer`: the hidden layer of a deeper network.
    - `follow`: push every split point, except non-strict saddles, along its least eigenvector in both directions, and
      follow the flow.
    - `watch`: called with the number of neurons that are done (a part of one counts) and what comes next.

    Returns `json`, the point and a row per neuron in JSON types, and `lines`, the spectra along the line of splits for
    the figure. Bounds that do not exist (several outputs, a penalty) are None.
    """
    point = certify(task, parameters)
    hidden, known = task.hidden_layer(parameters, layer), {"the minimum that was split": parameters}
    isolated = point.kind == "minimum" and not point.zeros
    rows, lines = [], []
    for done, j in enumerate(neurons):
        watch(done, f"neuron {j}")
        line = _Line(task, parameters, j, layer)
        matrices = split_matrices(task, parameters, j, layer=layer)
        certificates = []
        for number, mu in enumerate(shares):
            certificates.append(certify(*line.at(mu)))
            watch(done + (number + 1) / (len(shares) + 1), f"neuron {j}")
        row = _neuron(hidden, j, matrices, shares, certificates, isolated)
        if follow:
            row["destinations"] = _destinations(line, certificates, shares, known, partial(watch, done))
        spectra = _spectra(line, matrices, INSIDE if matrices.decay else AXIS)
        for told in row["splits"]:
            told["lower_bound"] = finite_or_none(spectra["lower_bound"](told["mu"]))
        rows.append(row)
        lines.append({**spectra, "row": row})
    names = ("kind", "loss", "gradient_norm", "least_eigenvalue")
    return {"json": {"point": {name: getattr(point, name) for name in names}, "neurons": rows}, "lines": lines}


class _Line(NamedTuple):
    """The line of splits of one neuron."""

    task: Task
    parameters: Any
    neuron: int
    layer: int

    def at(self, mu: float) -> tuple[Task, Any]:
        """The wider task and the point at μ."""
        return self.task.split(self.parameters, {self.neuron: [mu, 1 - mu]}, self.layer)

    def hessian(self, mu: float) -> np.ndarray:
        """The Hessian at μ, in coordinates of a chart."""
        wide, vector = self.at(mu)
        local, origin = wide.prepared(vector).chart(vector)
        return np.asarray(local.hessian(origin))


def _neuron(
    hidden: HiddenLayer,
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
            "upper_bound": finite_or_none(matrices.upper_bound(mu)),
        }
        for mu, c in zip(shares, certificates, strict=True)
    ]
    outgoing = [float(x) for x in hidden.outgoing[j]]
    return {
        "neuron": j,
        "outgoing": outgoing[0] if len(outgoing) == 1 else outgoing,
        "norm": float(np.linalg.norm(np.asarray(hidden.incoming[j]))),
        "scenario": matrices.scenario,
        "least_of_Y": float(y[0]),
        "largest_of_Y": float(y[-1]),
        "splits": splits,
    }


def _destinations(
    line: _Line,
    certificates: Sequence[Certificate],
    shares: Sequence[float],
    known: dict[str, Any],
    watch: Callable[[str], None],
) -> list[dict[str, Any]]:
    # At a non-strict saddle, such as a minimum split at μ = 0 or 1, the least eigenvalue is zero: there is no direction
    # along which a push is known to leave.
    pushed = [mu for mu, c in zip(shares, certificates, strict=True) if c.kind != "non-strict saddle"]
    found = []
    for number, mu in enumerate(pushed):
        watch(f"neuron {line.neuron}: {2 * number} of {2 * len(pushed)} pushes")
        wide, point = line.at(mu)
        ends = follow_pushes(wide, [point], [least_direction(wide, point)[1]], catalogue=Catalogue(wide, known))
        found += [
            {
                "mu": mu,
                "sign": d.sign,
                "kind": d.kind,
                "name": d.name,
                "loss": d.loss,
                "escape": d.escape.words if d.escape else None,
            }
            for d in ends
        ]
    return found


def _spectra(line: _Line, matrices: SplitMatrices, axis: np.ndarray) -> dict[str, Any]:
    """Five least eigenvalues along the line of splits, and both bounds."""
    below: Callable[[Any], np.ndarray] = lambda mu: np.full(np.shape(mu), np.nan)  # noqa: E731
    if not matrices.decay:  # with a penalty the Hessian is not a polynomial in μ
        below = lower_bound(*(line.hessian(mu) for mu in (-1.0, 0.0, 1.0)))
    return {
        "mu": axis,
        "five": np.stack([np.linalg.eigvalsh(line.hessian(mu))[:5] for mu in axis]),
        "upper": matrices.upper_bound(axis),
        "lower": below(axis),
        "lower_bound": below,
    }
