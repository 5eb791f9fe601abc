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
epochs are equal seconds. The seconds of each method itself are in the table. Fine-tuning has a constant rate, so that
1 and 3 epochs are checkpoints of 6. All rows of an MLP are trained together.

Every cell is stored. The whole takes about an hour and a half of processor time. A run ends after
UNDERSTUDY_BENCHMARK_MINUTES (default 150) and prints what is there; the next run goes on.
UNDERSTUDY_BENCHMARK_NETS=mlp,penalised,plain,residual chooses networks, so that two runs can share the work.
`python -m benchmarks.latency` measures milliseconds, which needs an idle machine.
`python -m benchmarks.compression_page` brings what was measured into the documentation.
"""

from __future__ import annotations

import copy
import itertools
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from benchmarks import growth
from benchmarks.cells import DECAYS, FRESH, MLPS, SEEDS, TUNED, VERSION, gather, name_of
from benchmarks.compression_page import rendered
from benchmarks.kept import Kept
from benchmarks.pruners import fresh, pruners
from benchmarks.trained import RATES, Split, accuracies, digits, outputs, photographs, train, trained
from understudy.torch.measure import count_parameters

BASE_EPOCHS = {"mlp": 6, "penalised": 6, "plain": 8, "residual": 8}
RATE = 1e-3
"""Learning rate of fine-tuning, constant, for every row and network; on labels, without moved images or decay."""
SAME = 0.002
"""Largest difference of accuracies between a stored cell and the same network made again."""


@dataclass(frozen=True)
class Group:
    """All rows of one network at one width (1 / `part`), with or without fine-tuning."""

    kind: str
    decay: float
    seed: int
    part: int
    tuned: bool

    def name(self, row: str) -> str:
        """The name of a row's stored cell."""
        return name_of(self.kind, self.decay, self.seed, row, self.part)


def plan(kinds: tuple[str, ...]) -> Iterator[Group]:
    """Every group, the most telling first: a run that ends early has something in every table.

    Without fine-tuning at all widths; then the MLP's weight decays; then fine-tuning at 1/4, 1/8 and 1/2.
    """
    stages = [(part, tuned, plain) for tuned in (False, True) for plain in (True, False) for part in (4, 8, 2)]
    for part, tuned, plain in stages:
        for kind, seed in itertools.product(kinds, range(max(SEEDS.values()))):
            for decay in DECAYS[kind] if seed < SEEDS[kind] else ():
                measured = kind != "penalised" or (part == 4 and not tuned)
                if measured and (decay == 0.0) == plain:
                    yield Group(kind, decay, seed, part, tuned)


class Networks:
    """The trained networks and their data, each loaded once."""

    def __init__(self) -> None:
        self.data: dict[bool, tuple[Split, Split]] = {}
        self.models: dict[tuple[str, float, int], tuple[nn.Module, torch.Tensor, torch.Tensor]] = {}
        self.smaller: dict[str, nn.Module] = {}

    def splits(self, kind: str) -> tuple[Split, Split]:
        """Inputs to train and to test on."""
        digital = kind in MLPS
        if digital not in self.data:
            self.data[digital] = digits() if digital else photographs()
        return self.data[digital]

    def get(self, group: Group) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        """The trained network, and its outputs on training and test inputs."""
        key = (group.kind, group.decay, group.seed)
        if key not in self.models:
            data, test = self.splits(group.kind)
            model = trained(group.kind, group.seed, data, epochs=BASE_EPOCHS[group.kind], decay=group.decay)
            self.models[key] = (model, outputs(model, data[0]), outputs(model, test[0]))
        return self.models[key]


