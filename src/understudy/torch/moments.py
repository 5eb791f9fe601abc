"""Second moments of what layers read and make, streamed over data: all that selection and refitting need.

For one Linear or Conv call let h be the numbers that one output reads (for a convolution: a patch) with a constant 1 at
the end, and t the outputs of the same call in the original network. Kept are G = Σ h hᵀ, C = Σ h tᵀ and Σ t², in
float64, in one pass for all calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from understudy.torch.batches import Inputs
from understudy.torch.edit import get_tensor
from understudy.torch.graph import Call
from understudy.torch.symmetric import mirror

ROWS_PER_FEATURE = 30
"""Rows (patches) per number read, over which a convolution's moments are taken: more change them by a few per cent."""


@dataclass
class Moments:
    """G (N + 1, N + 1), C (N + 1, m) and Σ t² (m,) of `count` rows."""

    gram: torch.Tensor
    cross: torch.Tensor
    power: torch.Tensor
    count: int = 0

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.gram + other.gram,
            self.cross + other.cross,
            self.power + other.power,
            self.count + other.count,
        )

    @staticmethod
    def zero(features: int, outputs: int) -> Moments:
        """Nothing seen yet."""
        return Moments(
            torch.zeros(features, features, dtype=torch.float64),
            torch.zeros(features, outputs, dtype=torch.float64),
            torch.zeros(outputs, dtype=torch.float64),
        )

    def take_outputs(self, chosen: torch.Tensor) -> Moments:
        """The same rows with some of the outputs."""
        return Moments(self.gram, self.cross[:, chosen], self.power[chosen], self.count)

    def group(self, which: int, groups: int) -> Moments:
        """The same rows with the features and outputs of one group of a convolution, and the constant."""
        if groups == 1:
            return self
        features = torch.arange(len(self.gram) - 1).chunk(groups)[which]
        features = torch.cat([features, torch.tensor([len(self.gram) - 1])])
        outputs = torch.arange(len(self.power)).chunk(groups)[which]
        return Moments(
            self.gram[features][:, features], self.cross[features][:, outputs], self.power[outputs], self.count
        )

    def add(self, rows: torch.Tensor, targets: torch.Tensor) -> None:
        """Count these rows in. Only one triangle of G is up to date until `whole`: this halves the work."""
        from scipy.linalg.blas import dsyrk

        targets = targets.to("cpu", torch.float64)
        wide = torch.ones(len(rows), rows.shape[1] + 1, dtype=torch.float64)
        wide[:, :-1] = rows
        gram = self.gram.numpy().T  # in Fortran's order, as `dsyrk` needs it to work in place
        dsyrk(1.0, wide.numpy().T, beta=1.0, c=gram, overwrite_c=1)
        self.cross.addmm_(wide.T, targets)
        self.power += (targets**2).sum(0)
        self.count += len(rows)

    def whole(self) -> Moments:
        """Fill the other triangle of G."""
        mirror(self.gram)
        return self

    def scatter(self) -> float:
        """Σ (t - mean)², the power that a constant does not explain."""
        return max(float((self.power - self.cross[-1] ** 2 / max(self.count, 1)).sum()), 1e-300)


class Seen(Exception):
    """All calls of interest have been seen: the rest of the forward pass is not needed."""


class Tap(TorchFunctionMode):
    """Hand inputs and outputs of the calls with these weights (id → key) to `take`; end the pass after the last one."""

    def __init__(self, weights: Mapping[int, str], take: Callable[[str, Any, torch.Tensor], None]) -> None:
        super().__init__()
        self.weights, self.take = weights, take
        self.left = set(weights)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        super().__exit__(kind, error, trace)
        return kind is Seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        weight = args[1] if len(args) > 1 else kwargs.get("weight")
        key = self.weights.get(id(weight)) if isinstance(weight, torch.Tensor) else None
        if key is not None and isinstance(result, torch.Tensor):
            self.take(key, args[0] if args else kwargs["input"], result)
            self.left.discard(id(weight))
            if not self.left:
                raise Seen
        return result


