"""How wide each layer should be: from widths, a share, or one error budget across layers that meets a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from understudy.torch.batches import Sample
from understudy.torch.graph import Graph
from understudy.torch.shrink import Halves, error_curves

Widths = dict[int, int]


def given_widths(graph: Graph, widths: Sequence[int] | Mapping[str, int]) -> Widths:
    """Widths of all free layers in order, or of some of them by path."""
    found = graph.named("widths", widths)
    for index, width in found.items():
        space = graph.spaces[index]
        if not 1 <= width <= space.size:
            raise ValueError(
                f"widths: {space.path} has {space.size} neurons; received {width}. Widen with understudy.torch.grow."
            )
    return found


def share_of(graph: Graph, keep: float) -> Widths:
    """The same share of every layer, at least one neuron (of each group)."""
    if not 0 < keep <= 1:
        raise ValueError(f"keep is the share of neurons that stay, above 0 and at most 1; received {keep}.")
    return {s.index: max(1, round(keep * s.size / s.blocks)) * s.blocks for s in graph.free}


class ErrorBudget:
    """Widths as a function of one number: the error that each layer may make, a share of what its readers compute."""

    def __init__(self, model: nn.Module, graph: Graph, sample: Sample) -> None:
        self.graph = graph
        self.curves = error_curves(model, graph, Halves.of(sample))

    def widths(self, error: float) -> Widths:
        """The least width of each layer whose error is at most `error`."""
        found = {}
        for space in self.graph.free:
            curve = torch.tensor(self.curves[space.index])  # entry k: error with k + 1 neurons
            found[space.index] = space.at_least(int(torch.nonzero(curve <= error).flatten()[0]) + 1)
        return found

    def steps(self) -> list[float]:
        """All errors at which a width changes, in order."""
        return sorted({error for curve in self.curves.values() for error in curve})

    def smallest(self, fits: Callable[[Widths], bool]) -> Widths | None:
        """Widths of the least error for which `fits`, by bisection: larger errors must fit too. None if none does."""
        steps = self.steps()
        low, high = 0, len(steps) - 1
        if not fits(self.widths(steps[high])):
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(self.widths(steps[middle])) else (middle + 1, high)
        return self.widths(steps[low])

    def largest(self, fits: Callable[[Widths], bool], tries: int = 8) -> Widths:
        """Widths of about the greatest error for which `fits`, by `tries` bisections; no change if none does."""
        steps = self.steps()
        low, high, best = 0, len(steps), {space.index: space.size for space in self.graph.free}
        for _ in range(tries):
            if high - low < 1:
                break
            middle = (low + high) // 2
            widths = self.widths(steps[middle])
            if fits(widths):
                best, low = widths, middle + 1
            else:
                high = middle
        return best


def count_after(model: nn.Module, graph: Graph, widths: Mapping[int, int]) -> tuple[int, int]:
    """Parameters and multiply-accumulates per input with these widths, from shapes alone."""
    shapes: dict[str, list[int]] = {name: list(p.shape) for name, p in model.named_parameters()}
    groups = {call.weight: call.groups for call in graph.calls}
    for slot in graph.slots:
        if slot.name in shapes:
            length = sum(widths.get(s, graph.spaces[s].size) * r for s, r in slot.layout)
            shapes[slot.name][slot.axis] = length // groups.get(slot.name, 1) if slot.axis == 1 else length
    sizes = {name: int(torch.tensor(shape).prod()) for name, shape in shapes.items()}
    macs = 0
    for call in graph.calls:
        axis = len(call.output_shape) - 1 if call.kind == "linear" else 1
        places = torch.tensor(call.output_shape[1:]).prod() // call.output_shape[axis]
        macs += int(places) * sizes[call.weight]
    return sum(sizes.values()), macs


def check_target(name: str, target: float, most: int, least: int) -> int:
    """A number of parameters or multiply-accumulates that can be met; a share below 1 is of those now."""
    wanted: Any = target * most if 0 < target < 1 else target
    if not least <= wanted <= most:
        raise ValueError(
            f"{name}: the model has {most:,}, and one neuron per layer leaves {least:,}; received {target:,}."
        )
    return int(wanted)
