"""Compression of trained PyTorch networks: ours beside Torch-Pruning and controls, on the same networks in one run.

Hypothesis, written before the first run:

1. Without labels and without fine-tuning, refitting the layers that follow on a few unlabelled inputs keeps more
   accuracy than any choice of neurons without a refit. On the MLP at 1/4 of the width ours keeps at least 96.5 % with
   10,000 inputs, 96 % with 300 and 89 % with none; on the CNNs at 1/2 it is at least 5 points above the best
   Torch-Pruning row.
2. Most of that is the refit: random neurons with it come close at 1/2, less so at 1/8.
3. One epoch from there beats six epochs from scratch; after six epochs all pruners are within a point.
4. Weight decay makes networks easier to compress.
5. For growth, random new neurons are as good as chosen ones.

Networks: MNIST 784-256-128-10 (4 seeds, weight decay 0 to 1e-2) and two CNNs on 10,000 images of CIFAR-10 (3 seeds),
trained once. At one width all rows have the same architecture, and the teacher's outputs are computed once: equal
epochs are equal seconds. The seconds of each method itself are in the table.

Every cell is stored. A run ends after UNDERSTUDY_BENCHMARK_MINUTES (default 60) and prints what is there; the next run
goes on. UNDERSTUDY_BENCHMARK_NETS=mlp,plain,residual chooses networks, so that two runs can share the work.
"""

from __future__ import annotations

import copy
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from torch import nn

from benchmarks import growth
from benchmarks.compression_tables import print_tables
from benchmarks.kept import Kept
from benchmarks.pruners import FRESH, fresh, pruners
from benchmarks.trained import RATES, Split, accuracy, digits, outputs, photographs, train, trained
from understudy.torch.measure import cost

VERSION = 1
BASE_EPOCHS = {"mlp": 6, "plain": 8, "residual": 8}
SEEDS = {"mlp": 4, "plain": 3, "residual": 3}
DECAYS = {"mlp": (0.0, 1e-4, 1e-3, 1e-2), "plain": (0.0,), "residual": (0.0,)}
TUNED = (1, 3, 6)
RATE = 1e-3
"""Learning rate of fine-tuning, for every row and network; on labels, without moved images."""
BATCH = {"mlp": 256, "plain": 32, "residual": 32}
"""Inputs per batch of the measured latency."""


@dataclass(frozen=True)
class Cell:
    """One network, one row and one width (1 / `part`), with the epochs of fine-tuning that are measured."""

    kind: str
    decay: float
    seed: int
    row: str
    part: int
    epochs: tuple[int, ...]

    @property
    def name(self) -> str:
        row = self.row.replace(", ", "-").replace(",", "").replace(" ", "-").replace("+", "and")
        return f"{self.kind}-{self.decay:g}-{self.seed}-{row}-{self.part}"


def plan(kinds: tuple[str, ...]) -> Iterator[Cell]:
    """Every cell, the most telling first: a run that ends early has something in every table."""
    stages: list[tuple[int, tuple[int, ...], str]] = [(2, (), "plain"), (4, (), "plain"), (4, TUNED, "first")]
    stages += [(8, (), "plain"), (4, (), "decayed"), (4, TUNED, "plain"), (2, (), "decayed"), (8, (), "decayed")]
    stages += [(8, TUNED, "plain"), (2, TUNED, "plain"), *((part, TUNED, "decayed") for part in (4, 8, 2))]
    for part, epochs, which in stages:
        for seed in range(1 if which == "first" else max(SEEDS.values())):
            for kind in kinds:
                decays = DECAYS[kind][1:] if which == "decayed" else (0.0,)
                for decay in decays if seed < SEEDS[kind] else ():
                    yield from (Cell(kind, decay, seed, row, part, (0, *epochs)) for row in (*pruners(kind), *FRESH))


class Networks:
    """The trained networks and their data, each loaded once."""

    def __init__(self) -> None:
        self.data: dict[bool, tuple[Split, Split]] = {}
        self.models: dict[tuple[str, float, int], tuple[nn.Module, torch.Tensor, torch.Tensor]] = {}

    def splits(self, kind: str) -> tuple[Split, Split]:
        """Inputs to train and to test on."""
        digital = kind == "mlp"
        if digital not in self.data:
            self.data[digital] = digits() if digital else photographs()
        return self.data[digital]

    def get(self, cell: Cell) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        """The trained network, and its outputs on training and test inputs."""
        key = (cell.kind, cell.decay, cell.seed)
        if key not in self.models:
            data, test = self.splits(cell.kind)
            model = trained(cell.kind, cell.seed, data, epochs=BASE_EPOCHS[cell.kind], decay=cell.decay)
            self.models[key] = (model, outputs(model, data[0]), outputs(model, test[0]))
        return self.models[key]


def measure(cell: Cell, kept: Kept, networks: Networks) -> None:
    """Measure what the cell does not have yet, and store it after each step."""
    found: dict[str, Any] = kept.read(cell.name) or {"accuracy": {}, "tuning": {}}
    missing = [e for e in cell.epochs if str(e) not in found["accuracy"]]
    if not missing:
        return
    data, test = networks.splits(cell.kind)
    model, teacher, before = networks.get(cell)
    begin = time.process_time()
    if cell.row in FRESH:
        small = fresh(cell.kind, 1 / cell.part, cell.seed).eval()
    else:
        small = pruners(cell.kind)[cell.row](model, 1 / cell.part, data)
    seconds = time.process_time() - begin
    if 0 in missing:
        after = outputs(small, test[0])
        latency = cost(small, (test[0][: BATCH[cell.kind]],))
        found |= {
            "base": float((before.argmax(1) == test[1]).float().mean()),
            "seconds": seconds,
            "change": float((after - before).norm() / before.norm()),
            "agreement": float((after.argmax(1) == before.argmax(1)).float().mean()),
            "parameters": latency.parameters,
            "milliseconds": latency.milliseconds,
            "milliseconds before": cost(model, (test[0][: BATCH[cell.kind]],)).milliseconds,
        }
        found["accuracy"]["0"] = float((after.argmax(1) == test[1]).float().mean())
        kept.write(cell.name, found)
    for epochs in missing:
        if epochs:
            begin = time.process_time()
            tuned = train(
                copy.deepcopy(small),
                data,
                epochs,
                seed=cell.seed,
                rate=RATES[cell.kind] if cell.row in FRESH else RATE,
                teacher=teacher if cell.row == "distillation" else None,
            )
            found["tuning"][str(epochs)] = time.process_time() - begin
            found["accuracy"][str(epochs)] = accuracy(tuned, test)
            kept.write(cell.name, found)


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    console = Console(width=150)
    minutes = float(os.environ.get("UNDERSTUDY_BENCHMARK_MINUTES", "60"))
    kinds = tuple(os.environ.get("UNDERSTUDY_BENCHMARK_NETS", "mlp,plain,residual").split(","))
    end = time.monotonic() + 60 * minutes
    kept, networks = Kept("compression", VERSION), Networks()
    cells = list(plan(kinds))
    for done, cell in enumerate(cells):
        if time.monotonic() > end:
            console.print(f"Stopped after {minutes:g} minutes at cell {done} of {len(cells)}. Run again to go on.")
            break
        measure(cell, kept, networks)
        if cell.kind == "mlp" and cell.part == 2 and cell.decay:  # after the most telling cells
            growth.measure(kept, *networks.splits("mlp"))
    print_tables(console, kept, kinds)
