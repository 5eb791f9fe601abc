"""Growth: an MNIST network 784-16-16-10 widened to 64-64 by ours and by gromo, then trained as long as all others."""

from __future__ import annotations

import copy
import importlib.util
import time
from collections.abc import Callable

import torch
from torch import nn

import understudy.torch as ut
from benchmarks.cells import GROWTH, GROWTH_SEEDS, TUNED, name_of
from benchmarks.kept import Kept
from benchmarks.trained import Beside, Split, accuracies, mlp, train

SMALL, LARGE = 16, 64
SEEN = 10_000
"""Labelled inputs from which gradmax and gromo choose their neurons."""


def with_gromo(model: nn.Module, data: Split) -> nn.Module:
    """Grow with gromo's optimal neurons and a line search, and return the plain network.

    One growth adds at most as many neurons as the layer after it has outputs: the last hidden layer takes several.
    """
    from gromo.containers.growing_mlp import GrowingMLP

    grown = GrowingMLP(784, 10, SMALL, 2, activation=nn.ReLU(), device=torch.device("cpu"))
    linears = [m for m in model if isinstance(m, nn.Linear)]
    with torch.no_grad():
        for layer, like in zip(grown.layers, linears, strict=True):
            layer.layer.weight.copy_(like.weight)
            layer.layer.bias.copy_(like.bias)
    batches = list(zip(data[0][:SEEN].split(500), data[1][:SEEN].split(500), strict=True))
    for reader in (0, 1):  # growable layers: the width before layer 1, and before layer 2
        while (missing := LARGE - grown.layers[reader].layer.out_features) > 0:
            _grow_once(grown, reader, missing, batches)
    plain = mlp((LARGE, LARGE))
    with torch.no_grad():
        for layer, like in zip([m for m in plain if isinstance(m, nn.Linear)], grown.layers, strict=True):
            layer.weight.copy_(like.layer.weight)
            layer.bias.copy_(like.layer.bias)
    return plain.eval()


def _grow_once(grown, reader: int, missing: int, batches: list[Split]) -> None:
    grown.set_growing_layers(index=reader)
    grown.init_computation()
    for x, y in batches:
        grown.zero_grad()
        nn.functional.cross_entropy(grown(x), y, reduction="sum").backward()  # gromo divides by the number of inputs
        grown.update_computation()
    grown.compute_optimal_updates(maximum_added_neurons=missing)
    grown.reset_computation()
    grown.select_update(0)

    @torch.no_grad()
    def loss(factor: float) -> float:
        grown.set_scaling_factor(factor)
        parts = [nn.functional.cross_entropy(grown.extended_forward(x), y) for x, y in batches]
        return float(torch.stack(parts).mean())

    grown.set_scaling_factor(best_factor(loss))
    grown.apply_change()


def best_factor(loss: Callable[[float], float]) -> float:
    """The power of √2 of least loss. Larger ones are tried until the loss no longer falls: the search has no end.

    Not 0, although it may be best: neurons would be added for ever.

    >>> best_factor(lambda factor: (factor - 90) ** 2)
    90.50966799187809
    """
    losses = {2 ** (k / 2): loss(2 ** (k / 2)) for k in range(-16, 1)}
    while max(losses) < 1e6 and min(losses, key=losses.__getitem__) == max(losses):
        factor = max(losses) * 2**0.5
        losses[factor] = loss(factor)
    return min(losses, key=losses.__getitem__)


def grown(method: str, small: nn.Module, data: Split, seed: int) -> nn.Module:
    """The network that is trained on: wider, or a control."""
    if method == "not grown":
        return copy.deepcopy(small)
    if method == "from scratch":
        torch.manual_seed(1000 + seed)
        return mlp((LARGE, LARGE))
    if method == "gromo":
        return with_gromo(small, data)
    few = (data[0][:SEEN], data[1][:SEEN])
    return ut.grow(small, few, to=[LARGE, LARGE], method=method.split()[-1], seed=seed).eval()


def measure(kept: Kept, data: Split, test: Split) -> None:
    """Every method and seed, one cell each; cells that are stored are left out."""
    for seed in range(GROWTH_SEEDS):
        small = None
        for method in GROWTH:
            name = name_of("growth", 0.0, seed, method, 1)
            if kept.read(name) or (method == "gromo" and importlib.util.find_spec("gromo") is None):
                continue
            if small is None:
                torch.manual_seed(seed)
                small = mlp((SMALL, SMALL))
                list(train([small], data, 3, seed=seed, falling=True))
            begin = time.process_time()
            start = grown(method, small, data, seed)
            cell = {"seconds": time.process_time() - begin}
            reached = {0: accuracies(Beside([start]), test)[0]}
            for epoch, beside in enumerate(train([start], data, TUNED[-1], seed=seed), 1):
                reached[epoch] = accuracies(beside, test)[0]
            cell["accuracy"] = {str(epoch): reached[epoch] for epoch in (0, *TUNED)}
            kept.write(name, cell)
