"""Ways to a smaller network: ours, Torch-Pruning, controls, and new networks of the same widths."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn

import understudy.torch as ut
from benchmarks.cells import MLPS, REFIT_INPUTS, TAYLOR_INPUTS, pruned
from benchmarks.cells import ours as names_of_ours
from benchmarks.trained import MAKERS, Split, mlp
from understudy.torch.batches import Sample
from understudy.torch.model import prepare
from understudy.torch.shrink import shrink

Pruner = Callable[[nn.Module, float, Split], nn.Module]
"""(trained network, share of every width that stays, training data) → smaller network in evaluation mode."""


def ours(count: int) -> Pruner:
    """`ut.compress` with that many unlabelled inputs."""

    def run(model: nn.Module, share: float, data: Split) -> nn.Module:
        x = data[0]
        return ut.compress(
            model, x[:count] if count else None, keep=share, example=x[:3], samples=count or None
        ).model.eval()

    return run


def refitted(score: str) -> Pruner:
    """Neurons at random, or those with the longest incoming weights, then our refit."""

    def run(model: nn.Module, share: float, data: Split) -> nn.Module:
        ready, graph, _ = prepare(model, data[0][:3])
        draw = torch.Generator().manual_seed(0)

        def choose(space, readers, width):
            if score == "random":
                return sorted(torch.randperm(space.size, generator=draw)[:width].tolist())
            makers = graph.makers(space.index)
            size = sum(ready.get_parameter(call.weight).flatten(1).norm(dim=1) for call in makers)
            return sorted(torch.topk(size, width).indices.tolist())

        widths = {space.index: max(1, round(share * space.size)) for space in graph.free}
        return shrink(ready, graph, Sample((data[0][:REFIT_INPUTS],)), widths, choose=choose)[0].eval()

    return run


def torch_pruning(kind: str) -> Pruner:
    """Torch-Pruning with its own importance and dependency graph; only Taylor sees labels."""

    def run(model: nn.Module, share: float, data: Split) -> nn.Module:
        import torch_pruning as tp

        model = copy.deepcopy(model)
        importance = {
            "L2": lambda: tp.importance.GroupMagnitudeImportance(p=2),
            "Taylor": tp.importance.GroupTaylorImportance,
            "FPGM": tp.importance.FPGMImportance,
        }[kind]()
        last = [m for m in model.modules() if isinstance(m, nn.Linear)][-1]
        if kind == "Taylor":
            inputs, labels = data[0][:TAYLOR_INPUTS], data[1][:TAYLOR_INPUTS]
            for x, y in zip(inputs.split(500), labels.split(500), strict=True):
                nn.functional.cross_entropy(model(x), y).backward()
        pruner = tp.pruner.BasePruner(
            model,
            data[0][:3],
            importance=importance,
            pruning_ratio=1 - share,
            ignored_layers=[last],
            global_pruning=False,
        )
        pruner.step()
        model.zero_grad()
        return model.eval()

    return run


def fresh(kind: str, share: float, seed: int) -> nn.Module:
    """A new network with that share of the widths."""
    torch.manual_seed(1000 + seed)
    return mlp((round(256 * share), round(128 * share))) if kind in MLPS else MAKERS[kind](share)


def pruners(kind: str) -> dict[str, Pruner]:
    """The rows of one kind of network, by name."""
    counts = (0, 300, 10_000 if kind in MLPS else 2000)
    found = dict(zip(names_of_ours(kind), map(ours, counts), strict=True))
    found |= {f"{score} + refit": refitted(score) for score in ("random", "L2")}
    found |= {f"Torch-Pruning {importance}": torch_pruning(importance) for importance in ("L2", "Taylor", "FPGM")}
    assert tuple(found) == pruned(kind)
    return found
