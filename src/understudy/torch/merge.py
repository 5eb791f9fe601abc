"""`merge`: remove neurons that others already compute, exactly, and bound the change of outputs from the weights.

Let neuron j have the weights α (w, b) where neuron i has (w, b), with α > 0. If all that happens to them before they
are read is positively homogeneous (ReLU, pooling, sums), then h_j = α h_i for every input. Neuron j can then go, and
the layers that read it add α times its weights to those of i. With other activations this needs α = 1. A BatchNorm
between is part of (w, b). Neurons that nothing reads, and constant ones, go too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from understudy.rays import aligned_groups
from understudy.torch.batches import Inputs
from understudy.torch.bounds import output_bound
from understudy.torch.edit import cut, get_reading, get_tensor, same_modes, set_reading, set_tensor
from understudy.torch.graph import Call, Graph, Space
from understudy.torch.groups import block_of
from understudy.torch.measure import change, cost
from understudy.torch.model import free_spaces, prepare
from understudy.torch.moments import watch
from understudy.torch.result import Compressed, CompressionReport, LayerWidth
from understudy.torch.rows import maker_rows, pieces_of
from understudy.torch.synthetic import inputs_for


@dataclass(frozen=True)
class MergeReport(CompressionReport):
    """Besides widths, costs and the measured change: what was merged.

    **Attributes**

    - `groups`: path → groups of neurons (old indices) that became one.
    - `silent`: path → neurons that nothing reads or that are constant. Where a convolution has groups, which stay
      equal, some neurons that are not needed stay: nothing reads them.
    - `bound`: ‖f_before(x) - f_after(x)‖ ≤ bound · max(‖x‖, 1) for every x, from the weights; None where the network
      is not a chain.
    """

    groups: dict[str, list[list[int]]] | None = None
    silent: dict[str, list[int]] | None = None
    bound: float | None = None

    @property
    def removed(self) -> int:
        """Number of neurons that were removed."""
        return sum(layer.before - layer.after for layer in self.layers)

    def words(self) -> list[str]:
        """As for `compress`, with the bound from the weights."""
        words = super().words()
        if self.bound is not None:
            words.insert(
                1, f"For every input x the outputs change by at most {self.bound:.1e} · max(‖x‖, 1), from the weights."
            )
        return words


def merge(model: nn.Module, data: Any = None, *, tolerance: float = 1e-6, example: Any = None) -> Compressed:
    """The same function with fewer neurons: exact merges only.

    **Arguments**

    - `model`: as for `compress`.
    - `data`: inputs on which the change is measured. Neurons that are constant on them are removed too, which keeps the
      outputs on such inputs only. Without data the change is measured on standard normal inputs.
    - `tolerance`: distance between the unit vectors of two neurons' weights up to which they count as equal.
    - `example`: a few inputs, needed without data where the first layer is a convolution.

    >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> with torch.no_grad():
    ...     _ = net[0].weight[2].copy_(2 * net[0].weight[0]), net[0].bias[2].copy_(2 * net[0].bias[0])
    >>> merge(net).model[0].out_features
    2
    """
    if not 0 <= tolerance < 2:
        raise ValueError(
            f"tolerance is a distance between unit vectors, at least 0 and below 2; received {tolerance!r}."
        )
    original, graph, inputs = prepare(model, data, example)
    free_spaces(graph)
    sample = inputs_for(original, data, inputs, 2000)
    small, _, _ = prepare(original, example=inputs)
    sizes = {space.index: space.size for space in graph.free}
    kept: dict[int, list[int]] = {}
    groups: dict[str, list[list[int]]] = {}
    silent: dict[str, list[int]] = {}
    steps: list[tuple[Call, float]] = []
    _forget_unread(small, graph)
    for space in graph.free:
        silent[space.path] = _silent(small, graph, space, sample.take(slice(512)).inputs, data is not None)
        found, factors, gap = _groups(small, graph, space, tolerance, silent[space.path])
        groups[space.path] = [group for group in found if len(group) > 1]
        _fold(small, graph, space, found, factors)
        kept[space.index] = _keep(small, graph, space, [group[0] for group in found])
        steps += [(call, gap) for call in graph.makers(space.index)]
    layers = tuple(LayerWidth(s.path, sizes[s.index], s.size, tuple(kept[s.index])) for s in graph.free)
    exact = data is None or not any(silent.values())
    report = MergeReport(
        layers, cost(original, inputs), cost(small, inputs),
        change(original, small, sample, "given" if data is not None else "synthetic"),
        graph.notes("not merged"),
        {path: found for path, found in groups.items() if found},
        {path: found for path, found in silent.items() if found},
        output_bound(original, graph, steps, small) if exact else None,
    )  # fmt: skip
    return Compressed(same_modes(small, model), report, inputs)


def _forget_unread(model: nn.Module, graph: Graph) -> None:
    """Let neurons that nothing reads read nothing, last layers first: what only they read is then not needed either."""
    for space in reversed(graph.free):
        unread = torch.from_numpy(_read_strength(model, graph, space) == 0)
        for call in graph.makers(space.index) if bool(unread.any()) else []:
            weight = get_tensor(model, call.weight).detach().clone()
            weight[unread.to(weight.device)] = 0
            set_tensor(model, call.weight, weight)


def _keep(model: nn.Module, graph: Graph, space: Space, kept: list[int]) -> list[int]:
    """Cut to these neurons and a few others, which nothing reads any more; the neurons that stay.

    Others stay where a block would lose more than another does, or everything: layers without inputs cannot be stored.
    """
    block = block_of(space.size, space.blocks)
    counts = torch.bincount(block[kept], minlength=space.blocks)
    most = max(1, int(counts.max()))
    chosen = set(kept)
    for b, count in enumerate(counts.tolist()):
        left = [i for i in torch.nonzero(block == b).flatten().tolist() if i not in chosen]
        chosen.update(left[: most - count])
    others = torch.tensor(sorted(chosen - set(kept)))
    for call in graph.readers(space.index) if len(others) else []:
        assert call.inputs is not None
        weight = get_reading(model, call).clone()
        weight[:, torch.isin(graph.owners(call.inputs, space.index), others).to(weight.device)] = 0
        set_reading(model, call, weight)
    found = sorted(chosen)
    if len(found) < space.size:
        cut(model, graph, {space.index: torch.tensor(found)})
        space.size = len(found)
    return found


def _groups(
    model: nn.Module, graph: Graph, space: Space, tolerance: float, silent: list[int]
) -> tuple[list[list[int]], list[list[float]], float]:
    """Groups with the leader first, the factors of their members, and the sum of distances ‖row_j - α row_leader‖.

    Each distance is weighted by the norm of the weights that read the neuron. Neurons in `silent` belong to no group,
    and a group lies within one block.
    """
    pieces = pieces_of(model, graph, space)
    gone = set(silent)
    others = [i for i in range(space.size) if i not in gone]
    if pieces is None:
        return [[i] for i in others], [[1.0]] * len(others), 0.0
    rows, compared = pieces.rows, pieces.compared(others)
    lengths = np.linalg.norm(rows, axis=1)
    found, factors, gap = [], [], 0.0
    reads = _read_strength(model, graph, space)
    block = block_of(space.size, space.blocks).tolist()
    parts = [np.array([i for i in others if block[i] == b], dtype=int) for b in range(space.blocks)]
    for group in (
        part[list(places)].tolist()
        for part in parts
        for places in aligned_groups(compared[part], tolerance=tolerance, silent=-1.0)
    ):
        leader = max(group, key=lambda i: lengths[i])
        members = [leader, *(i for i in group if i != leader)]
        square = float(rows[leader] @ rows[leader])
        alphas = [float(rows[i] @ rows[leader]) / square if pieces.homogeneous and square else 1.0 for i in members]
        gap += sum(
            reads[i] * float(np.linalg.norm(rows[i] - a * rows[leader])) for i, a in zip(members, alphas, strict=True)
        )
        found.append(members)
        factors.append(alphas)
    order = sorted(range(len(found)), key=lambda k: found[k][0])
    return [found[k] for k in order], [factors[k] for k in order], gap


def _read_strength(model: nn.Module, graph: Graph, space: Space) -> np.ndarray:
    """Norm of the weights with which each neuron is read, over all readers."""
    total = np.zeros(space.size)
    for call in graph.readers(space.index):
        assert call.inputs is not None
        weight = get_reading(model, call).double().cpu()
        squares = (weight**2).sum([0, *range(2, weight.ndim)])
        owners = graph.owners(call.inputs, space.index)
        mine = owners >= 0
        total += np.sqrt(np.bincount(owners[mine].numpy(), squares[mine].numpy(), minlength=space.size))
    return total


def _fold(model: nn.Module, graph: Graph, space: Space, groups: list[list[int]], factors: list[list[float]]) -> None:
    """Add the weights that read each member, times its factor, to those that read its leader."""
    for call in graph.readers(space.index):
        assert call.inputs is not None
        weight = get_reading(model, call).double().clone()
        owners = graph.owners(call.inputs, space.index)
        places = torch.argsort(owners, stable=True)[int((owners < 0).sum()) :].view(
            space.size, -1
        )  # entries of each neuron
        places = places.to(weight.device)
        for members, alphas in zip(groups, factors, strict=True):
            for member, alpha in zip(members[1:], alphas[1:], strict=True):
                weight[:, places[members[0]]] += alpha * weight[:, places[member]]
        set_reading(model, call, weight)


def _silent(model: nn.Module, graph: Graph, space: Space, inputs: Inputs, given: bool) -> list[int]:
    """Neurons that nothing reads, and constant ones, whose value goes to the biases of what reads them."""
    unread = _read_strength(model, graph, space) == 0
    values = _constants(model, graph, space, inputs, given)
    constant = [i for i, value in enumerate(values) if value is not None and not unread[i]]
    for call in graph.readers(space.index) if constant else []:
        assert call.inputs is not None
        weight = get_reading(model, call).double()
        owners = graph.owners(call.inputs, space.index).to(weight.device)
        shift = torch.zeros(len(weight), dtype=torch.float64, device=weight.device)
        for i in constant:
            shift += (values[i] or 0.0) * weight[:, owners == i].flatten(1).sum(1)
        if call.bias is not None:
            set_tensor(model, call.bias, get_tensor(model, call.bias).double() + shift)
        elif call.mean is not None:
            set_tensor(model, call.mean, get_tensor(model, call.mean).double() - shift)
    still = set(constant)
    return [i for i in range(space.size) if unread[i] or i in still]


def _constants(model: nn.Module, graph: Graph, space: Space, inputs: Inputs, given: bool) -> list[float | None]:
    """The value of each neuron that never changes: with zero weights, or on inputs that are `given`; None for others.

    A value other than zero needs readers with a bias (or a BatchNorm after them) and without padding, because a
    constant ends at the border.
    """
    candidate = torch.ones(space.size, dtype=torch.bool)
    if not given:
        if pieces_of(model, graph, space) is None:
            return [None] * space.size
        places = [maker_rows(model, call)[:, :-1].abs().amax(1) == 0 for call in graph.makers(space.index)]
        candidate = torch.stack(places).all(0)
        inputs = tuple(x[:8] for x in inputs)
    readers = graph.readers(space.index)
    low, high = torch.full((space.size,), torch.inf), torch.full((space.size,), -torch.inf)
    by_name = {call.weight: call for call in readers}

    def take(key: str, x: torch.Tensor, _: torch.Tensor) -> None:
        call = by_name[key]
        assert call.inputs is not None
        axis = x.ndim - 1 if call.kind == "linear" else 1
        flat = x.movedim(axis, 0).flatten(1).cpu().float()
        owners = graph.owners(call.inputs, space.index)
        mine = owners >= 0
        for reduce, kept in (("amin", low), ("amax", high)):
            values = flat.amin(1) if reduce == "amin" else flat.amax(1)
            kept.scatter_reduce_(0, owners[mine], values[mine], reduce)

    with torch.no_grad(), watch(model, readers, take):
        model(*inputs)
    size = torch.maximum(low.abs(), high.abs())
    same = candidate & (high - low <= 1e-7 * size.clamp(min=1e-30)) & torch.isfinite(high)
    plain = all((c.bias or c.mean) and not (isinstance(c.padding, str) or any(c.padding)) for c in readers)
    return [float(low[i]) if same[i] and (plain or float(size[i]) == 0) else None for i in range(space.size)]