def measure(group: Group, kept: Kept, networks: Networks) -> None:
    """Measure what the group's cells do not have yet; each is stored as soon as it is known."""
    wanted = str(TUNED[-1] if group.tuned else 0)
    rows = [*pruners(group.kind), *(() if group.kind == "penalised" else FRESH)]
    missing = [row for row in rows if wanted not in kept.read(group.name(row)).get("accuracy", {})]
    sets = [missing] if group.kind in MLPS and missing else [[row] for row in missing]
    for together in sets:
        small = {row: smaller(group, row, kept, networks) for row in together}
        if group.tuned:
            fine_tune(group, small, kept, networks)


def smaller(group: Group, row: str, kept: Kept, networks: Networks) -> nn.Module:
    """A copy of the row's network before fine-tuning; what it changed is stored."""
    name = group.name(row)
    if name in networks.smaller:
        return copy.deepcopy(networks.smaller[name])
    data, test = networks.splits(group.kind)
    model, _, before = networks.get(group)
    begin = time.process_time()
    if row in FRESH:
        small = fresh(group.kind, 1 / group.part, group.seed).eval()
    else:
        small = pruners(group.kind)[row](model, 1 / group.part, data)
    seconds = time.process_time() - begin
    networks.smaller[name] = small
    after = outputs(small, test[0])
    found = {
        "base": float((before.argmax(1) == test[1]).float().mean()),
        "seconds": seconds,
        "change": float((after - before).norm() / before.norm()),
        "agreement": float((after.argmax(1) == before.argmax(1)).float().mean()),
        "parameters": count_parameters(small),
        "accuracy": {"0": float((after.argmax(1) == test[1]).float().mean())},
    }
    if stored := kept.read(name):
        check_same(name, stored, found)
    else:
        kept.write(name, found)
    return copy.deepcopy(small)


def check_same(name: str, stored: dict[str, Any], found: dict[str, Any]) -> None:
    """Refuse to fine-tune another network than the one that the stored cell describes.

    A cell may come from another machine (see `benchmarks.cells`), where rounding differs. Two test images in a thousand
    are allowed for that.
    """
    pairs = {"base": (stored["base"], found["base"]), "pruned": (stored["accuracy"]["0"], found["accuracy"]["0"])}
    if any(abs(before - now) > SAME for before, now in pairs.values()):
        raise SystemExit(f"{name}: the stored cell is of another network. Accuracies (stored, now): {pairs}.")


def fine_tune(group: Group, small: dict[str, nn.Module], kept: Kept, networks: Networks) -> None:
    """Train the rows' networks together and store their accuracy at each checkpoint."""
    data, test = networks.splits(group.kind)
    rate = RATES[group.kind] if group.kind != "mlp" and set(small) <= set(FRESH) else RATE
    taught = [row == "distillation" for row in small]
    begin = time.process_time()
    epochs = train(
        list(small.values()),
        data,
        TUNED[-1],
        seed=group.seed,
        rate=rate,
        teacher=networks.get(group)[1],
        taught=taught,
    )
    for epoch, beside in enumerate(epochs, 1):
        seconds = (time.process_time() - begin) / len(small)
        if epoch in TUNED:
            for row, found in zip(small, accuracies(beside, test), strict=True):
                cell = kept.read(group.name(row))
                cell["accuracy"][str(epoch)] = found
                cell.setdefault("tuning", {})[str(epoch)] = seconds
                kept.write(group.name(row), cell)


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    minutes = float(os.environ.get("UNDERSTUDY_BENCHMARK_MINUTES", "150"))
    kinds = tuple(os.environ.get("UNDERSTUDY_BENCHMARK_NETS", "mlp,penalised,plain,residual").split(","))
    end = time.monotonic() + 60 * minutes
    kept, networks = Kept("compression", VERSION), Networks()
    groups = list(plan(kinds))
    for done, group in enumerate(groups):
        if time.monotonic() > end:
            print(f"Stopped after {minutes:g} minutes at group {done} of {len(groups)}. Run again to go on.")
            break
        if group.kind == "mlp" and group.decay and group.tuned:  # after the most telling cells
            growth.measure(kept, *networks.splits("mlp"))
        measure(group, kept, networks)
    print(rendered(gather(kept)))
