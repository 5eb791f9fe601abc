"""Inputs to measure on: the user's, or standard normal ones of the same shape."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from understudy.torch.batches import Sample, gather, home


def normal_inputs(model: nn.Module, example: tuple[torch.Tensor, ...], count: int, seed: int = 0) -> Sample:
    """`count` standard normal inputs of the example's shape, on the model's device."""
    if len(example) > 1:
        raise ValueError(f"The model takes {len(example)} inputs. Wrap it in a module that takes one tensor.")
    if not example[0].is_floating_point():
        raise ValueError("Inputs are whole numbers (such as tokens), which cannot be drawn at random. Give data.")
    shape = tuple(example[0].shape[1:])
    device, dtype = home(model)
    draw = torch.Generator().manual_seed(seed)
    inputs = torch.randn((count, *shape), generator=draw)
    if len(shape) in (2, 3):
        inputs = _smooth(inputs, draw)
    return Sample(inputs.to(device, dtype))


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


def inputs_for(model: nn.Module, data: Any, example: tuple[torch.Tensor, ...], limit: int) -> Sample:
    """The first `limit` inputs of the data, or 512 standard normal ones."""
    if data is not None:
        return gather(data, model, limit)
    return normal_inputs(model, example, 512)