def watch(model: nn.Module, calls: Sequence[Call], take: Callable[[str, Any, torch.Tensor], None]) -> Tap:
    """A tap on the inputs and outputs of these calls."""
    return Tap({id(get_tensor(model, call.weight)): call.weight for call in calls}, take)


def features(call: Call, x: torch.Tensor, size: Sequence[int], positions: torch.Tensor | None) -> torch.Tensor:
    """What each output reads, one row per output position: (rows, N)."""
    if call.kind == "linear":
        return x.reshape(-1, x.shape[-1])
    padding, stride, dilation = call.padding, call.stride, call.dilation
    if isinstance(padding, str):
        total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, size, strict=True)]
        sides = [(t // 2, t - t // 2) for t in total]
        x = nn.functional.pad(x, [n for pair in reversed(sides) for n in pair])
        padding = (0,) * len(size)
    if call.kind == "conv1d":
        x, size = x.unsqueeze(-2), (1, *size)
        padding, stride, dilation = (0, *padding), (1, *stride), (1, *dilation)  # type: ignore[assignment]
    kernel: Any = tuple(size)
    geometry: dict[str, Any] = {"dilation": dilation, "padding": padding, "stride": stride}
    patches = nn.functional.unfold(x, kernel, **geometry)
    if positions is not None:
        patches = patches[:, :, positions]
    return patches.transpose(1, 2).flatten(0, 1)


def targets_of(call: Call, result: torch.Tensor, positions: torch.Tensor | None) -> torch.Tensor:
    """The call's outputs in the same order: (rows, m)."""
    if call.kind == "linear":
        return result.reshape(-1, result.shape[-1])
    flat = result.flatten(2)
    if positions is not None:
        flat = flat[:, :, positions]
    return flat.transpose(1, 2).flatten(0, 1)


def collect(
    original: nn.Module,
    current: nn.Module,
    calls: Sequence[Call],
    inputs: Iterable[Inputs],
    *,
    total: int,
    also: Callable[[Call, torch.Tensor], None] | None = None,
) -> dict[str, Moments]:
    """Moments of these calls over batches: features of `current`, targets of `original`, in one pass.

    `total` inputs are expected. `also` is given each call and what it reads.
    """
    by_name = {call.weight: call for call in calls}
    seen: dict[str, torch.Tensor] = {}
    found: dict[str, Moments] = {}
    draw = torch.Generator().manual_seed(0)
    positions: dict[str, torch.Tensor | None] = {}

    def choose(call: Call, x: torch.Tensor, result: torch.Tensor) -> torch.Tensor | None:
        places = math.prod(result.shape[2:]) if call.kind != "linear" else 1
        size = math.prod(get_tensor(original, call.weight).shape[1:])
        wanted = math.ceil(ROWS_PER_FEATURE * size / max(total, 1))
        if wanted >= places:
            return None
        return torch.randperm(places, generator=draw)[:wanted].to(result.device)

    def take_target(key: str, x: Any, result: torch.Tensor) -> None:
        positions[key] = choose(by_name[key], x, result)
        seen[key] = targets_of(by_name[key], result, positions[key])

    def take_features(key: str, x: Any, result: torch.Tensor) -> None:
        call = by_name[key]
        weight = get_tensor(current, call.weight)
        if also is not None:
            also(call, x)
        rows = features(call, x, tuple(weight.shape[2:]), positions[key])
        if key not in found:
            found[key] = Moments.zero(rows.shape[1] + 1, seen[key].shape[1])
        found[key].add(rows, seen[key])

    def take_both(key: str, x: Any, result: torch.Tensor) -> None:
        take_target(key, x, result)
        take_features(key, x, result)

    with torch.no_grad():
        for batch in inputs:
            if current is original:
                with watch(current, calls, take_both):
                    current(*batch)
                continue
            with watch(original, calls, take_target):
                original(*batch)
            with watch(current, calls, take_features):
                current(*batch)
    return {key: moments.whole() for key, moments in found.items()}
