"""Compression of trained PyTorch networks: ours beside Torch-Pruning, in one run on the same networks.

Hypothesis, written before the first run: without labels and without fine-tuning, refitting the layers that follow on a few unlabelled inputs keeps more
accuracy than any way to choose neurons without a refit; after some epochs of fine-tuning all are alike.

Networks: MNIST 784-256-128-10 and two CNNs on a part of CIFAR-10, trained once and kept in the cache. UNDERSTUDY_BENCHMARK=full uses all seeds.
"""

from __future__ import annotations

import copy
import math
import os
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import understudy.torch as ut
from benchmarks.trained import Split, accuracy, digits, photographs, train, trained
from understudy.torch.batches import Sample
from understudy.torch.model import prepare
from understudy.torch.shrink import shrink

FULL = os.environ.get("UNDERSTUDY_BENCHMARK") == "full"
SEEDS = {"mlp": 4, "plain": 3 if FULL else 1, "residual": 3 if FULL else 1}
EPOCHS = {"mlp": 6, "plain": 10, "residual": 10}
SHARES = (1 / 2, 1 / 4, 1 / 8)
Method = Callable[[nn.Module, float, Split], nn.Module]


def ours(count: int) -> Method:
    def run(model: nn.Module, share: float, data: Split) -> nn.Module:
        x = data[0]
        inputs = x[:count] if count else None
        return ut.compress(model, inputs, keep=share, example=x[:3], samples=count or None).model

    return run


def refitted(score: str) -> Method:
    """Neurons at random, or those with the longest incoming weights, then our refit on 2,000 inputs."""

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
        return shrink(ready, graph, Sample(data[0][:2000]), widths, choose=choose)[0]

    return run


def torch_pruning(kind: str) -> Method:
    """Torch-Pruning with its own importance and dependency graph; Taylor gets labelled inputs."""

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
            nn.functional.cross_entropy(model(data[0][:2000]), data[1][:2000]).backward()
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


METHODS: dict[str, Method] = {
    "ours, no data": ours(0),
    "ours, 300 inputs": ours(300),
    "ours, 10,000 inputs": ours(10_000),
    "random + refit": refitted("random"),
    "L2 + refit": refitted("L2"),
    "Torch-Pruning L2": torch_pruning("L2"),
    "Torch-Pruning Taylor": torch_pruning("Taylor"),
    "Torch-Pruning FPGM": torch_pruning("FPGM"),
}


def told(values: list[float]) -> str:
    """Mean in per cent, and the 95 % interval of the mean over seeds where there are several (Student's t)."""
    mean = 100 * statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.1f}"
    spread = {2: 12.7, 3: 4.3, 4: 3.18}.get(len(values), 2.0) * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.1f} ± {100 * spread:.1f}"


def table_of(kind: str, train_data: Split, test: Split, console: Console) -> None:
    models = [trained(kind, seed, train_data, epochs=EPOCHS[kind]) for seed in range(SEEDS[kind])]
    base = told([accuracy(model, test) for model in models])
    table = Table(title=f"{kind}: accuracy, %, without fine-tuning; the original has {base}; {len(models)} seeds")
    for name in ("method", *(f"1/{round(1 / share)} of the width" for share in SHARES), "s", "1/4, then 1 epoch"):
        table.add_column(name, justify="right")
    for name, method in METHODS.items():
        if kind != "mlp" and name == "ours, 10,000 inputs":
            name, method = "ours, 2,000 inputs", ours(2000)
        cells, seconds, tuned = [], 0.0, []
        for share in SHARES:
            found = []
            for model in models:
                begin = time.perf_counter()
                small = method(model, share, train_data)
                seconds = time.perf_counter() - begin
                found.append(accuracy(small, test))
                if share == 1 / 4:
                    tuned.append(accuracy(train(copy.deepcopy(small), train_data, 1, seed=0, rate=5e-4), test))
            cells.append(told(found))
        table.add_row(name, *cells, f"{seconds:.1f}", told(tuned))
    table.add_row("from scratch, 6 epochs", "", "", "", "", told(scratch(kind, train_data, test)))
    console.print(table)


def scratch(kind: str, data: Split, test: Split) -> list[float]:
    """A network of a quarter of the width, trained on labels from a random start."""
    from benchmarks.trained import mlp, plain_cnn, residual_cnn

    found = []
    for seed in range(SEEDS[kind]):
        torch.manual_seed(100 + seed)
        model = mlp((64, 32)) if kind == "mlp" else (plain_cnn if kind == "plain" else residual_cnn)(0.25)
        found.append(
            accuracy(train(model, data, 6, seed=seed, shift=kind != "mlp", rate=1e-3 if kind == "mlp" else 3e-3), test)
        )
    return found


def report_times(console: Console, data: Split) -> None:
    """Seconds and memory of `report` on all of MNIST, and seconds of one wide layer."""
    import resource

    model = trained("mlp", 0, data, epochs=EPOCHS["mlp"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    ut.report(model, data[0])
    seconds = time.perf_counter() - begin
    added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
    wide = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10))
    begin = time.perf_counter()
    merged = ut.merge(wide, example=torch.randn(3, 64))
    console.print(
        f"report, 60,000 inputs of 784-256-128-10: {seconds:.1f} s (required 10), {added:.2f} GB more memory (required 1). "
        f"Duplicates of a 4096 × 4096 layer: {time.perf_counter() - begin:.1f} s (required 10), {merged.report.removed} found."
    )


def main() -> None:
    console = Console(width=150)
    warnings.simplefilter("ignore")
    train_data, test = digits()
    report_times(console, train_data)
    table_of("mlp", train_data, test, console)
    train_data, test = photographs()
    for kind in ("plain", "residual"):
        table_of(kind, train_data, test, console)
