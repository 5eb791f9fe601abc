"""What the compression benchmark measures, cell by cell, and its results as one small CSV beside this file.

A cell is one network (kind, weight decay, seed), one row of the tables (a method) and one width. Cells of the kind
"latency" have the network as their row. No PyTorch here: the tables and the figure of the documentation are made from
the CSV alone.

`python -m benchmarks.cells` stores the CSV's cells on this machine, so that the next run measures only what is missing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.kept import Kept

VERSION = 2
PARTS = (2, 4, 8)
SEEDS = {"mlp": 4, "penalised": 4, "plain": 3, "residual": 3}
DECAYS = {"mlp": (0.0, 1e-4, 1e-3, 1e-2), "penalised": (1e-4, 1e-3, 1e-2), "plain": (0.0,), "residual": (0.0,)}
"""Weight decays of AdamW, which shrinks weights apart from the loss; for "penalised" of Adam, which adds them to the
gradient as an L2 penalty does. Penalised networks are measured at 1/4 without fine-tuning."""
MAIN = ("mlp", "plain", "residual")
"""Networks with tables of their own."""
MLPS = ("mlp", "penalised")
BATCH = {"mlp": 256, "plain": 32, "residual": 32}
"""Inputs per batch of the measured latency."""
TUNED = (1, 3, 6)
TAYLOR_INPUTS = 2000
"""Labelled inputs of Torch-Pruning's Taylor criterion, the same for every network."""
REFIT_INPUTS = 2000
"""Unlabelled inputs of the two controls with our refit."""

FRESH = ("from scratch", "distillation")
PEERS = ("Torch-Pruning L2", "Torch-Pruning Taylor", "Torch-Pruning FPGM")
CONTROLS = ("random + refit", "L2 + refit")

GROWTH_SEEDS = 4
GROWTH = ("not grown", "ours, random", "ours, gradmax", "ours, split", "gromo", "from scratch")

FILE = Path(__file__).with_name("compression.csv")
NUMBERS = ("base", "seconds", "change", "agreement", "parameters", "milliseconds")
COLUMNS = ("kind", "decay", "seed", "row", "part", *NUMBERS, *(f"after {e}" for e in (0, *TUNED)))

Record = dict[str, Any]


def ours(kind: str) -> tuple[str, str, str]:
    """Our rows. A photograph gives hundreds of patches: 2,000 stand in for 10,000 digits."""
    return "ours, no data", "ours, 300 inputs", "ours, 10,000 inputs" if kind in MLPS else "ours, 2,000 inputs"


def pruned(kind: str) -> tuple[str, ...]:
    """Rows that start from the trained network."""
    return (*ours(kind), *CONTROLS, *PEERS)


def name_of(kind: str, decay: float, seed: int, row: str, part: int) -> str:
    """The name of a stored cell."""
    row = row.replace(", ", "-").replace(",", "").replace(" ", "-").replace("+", "and")
    return f"growth-{seed}-{row}" if kind == "growth" else f"{kind}-{decay:g}-{seed}-{row}-{part}"


def every() -> Iterator[tuple[str, float, int, str, int]]:
    """All cells."""
    for kind, seeds in SEEDS.items():
        rows = pruned(kind) if kind == "penalised" else (*pruned(kind), *FRESH)
        parts = (4,) if kind == "penalised" else PARTS
        for decay in DECAYS[kind]:
            for seed in range(seeds):
                yield from ((kind, decay, seed, row, part) for row in rows for part in parts)
    yield from (("growth", 0.0, seed, row, 1) for seed in range(GROWTH_SEEDS) for row in GROWTH)
    yield from (("latency", 0.0, 0, kind, part) for kind in MAIN for part in (1, *PARTS))


def gather(kept: Kept) -> list[Record]:
    """The cells that are stored on this machine."""
    records = []
    for key in every():
        if cell := kept.read(name_of(*key)):
            reached = {f"after {epochs}": accuracy for epochs, accuracy in cell["accuracy"].items()}
            numbers = {name: cell[name] for name in NUMBERS if name in cell}
            if key[0] != "latency":
                numbers.pop("milliseconds", None)  # cells of an earlier form were measured beside other work
            records.append(dict(zip(COLUMNS, key, strict=False)) | numbers | reached)
    return records


def restore(kept: Kept, records: Iterable[Record]) -> int:
    """Store the records whose cells this machine does not have; the number of them."""
    count = 0
    for record in records:
        name = name_of(record["kind"], record.get("decay", 0.0), record["seed"], record["row"], record["part"])
        if not kept.read(name):
            accuracy = {str(epochs): record[f"after {epochs}"] for epochs in (0, *TUNED) if f"after {epochs}" in record}
            kept.write(name, {key: record[key] for key in NUMBERS if key in record} | {"accuracy": accuracy})
            count += 1
    return count


def to_text(records: Iterable[Record]) -> str:
    """The records as CSV, numbers with five digits."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({key: f"{v:.5g}" if isinstance(v, float) else v for key, v in record.items()})
    return file.getvalue()


def from_text(text: str) -> list[Record]:
    """The records of a CSV. Empty entries are left out.

    >>> from_text(to_text([{"kind": "mlp", "seed": 0, "row": "L2 + refit", "after 0": 0.5}]))
    [{'kind': 'mlp', 'seed': 0, 'row': 'L2 + refit', 'after 0': 0.5}]
    """
    return [
        {key: value if key in ("kind", "row") else _number(key, value) for key, value in row.items() if value}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _number(key: str, text: str) -> float:
    return int(text) if key in ("seed", "part", "parameters") else float(text)


class Cells:
    """The records of one kind of network and one weight decay: numbers over seeds."""

    def __init__(self, records: Iterable[Record], kind: str, decay: float = 0.0) -> None:
        self.kind, self.rows = kind, GROWTH if kind == "growth" else (*pruned(kind), *FRESH)
        self.seeds = GROWTH_SEEDS if kind == "growth" else SEEDS[kind]
        self.records = [r for r in records if r["kind"] == kind and r.get("decay", 0.0) == decay]

    def numbers(self, row: str | None, part: int | None, name: str) -> list[float]:
        """One number of every seed that has it; of all rows and widths for None."""
        wanted = {key: value for key, value in (("row", row), ("part", part)) if value is not None}
        return [r[name] for r in self.records if name in r and all(r[key] == value for key, value in wanted.items())]

    def accuracies(self, row: str, part: int, epochs: int) -> list[float]:
        """Accuracy of every seed that has it."""
        return self.numbers(row, part, f"after {epochs}")

    def base(self) -> list[float]:
        """Accuracy of the original networks, one per seed."""
        return list({r["seed"]: r["base"] for r in self.records if "base" in r}.values())


if __name__ == "__main__":
    print(f"{restore(Kept('compression', VERSION), from_text(FILE.read_text()))} cells stored.")
