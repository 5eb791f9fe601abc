"""Narrow a network to given widths with data: choose neurons, cut, refit what follows, layer after layer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from understudy.torch.batches import Sample
from understudy.torch.edit import cut, duplicate, get_tensor, set_tensor
from understudy.torch.graph import Call, Graph, Space
from understudy.torch.moments import Moments, collect
from understudy.torch.refit import refit
from understudy.torch.select import Reader, eliminate, make_reader, pivot

Chooser = Callable[[Space, list[Reader], int], list[int]]
"""(space, the layers that read it, width) → the neurons that stay."""


@dataclass
class Halves:
    """Inputs to fit on, and inputs to choose the ridge on."""

    fit: Sample
    check: Sample

    @staticmethod
    def of(sample: Sample) -> Halves:
        """Every fifth input checks; fewer than five inputs check nothing."""
        fifth = torch.arange(len(sample)) % 5 == 4
        return Halves(sample.take(~fifth), sample.take(fifth))


def by_elimination(space: Space, readers: list[Reader], width: int) -> list[int]:
    """The neurons that backward elimination leaves."""
    gone = set(eliminate(readers, space.size, width, space.blocks)[0])
    return [i for i in range(space.size) if i not in gone]


def by_pivots(space: Space, readers: list[Reader], width: int) -> list[int]:
    """The neurons that QR with pivots takes first."""
    return pivot(readers, space.size, width, space.blocks)


CHOOSERS: dict[str, Chooser] = {"elimination": by_elimination, "qr": by_pivots}


def shrink(
    original: nn.Module,
    graph: Graph,
    sample: Sample,
    widths: Mapping[int, int],
    *,
    choose: Chooser = by_elimination,
    again: bool = True,
    tick: Callable[[], None] = lambda: None,
) -> tuple[nn.Module, Graph, dict[int, torch.Tensor]]:
    """A narrower copy of `original` (space → width), its graph, and which neurons were kept.

    `again`: refit what follows; otherwise the weights that stay are left as they are. `tick` is called after each
    layer.
    """
    current, graph = duplicate(original), copy.deepcopy(graph)
    halves = Halves.of(sample)
    kept: dict[int, torch.Tensor] = {}
    changed = False
    for call in list(graph.calls):
        waiting = [s for s in dict.fromkeys(s for s, _ in call.inputs or ()) if s in widths and s not in kept]
        known = None  # moments of this call that are still right, and which of its features are left
        for space in waiting:
            size = graph.spaces[space].size
            kept[space] = torch.arange(size)
            if widths[space] >= size:
                continue
            readers = graph.readers(space)
            fit, check = _moments(original, current, readers, halves, kept)
            views = readers_of(graph, graph.spaces[space], {c.weight: _total(fit, check, c) for c in readers})
            kept[space] = torch.tensor(choose(graph.spaces[space], views, widths[space]))
            assert call.inputs is not None
            columns = graph.entries(call.inputs, {space: kept[space]})
            if call.outputs[0][0] == space:  # a layer beside a shortcut that reads and makes the same neurons
                for part in (fit, check):
                    if call.weight in part:
                        part[call.weight] = part[call.weight].take_outputs(kept[space])
            known = (fit, check, columns) if len(waiting) == 1 else None
            cut(current, graph, {space: kept[space]})
            graph.spaces[space].size = len(kept[space])
            changed = True
        if changed and again:
            _refit(original, current, call, halves, kept, known)
        tick()
    return current, graph, kept


def _moments(
    original: nn.Module, current: nn.Module, calls: list[Call], halves: Halves, kept: Mapping[int, torch.Tensor]
) -> tuple[dict[str, Moments], dict[str, Moments]]:
    """Moments over both sets; of outputs that are cut already only those that stay."""
    total = len(halves.fit) + len(halves.check)
    found = []
    for sample in (halves.fit, halves.check):
        moments = collect(original, current, calls, list(sample.batches()) if len(sample) else [], total=total)
        for call in calls:
            ((made, _),) = call.outputs
            if made in kept and call.weight in moments:
                moments[call.weight] = moments[call.weight].take_outputs(kept[made])
        found.append(moments)
    return found[0], found[1]


def _total(fit: dict[str, Moments], check: dict[str, Moments], call: Call) -> Moments:
    return fit[call.weight] + check[call.weight] if call.weight in check else fit[call.weight]


def _readers(graph: Graph, call: Call, space: int, moments: Moments) -> Iterator[Reader]:
    """A layer as the selection sees it, one reader per group of a convolution.

    The constant counts where the layer has a bias or a BatchNorm after it.
    """
    assert call.inputs is not None
    owners = graph.owners(call.inputs, space)
    owners = owners.repeat_interleave((moments.gram.shape[0] - 1) // len(owners))
    for which, mine in enumerate(owners.chunk(call.groups)):
        part = moments.group(which, call.groups)
        last = len(mine) + 1 if _constant(call) else len(mine)
        mine = torch.cat([mine, torch.tensor([-1])])[:last]
        yield make_reader(part.gram[:last, :last], part.cross[:last], mine, moments.scatter(), part.count)


def _constant(call: Call) -> bool:
    return call.bias is not None or call.mean is not None


def _refit(
    original: nn.Module,
    current: nn.Module,
    call: Call,
    halves: Halves,
    kept: Mapping[int, torch.Tensor],
    known: tuple[dict[str, Moments], dict[str, Moments], torch.Tensor] | None,
) -> None:
    """New weights for one call; `known` are its moments over more features, and those of them that are left."""
    weight = get_tensor(current, call.weight)
    rows = weight.detach().flatten(1).to("cpu", torch.float64)
    bias = torch.zeros(len(rows), dtype=torch.float64)
    if call.bias is not None:
        bias = get_tensor(current, call.bias).detach().to("cpu", torch.float64)
    if known is None:
        fit, check = _moments(original, current, [call], halves, kept)
        columns = torch.arange(rows.shape[1] * call.groups)
    else:
        fit, check, columns = known
        patch = rows.shape[1] * call.groups // len(columns)
        columns = (columns[:, None] * patch + torch.arange(patch)).flatten()
    moments = fit[call.weight]
    checked = check.get(call.weight, Moments.zero(*moments.cross.shape))
    start = torch.cat([rows, bias[:, None]], dim=1)
    parts = [
        refit(moments.take_outputs(made), checked.take_outputs(made), start[made], read, _constant(call))[0]
        for made, read in zip(torch.arange(len(rows)).chunk(call.groups), columns.chunk(call.groups), strict=True)
    ]
    fitted = torch.cat(parts)
    set_tensor(current, call.weight, fitted[:, :-1].reshape(weight.shape))
    if call.bias is not None:
        set_tensor(current, call.bias, fitted[:, -1])
    elif call.mean is not None:
        mean = get_tensor(current, call.mean)
        set_tensor(current, call.mean, mean.to("cpu", torch.float64) - fitted[:, -1])


def error_curves(model: nn.Module, graph: Graph, halves: Halves) -> dict[int, list[float]]:
    """For each free space the error without training when k = 1, 2, … of its neurons stay, and all other neurons."""
    curves = {}
    for space in graph.free:
        calls = graph.readers(space.index)
        fit, check = _moments(model, model, calls, halves, {})
        curves[space.index] = error_curve(
            space, readers_of(graph, space, {c.weight: _total(fit, check, c) for c in calls})
        )
    return curves


def readers_of(graph: Graph, space: Space, moments: Mapping[str, Moments]) -> list[Reader]:
    """The layers that read a space, as the selection sees them."""
    calls = graph.readers(space.index)
    return [reader for call in calls for reader in _readers(graph, call, space.index, moments[call.weight])]


def error_curve(space: Space, readers: list[Reader]) -> list[float]:
    """The error when k = 1, 2, … neurons of one space stay: what the layers that read it cannot fit.

    It is a share of the scatter of their outputs, summed over these layers; 0 when all neurons stay. Where a
    convolution has groups, fewer neurons than groups cannot stay: there the error is that of one neuron per group.
    """
    errors = eliminate(readers, space.size, space.blocks, space.blocks)[1]
    return [*errors[-1:] * (space.blocks - 1), *reversed(errors), 0.0]
