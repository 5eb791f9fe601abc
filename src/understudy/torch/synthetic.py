"""Inputs to measure on: the user's, or standard normal ones of the same shape."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from understudy.torch.batches import Inputs, Sample, gather, place


def normal_inputs(model: nn.Module, example: Inputs, count: int, seed: int = 0) -> Sample:
    """`count` standard normal inputs of the example's shapes, on the model's device."""
    if not all(x.is_floating_point() for x in example):
        raise ValueError("Inputs are whole numbers (such as tokens), which cannot be drawn at random. Give data.")
    draw = torch.Generator().manual_seed(seed)
    drawn = []
    for x in example:
        noise = torch.randn((count, *x.shape[1:]), generator=draw)
        drawn.append(place(_smooth(noise, draw) if noise.ndim in (3, 4) else noise, model))
    return Sample(tuple(drawn))


def _smooth(noise: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Noise at all scales, as in photographs and sounds: each octave adds the same power; unit variance in all."""
    total, mode = noise.clone(), "bilinear" if noise.ndim == 4 else "linear"
    places, step, octaves = list(noise.shape[2:]), 2, 1
    while max(places) // step >= 2:
        size = [max(1, n // step) for n in places]
        coarse = torch.randn((*noise.shape[:2], *size), generator=draw)
        fine = nn.functional.interpolate(coarse, size=places, mode=mode, align_corners=False)
        total += fine / fine.std()
        step, octaves = 2 * step, octaves + 1
    return total / octaves**0.5


def inputs_for(model: nn.Module, data: Any, example: Inputs, limit: int) -> Sample:
    """The first `limit` inputs of the data, or 512 standard normal ones."""
    if data is not None:
        return gather(data, model, limit)
    return normal_inputs(model, example, 512)
