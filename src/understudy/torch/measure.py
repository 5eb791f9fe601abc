"""Size, cost and speed of a model, and how far two models differ on the same inputs."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from understudy.torch.batches import Sample
from understudy.torch.edit import tensors_in

RESAMPLES = 500
"""Bootstrap resamples: their 2.5 % and 97.5 % quantiles are stable to a few per cent of the interval."""


@dataclass(frozen=True)
class Cost:
    """Parameters, multiply-accumulates per input, and milliseconds per batch of `batch` inputs on this machine."""

    parameters: int
    macs: int
    milliseconds: float
    batch: int


@dataclass(frozen=True)
class Change:
    """How far outputs moved on inputs, each with a 95 % bootstrap interval over the inputs.

    **Attributes**

    - `relative`: root mean square of the difference over that of the outputs before.
    - `agreement`: share of inputs with the same largest output; None if there is one output only.
    - `accuracy_before`, `accuracy_after`: share of inputs whose label has the largest output; None without labels.
    - `inputs`: `"held-out"` or `"synthetic"`; `count`: how many.
    """

    relative: float
    relative_interval: tuple[float, float]
    agreement: float | None
    accuracy_before: float | None
    accuracy_after: float | None
    accuracy_interval: tuple[float, float] | None
    inputs: str
    count: int

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)


def count_parameters(model: nn.Module) -> int:
    """Numbers in all parameters, each once."""
    return sum(p.numel() for p in model.parameters())


def count_macs(model: nn.Module, example: tuple[Any, ...]) -> int:
    """Multiply-accumulates of one input, of all matrix products and convolutions."""
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        model(*example)
    return round(counter.get_total_flops() / 2 / len(example[0]))


def cost(model: nn.Module, example: tuple[Any, ...], seconds: float = 0.15) -> Cost:
    """Parameters, multiply-accumulates and the least time of several runs, for other work only ever adds to a time."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    with torch.no_grad():
        model(*example)
        while len(times) < 3 or time.perf_counter() < end:
            begin = time.perf_counter()
            model(*example)
            if example[0].is_cuda:
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
    return Cost(count_parameters(model), count_macs(model, example), 1e3 * min(times), len(example[0]))


def outputs_of(model: nn.Module, sample: Sample) -> torch.Tensor:
    """The outputs (N, …) on all inputs, in float64 on the CPU; of several outputs the first tensor."""
    parts = []
    with torch.no_grad():
        for batch in sample.batches():
            result = model(*batch)
            result = result if isinstance(result, torch.Tensor) else tensors_in(result)[0]
            parts.append(result.to("cpu", torch.float64))
    return torch.cat(parts)


def change(before: nn.Module, after: nn.Module, sample: Sample, kind: str = "held-out") -> Change:
    """How far the outputs of two models differ on these inputs."""
    f, g = outputs_of(before, sample), outputs_of(after, sample)
    count = len(f)
    draws = torch.randint(count, (RESAMPLES, count), generator=torch.Generator().manual_seed(0))
    gap, size = ((f - g) ** 2).reshape(count, -1).sum(1), (f**2).reshape(count, -1).sum(1)

    def ratio(gaps: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        return (gaps / sizes.clamp(min=1e-300)).sqrt()

    resampled = ratio(gap[draws].sum(1), size[draws].sum(1))
    several = f.ndim >= 2 and f.shape[1] > 1
    agreement = float((f.argmax(1) == g.argmax(1)).double().mean()) if several else None
    told: tuple[float | None, float | None, tuple[float, float] | None] = (None, None, None)
    labels = None if sample.labels is None else sample.labels.cpu()
    if several and labels is not None and not labels.is_floating_point() and labels.shape == f.argmax(1).shape:
        right = [(h.argmax(1) == labels).double().reshape(count, -1).mean(1) for h in (f, g)]
        told = (float(right[0].mean()), float(right[1].mean()), _interval(right[1][draws].mean(1)))
    return Change(float(ratio(gap.sum(), size.sum())), _interval(resampled), agreement, *told, kind, count)


def _interval(values: torch.Tensor) -> tuple[float, float]:
    low, high = torch.quantile(values, torch.tensor([0.025, 0.975], dtype=values.dtype))
    return float(low), float(high)
