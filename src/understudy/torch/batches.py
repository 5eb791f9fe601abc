"""Data in any usual form as batches: tensors, arrays, pairs of inputs and labels, datasets and loaders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 256


@dataclass
class Sample:
    """Inputs kept in memory, on the model's device and in its type, and labels if there are any."""

    inputs: torch.Tensor
    labels: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, chosen: torch.Tensor) -> Sample:
        """Some of the inputs."""
        return Sample(self.inputs[chosen], None if self.labels is None else self.labels[chosen])

    def batches(self, size: int = BATCH) -> Iterator[torch.Tensor]:
        """The inputs, batch by batch."""
        return iter(self.inputs.split(size))


def home(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Device and floating type of a model's parameters."""
    for tensor in model.parameters():
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.float32


def is_finite(x: torch.Tensor) -> bool:
    """Whether no number is NaN or infinite. The sum is looked at first: a tenth of the time, but it may overflow."""
    return bool(torch.isfinite(x.sum())) or bool(torch.isfinite(x).all())


def stream(data: Any, model: nn.Module) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
    """Pairs of a batch of inputs and its labels (or None), ready for the model."""
    device, dtype = home(model)
    empty = True
    for item in _items(data):
        pair = _by_name(item) if isinstance(item, Mapping) else list(item) if isinstance(item, tuple | list) else [item]
        if not pair:
            continue
        x = torch.as_tensor(pair[0])
        if not len(x):
            continue
        x = x.to(device=device, dtype=dtype) if x.is_floating_point() else x.to(device)
        if x.is_floating_point() and not is_finite(x):
            raise ValueError("data: some inputs are not finite (NaN or infinity). Remove them first.")
        y = _labels(pair[1]).to(device) if len(pair) > 1 else None
        empty = False
        yield x, y
    if empty:
        raise ValueError(
            "data: there are no inputs in it. Give a loader, a dataset or a tensor with at least one input."
        )


def gather(data: Any, model: nn.Module, limit: int) -> Sample:
    """The first `limit` inputs in memory."""
    inputs: list[torch.Tensor] = []
    labels: list[torch.Tensor | None] = []
    count = 0
    for x, y in stream(data, model):
        room = limit - count
        inputs.append(x[:room])
        labels.append(None if y is None else y[:room])
        count += len(inputs[-1])
        if count >= limit:
            break
    known = [y for y in labels if y is not None]
    return Sample(torch.cat(inputs), torch.cat(known) if len(known) == len(labels) else None)


def _items(data: Any) -> Iterable[Any]:
    if isinstance(data, np.ndarray):
        data = _float(data)
    if isinstance(data, torch.Tensor):
        return data.split(BATCH)
    if (
        isinstance(data, tuple | list)
        and len(data) == 2
        and all(isinstance(d, np.ndarray | torch.Tensor) for d in data)
    ):
        x, y = (_float(d) if isinstance(d, np.ndarray) else d for d in data)
        if x.ndim >= y.ndim and len(x) != len(y):
            raise ValueError(f"data: {len(x)} inputs and {len(y)} labels. Give one label per input.")
        return zip(x.split(BATCH), y.split(BATCH), strict=True)
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
        f"{type(data).__name__}."
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


def _float(array: np.ndarray) -> torch.Tensor:
    """Float64 arrays would clash with float32 models; whole numbers stay."""
    return torch.from_numpy(np.ascontiguousarray(array.astype(np.float32) if array.dtype.kind == "f" else array))
