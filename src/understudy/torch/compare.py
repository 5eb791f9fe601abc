"""`compare`: which neurons of one network are found again in another, against an untrained network of the same widths.

Neurons are compared by their activations over the same inputs: the correlation ρ of a student neuron with a teacher
neuron. A teacher neuron is recovered if some student neuron has ρ above a threshold. Negative correlations do not count
unless asked for. Neurons that never change on the inputs count on neither side. The same is done for the student with
new random weights, and the difference is what training (or compression) gave.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from understudy.tables import Printed
from understudy.torch.batches import Sample, gather
from understudy.torch.edit import cut, duplicate, get_tensor, same_modes, set_tensor
from understudy.torch.graph import Call, Graph
from understudy.torch.groups import block_of
from understudy.torch.model import prepare
from understudy.torch.moments import watch

APART = -1e6
"""In place of the correlation of neurons in different groups of a convolution, which cannot change places."""
PLACES = 16
"""Positions per input at which maps of convolutions are compared."""


@dataclass(frozen=True)
class LayerMatch:
    """One teacher layer, and the student layer that is most like it.

    **Attributes**

    - `teacher`, `student`: paths; `neurons`: teacher neurons that change on the inputs; `still`: those that do not.
    - `recovered`, `untrained`: how many have a student neuron with a correlation above the threshold, in the student
      and in an untrained one.
    - `best`: mean over teacher neurons of the largest correlation; `untrained_best` likewise.
    - `cka`: linear centred kernel alignment of the two layers, 0 to 1; 0 where a layer never changes.
    - `order`: for each teacher neuron the student neuron that an optimal one-to-one assignment gives it, or -1.
    """

    teacher: str
    student: str
    neurons: int
    still: int
    recovered: int
    untrained: int
    best: float
    untrained_best: float
    cka: float
    order: tuple[int, ...]


@dataclass(frozen=True)
class Comparison(Printed):
    """All teacher layers; prints as a table."""

    layers: tuple[LayerMatch, ...]
    threshold: float
    inputs: int

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        heads = ["teacher", "student", "neurons", "still", "found", "untrained", "mean ρ", "untr. ρ", "CKA"]
        rows = [
            [m.teacher, m.student, str(m.neurons), str(m.still), str(m.recovered), str(m.untrained)]
            + [f"{value:.2f}" for value in (m.best, m.untrained_best, m.cka)]
            for m in self.layers
        ]
        return heads, rows

    def words(self) -> list[str]:
        """What the columns mean."""
        return [
            f"found: teacher neurons with a student neuron of correlation above {self.threshold:g} on {self.inputs:,} "
            "inputs; untrained: the same for a student with new random weights. still: neurons that never change, "
            "which count nowhere."
        ]


def compare(
    student: nn.Module,
    teacher: nn.Module,
    data: Any,
    *,
    threshold: float = 0.9,
    signed: bool = True,
    samples: int = 2000,
) -> Comparison:
    """Which neurons of `teacher` are found in `student`; widths and depths may differ.

    **Arguments**

    - `student`, `teacher`: modules that take the same inputs.
    - `data`: inputs, as for `report`.
    - `threshold`: correlation above which a neuron counts as found.
    - `signed`: if False, opposite neurons count as found too.
    - `samples`: how many inputs are used.

    >>> _ = torch.manual_seed(0)
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> found = compare(net, net, torch.randn(200, 4)).layers[0]
    >>> found.recovered == found.neurons
    True
    """
    if not 0 < threshold < 1:
        raise ValueError(f"threshold is a correlation between 0 and 1; received {threshold}.")
    wide, wide_graph, _ = prepare(teacher, data)
    small, small_graph, _ = prepare(student, data)
    sample = gather(data, wide, samples)
    ours, theirs = activations(small, small_graph, sample), activations(wide, wide_graph, sample)
    if not ours or not theirs:
        raise ValueError("student and teacher need hidden Linear or Conv layers to compare; one of them has none.")
    fresh = activations(untrained(small, small_graph), small_graph, sample)
    layers = []
    for path, target in theirs.items():
        alike = {name: cka(*rows_of(target, found)) for name, found in ours.items()}
        name = max(alike, key=lambda key: alike[key])
        moving = _moving(rows_of(target, ours[name])[0])
        rho = correlations(*rows_of(target, ours[name]), signed)
        null = correlations(*rows_of(target, fresh[name]), signed)
        best, null_best = rho.max(1)[moving], null.max(1)[moving]
        layers.append(
            LayerMatch(
                path, name, int(moving.sum()), int((~moving).sum()),
                int((best > threshold).sum()), int((null_best > threshold).sum()),
                float(best.mean()) if len(best) else 0.0, float(null_best.mean()) if len(best) else 0.0,
                alike[name], assignment(rho),
            )
        )  # fmt: skip
    return Comparison(tuple(layers), threshold, len(sample))


def activations(model: nn.Module, graph: Graph, sample: Sample) -> dict[str, np.ndarray]:
    """Values (N, places, n) of every hidden space as its first reader sees them, at a few positions of each input.

    A layer that is used twice sees several spaces; those that only such layers read are left out.
    """
    uses = Counter(call.weight for call in graph.calls)
    first: dict[str, tuple[Call, int, str]] = {}
    for space in graph.spaces.values():
        for call in [call for call in graph.readers(space.index) if uses[call.weight] == 1][:1]:
            if len(call.inputs or ()) == 1:
                first[call.weight] = (call, space.index, space.path)
    found: dict[str, list[np.ndarray]] = {path: [] for _, _, path in first.values()}

    def take(key: str, x: torch.Tensor, _: torch.Tensor) -> None:
        call, space, path = first[key]
        assert call.inputs is not None
        if call.kind == "linear":
            x = (
                x.reshape(len(x), -1, graph.spaces[space].size, call.inputs[0][1]).transpose(2, 3).flatten(1, 2)
            )  # (N, places, n)
        else:
            x = x.flatten(2).transpose(1, 2)
        chosen = torch.linspace(0, x.shape[1] - 1, min(PLACES, x.shape[1])).round().long().to(x.device)
        found[path].append(x[:, chosen].double().cpu().numpy())

    with torch.no_grad():
        for batch in sample.batches():
            with watch(model, [call for call, _, _ in first.values()], take):
                model(*batch)
    return {path: np.concatenate(parts) for path, parts in found.items() if parts}


def rows_of(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of activations as matrices with equal rows: all positions if both have as many, else means per input."""
    if one.shape[1] == other.shape[1]:
        return one.reshape(-1, one.shape[2]), other.reshape(-1, other.shape[2])
    return one.mean(1), other.mean(1)


