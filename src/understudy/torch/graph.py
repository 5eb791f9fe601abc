"""What a network consists of, for surgery: spaces of neurons, and the parameters and calls that index them.

A *space* is a set of neurons whose number can change: the outputs of a Linear or Conv layer. BatchNorm, activations,
pooling and dropout keep the space. Residual sums couple two spaces into one. Concatenation puts spaces side by side.
Flattening repeats each neuron once per position. A *layout* is the tuple of (space, repeats) that describes one axis of
a tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

Layout = tuple[tuple[int, int], ...]
"""One axis: (space, number of consecutive entries of each neuron), one pair per concatenated part."""

OUTPUTS = "they are the model's outputs"
FOREIGN = "they are inputs, or outputs of something that is not supported"
"""Reasons why entries of an axis stay that belong to no layer whose width a user could expect to change."""


@dataclass(frozen=True)
class Slot:
    """An axis of a parameter or buffer that is indexed by neurons."""

    name: str
    axis: int
    layout: Layout


@dataclass(frozen=True)
class Call:
    """One use of a Linear or Conv layer: what it reads and what it makes.

    `mean`: the running mean of a BatchNorm that follows at once; it can absorb a constant where the layer has no bias.
    """

    kind: str
    path: str
    weight: str
    bias: str | None
    inputs: Layout | None
    outputs: Layout
    output_shape: tuple[int, ...]
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] | str = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    mean: str | None = None


@dataclass
class Space:
    """Neurons that are kept or removed together; `frozen` says why they cannot be, or is None.

    `blocks`: they are made or read in this many equal, consecutive groups, which all keep the same number of neurons.
    """

    index: int
    size: int
    path: str
    frozen: str | None = None
    blocks: int = 1

    def at_least(self, width: int) -> int:
        """The least possible width that is not smaller."""
        return max(-(-width // self.blocks), 1) * self.blocks


@dataclass
class Graph:
    """The spaces of a network, the parameter axes they index, and the Linear and Conv calls in order of execution."""

    spaces: dict[int, Space]
    slots: list[Slot]
    calls: list[Call]
    functions: dict[int, set[str]] = field(default_factory=dict)
    """What is applied to the neurons of each space between the layers that make and read them."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Layers without a space: path → why their width stays."""
    unseen: tuple[str, ...] = ()
    """Paths of layers that the forward pass in evaluation mode did not reach."""

    @property
    def free(self) -> list[Space]:
        """Spaces whose width can change, in order of execution."""
        return [space for space in self.spaces.values() if space.frozen is None]

    def named(self, name: str, widths: Sequence[int] | Mapping[str, int]) -> dict[int, int]:
        """Space → width, from the widths of all free spaces in order, or of some by path; `name` is the argument's."""
        free = self.free
        if isinstance(widths, Mapping):
            paths = {space.path: space.index for space in free}
            for path in widths:
                if path not in paths:
                    raise ValueError(f"{name}: {path!r} is not a layer that can change. Those are {', '.join(paths)}.")
            found = {paths[path]: int(width) for path, width in widths.items()}
        elif len(widths) == len(free):
            found = {space.index: int(width) for space, width in zip(free, widths, strict=True)}
        else:
            told = ", ".join(f"{space.path} ({space.size})" for space in free)
            raise ValueError(
                f"{name}: {len(free)} layers can change: {told}. Received {len(widths)} widths, {list(widths)}."
            )
        for index, width in found.items():
            if width % (space := self.spaces[index]).blocks:
                raise ValueError(
                    f"{name}: a convolution makes or reads {space.path} in {space.blocks} groups, which stay equal: "
                    f"give a multiple of {space.blocks}; received {width}."
                )
        return found

    def notes(self, what: str) -> tuple[str, ...]:
        """Why each frozen layer is left alone ("not narrowed", …); the network's own outputs need no reason."""
        frozen = [(s.path, s.frozen) for s in self.spaces.values() if s.frozen not in (None, OUTPUTS, FOREIGN)]
        reasons = (*frozen, *self.left.items())
        return tuple(dict.fromkeys(f"{path or 'the model'}: {what}, because {why}." for path, why in reasons))

    def readers(self, space: int) -> list[Call]:
        """Calls that read these neurons."""
        return [call for call in self.calls if call.inputs and any(part == space for part, _ in call.inputs)]

    def makers(self, space: int) -> list[Call]:
        """Calls that make these neurons."""
        return [call for call in self.calls if any(part == space for part, _ in call.outputs)]

    def entries(self, layout: Layout, kept: Mapping[int, torch.Tensor]) -> torch.Tensor:
        """The entries of an axis that belong to the kept neurons; spaces that are not named stay whole."""
        start, parts = 0, []
        for space, repeats in layout:
            size = self.spaces[space].size
            chosen = kept.get(space, torch.arange(size))
            parts.append((start + chosen[:, None] * repeats + torch.arange(repeats)).flatten())
            start += size * repeats
        return torch.cat(parts)

    def owners(self, layout: Layout, space: int) -> torch.Tensor:
        """For each entry of an axis the neuron of `space` it belongs to, or -1."""
        parts = [
            torch.arange(self.spaces[part].size).repeat_interleave(repeats)
            if part == space
            else torch.full((self.spaces[part].size * repeats,), -1)
            for part, repeats in layout
        ]
        return torch.cat(parts)
