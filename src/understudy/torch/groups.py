"""Convolutions with groups: the outputs of a group read the inputs of that group alone.

Their weights are stored as (outputs, inputs / G, …). Spread out they are (outputs, inputs, …) with zeros between
groups: one column per neuron, as in any other layer. Neurons can be cut, silenced or merged there, as long as all
groups keep the same number of neurons.
"""

from __future__ import annotations

import torch


def spread(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """The weights with one column per input, zeros between groups.

    >>> spread(torch.tensor([[1.0], [2.0]]), 2).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    if groups == 1:
        return weight
    outputs, inputs = len(weight) // groups, weight.shape[1]
    wide = weight.new_zeros(len(weight), groups * inputs, *weight.shape[2:])
    for g in range(groups):
        rows = slice(g * outputs, (g + 1) * outputs)
        wide[rows, g * inputs : (g + 1) * inputs] = weight[rows]
    return wide


def packed(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """The inverse of `spread`."""
    if groups == 1:
        return weight
    if weight.shape[0] % groups or weight.shape[1] % groups:
        raise ValueError(f"{groups} groups cannot share {weight.shape[1]} inputs and {weight.shape[0]} outputs.")
    return torch.cat([rows.chunk(groups, 1)[g] for g, rows in enumerate(weight.chunk(groups))])


def block_of(size: int, blocks: int) -> torch.Tensor:
    """For each of `size` neurons the block it belongs to: blocks are equal and consecutive.

    >>> block_of(4, 2).tolist()
    [0, 0, 1, 1]
    """
    return torch.arange(size) // (size // blocks)


def evenly(order: list[int], size: int, blocks: int) -> list[int]:
    """The longest part of `order` with as many neurons of every block, in turns; all of it for one block.

    >>> evenly([3, 2, 0], 4, 2)
    [0, 3]
    """
    if blocks == 1:
        return order
    place = block_of(size, blocks).tolist()
    queues = [[neuron for neuron in order if place[neuron] == block] for block in range(blocks)]
    return [neuron for turn in zip(*queues, strict=False) for neuron in turn]
