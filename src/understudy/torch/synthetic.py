"""Inputs to measure on: the user's, or standard normal ones of the same shape."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from understudy.torch.batches import Sample, gather, home


def normal_inputs(model: nn.Module, shape: tuple[int, ...], count: int, seed: int = 0) -> Sample:
    """`count` standard normal inputs of that shape (without the batch), on the model's device."""
    device, dtype = home(model)
    draw = torch.Generator().manual_seed(seed)
    return Sample(torch.randn((count, *shape), generator=draw).to(device, dtype))


def inputs_for(model: nn.Module, data: Any, example: tuple[torch.Tensor, ...], limit: int) -> Sample:
    """The first `limit` inputs of the data, or 512 standard normal ones."""
    if data is not None:
        return gather(data, model, limit)
    return normal_inputs(model, tuple(example[0].shape[1:]), 512)
