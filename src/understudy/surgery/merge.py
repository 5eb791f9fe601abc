"""Merge aligned neurons of homogeneous layers: the same function with fewer neurons, and never a larger norm.

Let σ(cx) = c^p σ(x) for c > 0. Neurons of one layer whose incoming weights and biases (w_i, b_i) = α_i (u, v) point the
same way, with outgoing vectors a_i, compute together

    Σ_i a_i σ(w_i·x + b_i) = A σ(u·x + v),    A = Σ_i α_i^p a_i.

One neuron with incoming α(u, v) and outgoing A/α^p computes the same. The choice α^(2p+2) = p‖A‖² (with ‖(u, v)‖ = 1)
has the least squared norm α² + ‖A‖²/α^(2p) = c_p ‖A‖^(2/(p+1)). This is at most the sum of the same expression over the
members, so merging never raises the norm. Even and odd activations merge opposite neurons, too. "A group of aligned
neurons can be replaced by a single neuron without changing the resulting function" (Jacot et al. 2022, Section 3.1).

With data, neurons need to be aligned only on the data. If their activations σ(Z_i) = α_i h are proportional over all
inputs, one member represents all of them: the one with the least incoming weights for its activation. Neurons that are
silent on the data are removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from understudy.activations import Activation
from understudy.networks import Deep, TwoLayer
from understudy.rays import Groups, aligned_groups
from understudy.surgery.parts import activations_of, check_inputs, forward, pack, require_homogeneous, unpack

PROBES = 1000
"""Standard normal inputs on which a change of function is measured where no data are given."""


@dataclass(frozen=True)
class LayerMerge:
    """Changes of one hidden layer: sizes, groups that became one neuron each, and removed neurons (old indices)."""

    layer: int
    before: int
    after: int
    groups: tuple[tuple[int, ...], ...]
    removed: tuple[int, ...]


@dataclass(frozen=True)
class MergeReport:
    """What merging changed.

    **Attributes**

    - `layers`: one entry per hidden layer, starting with the first.
    - `norm_before`, `norm_after`: squared norm of all weights and biases.
    - `largest_change`: largest |f_before - f_after| over the inputs (the data, or standard normal probes) and outputs.
    - `relative_change`: root mean square of the change over that of f_before.
    - `inputs`: `"data"` or `"probes"`.
    """

    layers: tuple[LayerMerge, ...]
    norm_before: float
    norm_after: float
    largest_change: float
    relative_change: float
    inputs: str

    @property
    def before(self) -> int:
        """Hidden neurons before."""
        return sum(layer.before for layer in self.layers)

    @property
    def after(self) -> int:
        """Hidden neurons after."""
        return sum(layer.after for layer in self.layers)


@dataclass(frozen=True)
class Merged:
    """The smaller network, of the same type, and the report."""

    network: Any
    report: MergeReport


def squared_norm(network: TwoLayer | Deep) -> float:
    """Σ of the squares of all weights and biases."""
    if isinstance(network, TwoLayer):
        return float(np.sum(np.square(network.incoming)) + np.sum(np.square(network.outgoing)))
    return float(sum(np.sum(np.square(p)) for p in (*network.weights, *network.biases)))


def merge(
    network: TwoLayer | Deep,
    activation: str | Activation,
    *,
    inputs: ArrayLike | None = None,
    tolerance: float = 1e-6,
) -> Merged:
    """The network with aligned neurons merged and silent ones removed, in every hidden layer, with a report.

    **Arguments**

    - `network`: one `TwoLayer` (any number of outputs) or `Deep` network. Neurons in no group keep their weights.
    - `activation`: homogeneous, such as relu, abs, linear or quadratic.
    - `inputs`: (N, d) data. Without data, neurons are compared by their weights, and the function is kept everywhere.
      With data, they are compared by their activations on these inputs, and the outputs are kept only there.
    - `tolerance`: neurons are aligned if the unit vectors of their weights (or activations) are at most this far apart.
      At the default merging is exact for copies and nearly exact for well-trained networks. At larger values the report
      says what changed.

    >>> split = TwoLayer([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], [1.0, 1.0, 3.0])
    >>> merged = merge(split, "relu")
    >>> merged.network.width, merged.report.norm_before, merged.report.norm_after
    (2, 17.0, 16.0)
    """
    sigma = require_homogeneous(activation)
    if not 0 <= tolerance < 2:
        raise ValueError(
            f"tolerance is a distance between unit vectors, at least 0 and less than 2; received {tolerance!r}."
        )
    weights, biases = unpack(network)
    data = None if inputs is None else check_inputs(inputs, weights[0].shape[1])
    old: list[Groups] = [[(i,) for i in range(len(w))] for w in weights[:-1]]
    silent: list[list[int]] = [[] for _ in weights[:-1]]
    changed = True
    while changed:  # merging a layer shortens the outgoing vectors of the layer below, which may silence neurons there
        changed = False
        for layer in range(len(weights) - 1):
            rows = np.concatenate([weights[layer], biases[layer][:, None]], axis=1)
            active = None if data is None else activations_of(weights, biases, sigma, data, layer)
            kept, rows, out = merge_layer(rows, weights[layer + 1], sigma, active, tolerance)
            if len(rows) < len(weights[layer]):
                changed = True
                gone = set(range(len(weights[layer]))) - {i for group in kept for i in group}
                silent[layer] += [i for g in sorted(gone) for i in old[layer][g]]
                old[layer] = [tuple(i for g in group for i in old[layer][g]) for group in kept]
                weights[layer], biases[layer], weights[layer + 1] = rows[:, :-1], rows[:, -1], out
    merged = pack(network, weights, biases)
    layers = tuple(
        LayerMerge(
            r + 1,
            sum(len(g) for g in old[r]) + len(silent[r]),
            len(old[r]),
            tuple(tuple(sorted(g)) for g in old[r] if len(g) > 1),
            tuple(sorted(silent[r])),
        )
        for r in range(len(old))
    )
    return Merged(merged, compare(network, merged, sigma, layers, data))


def compare(
    before: TwoLayer | Deep,
    after: TwoLayer | Deep,
    activation: str | Activation,
    layers: tuple[LayerMerge, ...],
    data: np.ndarray | None,
) -> MergeReport:
    """The report of a change: norms, and the change of function on the data or on standard normal probes."""
    dim = unpack(before)[0][0].shape[1]
    x = np.random.default_rng(0).normal(size=(PROBES, dim)) if data is None else data
    f, g = (forward(*unpack(n), activation, x) for n in (before, after))
    size = float(np.sqrt(np.mean(f**2)))
    gap = float(np.sqrt(np.mean((f - g) ** 2)))
    return MergeReport(
        layers,
        squared_norm(before),
        squared_norm(after),
        float(np.max(np.abs(f - g))),
        gap / size if size else gap,
        "probes" if data is None else "data",
    )


def merge_layer(
    rows: np.ndarray, out: np.ndarray, sigma: Activation, active: np.ndarray | None, tolerance: float
) -> tuple[Groups, np.ndarray, np.ndarray]:
    """One layer: the groups of neurons that stay, their new rows (weights and bias) and outgoing columns.

    `rows` (n, d + 1), `out` (m, n); `active` (N, n) are the neurons' activations on data, if activations are compared.
    """
    compared = rows if active is None else active.T
    lengths = np.linalg.norm(compared, axis=1)
    strength = lengths * np.linalg.norm(out, axis=0)
    signed = sigma.parity is not None or active is not None  # activations may be proportional with any factor
    # A neuron adds at most its strength to a weight of the next layer. Below rounding of the strongest it adds nothing.
    groups = aligned_groups(compared, tolerance=tolerance, strength=strength, signed=signed)
    new_rows, new_out, kept = [], [], []
    for group in groups:
        if len(group) == 1:
            row, column = rows[group[0]], out[:, group[0]]
        else:
            row, column = _join(
                rows[list(group)], out[:, list(group)], compared[list(group)], sigma, active is not None
            )
            members = lengths[list(group)] @ np.linalg.norm(out[:, list(group)], axis=0)
            if np.linalg.norm(column) * np.linalg.norm(row) <= 1e-14 * members:
                continue  # the outgoing weights cancel, so the group is silent
        kept.append(group)
        new_rows.append(row)
        new_out.append(column)
    if not kept:
        return [], np.zeros((0, rows.shape[1])), np.zeros((len(out), 0))
    return kept, np.stack(new_rows), np.stack(new_out, axis=1)


def _join(
    rows: np.ndarray, out: np.ndarray, compared: np.ndarray, sigma: Activation, on_data: bool
) -> tuple[np.ndarray, np.ndarray]:
    """One neuron for a group: its row and its outgoing column."""
    p = sigma.homogeneity or 1
    strength = np.linalg.norm(out, axis=0)
    if on_data:  # activations are α_i h: take h from the member with the least weights for it
        alphas = compared @ compared[0] / (compared[0] @ compared[0])
        best = int(np.argmin(np.linalg.norm(rows, axis=1) / np.abs(alphas) ** (1 / p)))
        total, direction = out @ (alphas / alphas[best]), rows[best]
        size = np.linalg.norm(direction)
        direction, total = direction / size, total * size**p
    else:
        signs = np.where(rows @ rows[np.argmax(strength * np.linalg.norm(rows, axis=1))] < 0, -1.0, 1.0)
        direction = (signs * strength) @ rows
        direction = direction / np.linalg.norm(direction)
        alphas = np.abs(rows @ direction)
        total = out @ (alphas**p * (signs if sigma.parity == "odd" else 1.0))
    alpha = (np.sqrt(p) * np.linalg.norm(total)) ** (1 / (p + 1))
    if alpha == 0:
        return np.zeros_like(direction), np.zeros_like(total)
    return alpha * direction, total / alpha**p
