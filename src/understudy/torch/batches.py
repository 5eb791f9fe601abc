"""Data in any usual form as batches: tensors, arrays, pairs of inputs and labels, datasets and loaders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 256

Inputs = tuple[torch.Tensor, ...]
"""What a model is called with: one tensor per argument, with one entry per input along its first axis."""


@dataclass
class Sample:
    """Inputs kept in memory, on the model's device and in its type, and labels if there are any."""

    inputs: Inputs
    labels: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs[0])

    def take(self, chosen: torch.Tensor | slice) -> Sample:
        """Some of the inputs."""
        labels = None if self.labels is None else self.labels[chosen]
        return Sample(tuple(x[chosen] for x in self.inputs), labels)

    def batches(self, size: int = BATCH) -> Iterator[Inputs]:
        """The inputs, batch by batch."""
        return zip(*(x.split(size) for x in self.inputs), strict=True)

    def pairs(self, size: int = BATCH) -> Iterator[tuple[Inputs, torch.Tensor]]:
        """Inputs and labels, batch by batch."""
        assert self.labels is not None
        return zip(self.batches(size), self.labels.split(size), strict=True)


def home(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Device and floating type of a model's parameters."""
    for tensor in model.parameters():
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.float32


def is_finite(x: torch.Tensor) -> bool:
    """Whether no number is NaN or infinite. The sum is looked at first: a tenth of the time, but it may overflow."""
    return bool(torch.isfinite(x.sum())) or bool(torch.isfinite(x).all())


def place(x: Any, model: nn.Module) -> torch.Tensor:
    """A tensor on the model's device, and in its floating type."""
    device, dtype = home(model)
    x = torch.as_tensor(x)
    return x.to(device=device, dtype=dtype) if x.is_floating_point() else x.to(device)


def stream(data: Any, model: nn.Module) -> Iterator[tuple[Inputs, torch.Tensor | None]]:
    """Pairs of a batch of inputs and its labels (or None), ready for the model."""
    empty = True
    for item in _items(data):
        pair = _by_name(item) if isinstance(item, Mapping) else list(item) if isinstance(item, tuple | list) else [item]
        if not pair:
            continue
        several = pair[0] if _is_several(pair[0]) else [pair[0]]
        inputs = tuple(place(x, model) for x in several)
        if not len(inputs[0]):
            continue
        if any(len(x) != len(inputs[0]) for x in inputs):
            raise ValueError(f"data: a batch has arguments of different lengths: {[len(x) for x in inputs]}.")
        if any(x.is_floating_point() and not is_finite(x) for x in inputs):
            raise ValueError("data: some inputs are not finite (NaN or infinity). Remove them first.")
        y = _labels(pair[1]).to(inputs[0].device) if len(pair) > 1 and pair[1] is not None else None
        empty = False
        yield inputs, y
    if empty:
        raise ValueError(
            "data: there are no inputs in it. Give a loader, a dataset or a tensor with at least one input."
        )


def gather(data: Any, model: nn.Module, limit: float = math.inf) -> Sample:
    """The first `limit` inputs in memory, or all."""
    batches: list[Inputs] = []
    labels: list[torch.Tensor | None] = []
    count = 0
    for inputs, y in stream(data, model):
        room = int(min(limit - count, len(inputs[0])))
        batches.append(tuple(x[:room] for x in inputs))
        labels.append(None if y is None else y[:room])
        count += len(batches[-1][0])
        if count >= limit:
            break
    known = [y for y in labels if y is not None]
    inputs = tuple(torch.cat(parts) for parts in zip(*batches, strict=True))
    return Sample(inputs, torch.cat(known) if len(known) == len(labels) else None)


def _is_several(found: Any) -> bool:
    """Whether this is a list or tuple of arrays: the arguments of a model with several inputs."""
    return (
        isinstance(found, tuple | list)
        and len(found) > 0
        and all(isinstance(x, np.ndarray | torch.Tensor) for x in found)
    )


def _items(data: Any) -> Iterable[Any]:
    if isinstance(data, np.ndarray | torch.Tensor):
        return _tensor(data).split(BATCH)
    if _is_several(data) and len(data) == 2:
        x, y = map(_tensor, data)
        if x.ndim >= y.ndim and len(x) != len(y):
            raise ValueError(f"data: {len(x)} inputs and {len(y)} labels. Give one label per input.")
        return zip(x.split(BATCH), y.split(BATCH), strict=True)
    if isinstance(data, tuple | list) and len(data) == 2 and _is_several(data[0]) and not _is_several(data[1]):
        several = zip(*(_tensor(x).split(BATCH) for x in data[0]), strict=True)
        return (
            zip(several, _tensor(data[1]).split(BATCH), strict=True) if data[1] is not None else ((x,) for x in several)
        )
    if isinstance(data, Dataset) and not isinstance(data, DataLoader):
        return DataLoader(data, batch_size=BATCH)
    if isinstance(data, Iterator):
        raise TypeError(
            f"data is an iterator ({type(data).__name__}), which can be read only once; more passes are needed. Give a "
            "DataLoader, a Dataset or a list of its batches."
        )
    if isinstance(data, Iterable):
        return data
    raise TypeError(
        "data is a tensor, an array, a pair (inputs, labels), a Dataset or a DataLoader; received "
        f"{type(data).__name__}. Models with several inputs take ((x1, x2), labels), or ((x1, x2), None)."
    )


def _labels(found: Any) -> torch.Tensor:
    try:
        return torch.as_tensor(found)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"data: the labels of a batch are not numbers ({error}). Give numbers, or no labels."
        ) from None


INPUTS = ("inputs", "input", "x", "images", "image", "pixel_values", "features", "data")
LABELS = ("labels", "label", "y", "targets", "target")


def _by_name(item: Mapping[str, Any]) -> list[Any]:
    """Inputs, and labels if there are any, of a batch that is a dictionary."""
    found = next((item[key] for key in INPUTS if key in item), None)
    if found is None:
        raise TypeError(
            f"data: a batch is a dictionary with the entries {', '.join(map(str, item))}. Call the inputs "
            f"{INPUTS[0]!r} (or {', '.join(INPUTS[1:])}), or give pairs of inputs and labels."
        )
    label = next((item[key] for key in LABELS if key in item), None)
    return [found] if label is None else [found, label]


def _tensor(array: np.ndarray | torch.Tensor) -> torch.Tensor:
    """Float64 arrays would clash with float32 models; whole numbers stay."""
    if isinstance(array, torch.Tensor):
        return array
    return torch.from_numpy(np.ascontiguousarray(array.astype(np.float32) if array.dtype.kind == "f" else array))