def untrained(model: nn.Module, graph: Graph) -> nn.Module:
    """The same network with the weights of every Linear and Conv layer drawn anew, with their old spread."""
    fresh, draw = duplicate(model), torch.Generator().manual_seed(0)
    for call in graph.calls:
        weight = get_tensor(fresh, call.weight)
        noise = torch.randn(weight.shape, generator=draw).to(weight)
        set_tensor(fresh, call.weight, noise * weight.std() if weight.numel() > 1 else noise)
    return fresh


def _moving(values: np.ndarray) -> np.ndarray:
    spread = values.std(0)
    return spread > 1e-7 * np.abs(values).max(0).clip(min=1e-30)


def correlations(teacher: np.ndarray, student: np.ndarray, signed: bool = True) -> np.ndarray:
    """ρ (teacher neurons, student neurons); 0 for neurons that never change; absolute values unless `signed`."""
    units = []
    for values in (teacher, student):
        centred = (values - values.mean(0)) * _moving(values)
        units.append(centred / np.linalg.norm(centred, axis=0).clip(min=1e-300))
    rho = units[0].T @ units[1]
    return rho if signed else np.abs(rho)


def cka(one: np.ndarray, other: np.ndarray) -> float:
    """Linear centred kernel alignment ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖) (Kornblith et al. 2019); 0 where one never changes."""
    x, y = one - one.mean(0), other - other.mean(0)
    below = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return float(np.linalg.norm(x.T @ y) ** 2 / below) if below > 0 else 0.0


def assignment(rho: np.ndarray) -> tuple[int, ...]:
    """A student neuron for each teacher neuron, each at most once, with the largest sum of correlations; -1: none."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-rho)
    found = np.full(len(rho), -1)
    found[rows] = columns
    return tuple(int(i) for i in found)


def align(student: nn.Module, teacher: nn.Module, data: Any, *, samples: int = 2000) -> nn.Module:
    """A copy of `student` that computes the same, with its neurons in the order of the teacher neurons they resemble.

    Both networks have the same layers and widths, such as two trainings of one class.
    """
    wide, wide_graph, _ = prepare(teacher, data)
    small, graph, _ = prepare(student, data)
    sample = gather(data, wide, samples)
    ours, theirs = activations(small, graph, sample), activations(wide, wide_graph, sample)
    orders = {}
    for space in graph.free:
        if space.path not in theirs or theirs[space.path].shape[2] != space.size or space.path not in ours:
            raise ValueError(f"align needs two networks of the same layers and widths; {space.path} differs.")
        rho = correlations(*rows_of(theirs[space.path], ours[space.path]))
        block = block_of(space.size, space.blocks).numpy()
        rho[block[:, None] != block] = APART
        orders[space.index] = torch.tensor(assignment(rho))
    cut(small, graph, orders)
    return same_modes(small, student)
