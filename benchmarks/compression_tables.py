"""Tables and figure of the compression benchmark, from the cells that are stored."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from scipy.stats import t as student

from benchmarks import growth
from benchmarks.kept import Kept

PARTS = {2: "½", 4: "¼", 8: "⅛"}
TITLES = {"mlp": "MNIST 784-256-128-10", "plain": "four convolutions", "residual": "residual with BatchNorm"}


def mean_of(values: Iterable[float], scale: float = 100.0, digits: int = 1) -> str:
    """The mean, and the 95 % interval of the mean over seeds by Student's t."""
    found = [scale * value for value in values]
    if not found:
        return ""
    text = f"{statistics.mean(found):.{digits}f}"
    if len(found) < 2:
        return text
    spread = float(student.ppf(0.975, len(found) - 1)) * statistics.stdev(found) / math.sqrt(len(found))
    return f"{text} ± {spread:.{digits}f}"


class Cells:
    """The stored cells of one kind of network and one weight decay: numbers over seeds."""

    def __init__(self, kept: Kept, kind: str, decay: float, rows: Sequence[str], seeds: int) -> None:
        from benchmarks.compression import Group

        self.rows = rows
        self.found: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in rows:
            for part in PARTS:
                cells = [kept.read(Group(kind, decay, seed, part, False).name(row)) for seed in range(seeds)]
                self.found[row, part] = [cell for cell in cells if cell]

    def accuracies(self, row: str, part: int, epochs: int) -> list[float]:
        """Accuracy of every seed that has it."""
        cells = self.found[row, part]
        return [cell["accuracy"][str(epochs)] for cell in cells if str(epochs) in cell["accuracy"]]

    def numbers(self, row: str, part: int, name: str) -> list[float]:
        """Another number of every seed."""
        return [cell[name] for cell in self.found[row, part] if name in cell]

    def base(self) -> list[float]:
        """Accuracy of the original networks."""
        return max((self.numbers(row, part, "base") for row, part in self.found), key=len)


def print_tables(console: Console, kept: Kept, kinds: Sequence[str]) -> None:
    """Markdown tables of everything that is stored, and the figure."""
    from benchmarks.compression import DECAYS, SEEDS
    from benchmarks.pruners import FRESH, pruners

    everything = {}
    for kind in kinds:
        cells = Cells(kept, kind, 0.0, (*pruners(kind), *FRESH), SEEDS[kind])
        everything[kind] = cells
        base = cells.base()
        console.print(
            f"\n{TITLES[kind]}: accuracy {mean_of(base)} %, {len(base)} seeds. Accuracy in %, no fine-tuning:\n"
        )
        console.print(_untuned(cells))
        console.print(
            "\nAccuracy in % after epochs of fine-tuning (rows above); new networks are trained from a random start:\n"
        )
        console.print(_tuned(cells))
        console.print(_latency(cells))
    if "mlp" in kinds:
        by_decay = {d: Cells(kept, "mlp", d, (*pruners("mlp"), *FRESH), SEEDS["mlp"]) for d in DECAYS["mlp"]}
        console.print(
            "\nMNIST at ¼ of the width by weight decay, no fine-tuning; after the slash: 1 epoch where measured:\n"
        )
        console.print(_decays(by_decay))
        console.print("\n784-16-16-10 grown to 64-64, then trained; accuracy in %:\n")
        console.print(_growth(kept))
    console.print(f"Figure: {draw(everything, kept.folder / 'compression')}")


def _table(*heads: str) -> Table:
    table = Table(box=box.MARKDOWN)
    for head in heads:
        table.add_column(head, no_wrap=True)
    return table


def _untuned(cells: Cells) -> Table:
    table = _table(
        "method", *(f"{sign} width" for sign in PARTS.values()), "change of outputs at ¼", "same class at ¼", "s"
    )
    for row in cells.rows:
        if any(cells.numbers(row, part, "seconds") for part in PARTS) and row not in ("from scratch", "distillation"):
            seconds = [s for part in PARTS for s in cells.numbers(row, part, "seconds")]
            table.add_row(
                row, *(mean_of(cells.accuracies(row, part, 0)) for part in PARTS),
                mean_of(cells.numbers(row, 4, "change"), 1.0, 2), mean_of(cells.numbers(row, 4, "agreement")),
                f"{statistics.median(seconds):.2g}",
            )  # fmt: skip
    return table


def _tuned(cells: Cells) -> Table:
    columns = [(part, epochs) for part in (4, 8, 2) for epochs in (1, 3, 6)]
    columns = [c for c in columns if any(cells.accuracies(row, *c) for row in cells.rows)]
    table = _table("method", *(f"{PARTS[part]}, {epochs} ep." for part, epochs in columns))
    for row in cells.rows:
        table.add_row(row, *(_counted(cells.accuracies(row, *c), len(cells.base())) for c in columns))
    return table


def _counted(values: list[float], seeds: int) -> str:
    """The mean, and how many seeds it has where not all are done."""
    return mean_of(values) + (f" ({len(values)})" if 0 < len(values) < seeds else "")


def _latency(cells: Cells) -> str:
    before = [ms for row, part in cells.found for ms in cells.numbers(row, part, "milliseconds before")]
    if not before:
        return "\nNothing is measured yet."
    parts = [
        f"{sign} {min(ms for row in cells.rows for ms in cells.numbers(row, part, 'milliseconds')):.2g} ms"
        for part, sign in PARTS.items()
        if any(cells.numbers(row, part, "milliseconds") for row in cells.rows)
    ]
    return f"\nLatency per batch on one core, the least of all runs: original {min(before):.2g} ms, {', '.join(parts)}."


def _decays(by_decay: dict[float, Cells]) -> Table:
    table = _table("method", *(f"{d:g}" for d in by_decay))
    table.add_row("original", *(mean_of(cells.base()) for cells in by_decay.values()))
    for row in next(iter(by_decay.values())).rows:
        entries = []
        for cells in by_decay.values():
            start = "" if row in ("from scratch", "distillation") else mean_of(cells.accuracies(row, 4, 0))
            tuned = cells.accuracies(row, 4, 1)
            entries.append(start + (f" / {_counted(tuned, len(cells.base()))}" if tuned else ""))
        table.add_row(row, *entries)
    return table


def _growth(kept: Kept) -> Table:
    table = _table("method", *(f"{e} ep." for e in (0, *growth.EPOCHS)), "s to grow")
    for method in growth.METHODS:
        cells = [kept.read(growth.name_of(seed, method)) for seed in range(growth.SEEDS)]
        cells = [cell for cell in cells if cell]
        if cells:
            found = [mean_of(cell["accuracy"][str(e)] for cell in cells) for e in (0, *growth.EPOCHS)]
            table.add_row(method, *found, f"{statistics.median(cell['seconds'] for cell in cells):.2g}")
    return table


COLOURS = {
    "ours": "C0",
    "random": "C2",
    "L2 + refit": "C8",
    "Torch-Pruning": "C1",
    "from": "0.3",
    "distillation": "0.6",
}
MARKS = {"no data": ":", "300": "--", "Taylor": "--", "FPGM": ":"}


def draw(everything: dict[str, Cells], stem: Path) -> Path:
    """Accuracy against width without fine-tuning; below, where all rows are measured, against epochs at ¼ of the
    width."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tuned = {kind for kind, cells in everything.items() if all(cells.accuracies(row, 4, 6) for row in cells.rows)}
    rows = 2 if tuned else 1
    size = (4 * len(everything), 3.2 * rows + 0.7)
    figure, axes = plt.subplots(rows, len(everything), figsize=size, squeeze=False, layout="constrained")
    for axis, (kind, cells) in zip(axes[0], everything.items(), strict=True):
        for row in cells.rows:
            if row not in ("from scratch", "distillation"):
                _line(axis, [(1 / part, cells.accuracies(row, part, 0)) for part in PARTS], row, cells)
        axis.set(title=TITLES[kind], xscale="log", xlim=(0.11, 0.57), xlabel="share of the widths, no fine-tuning")
        axis.set_xticks([1 / 8, 1 / 4, 1 / 2], ["⅛", "¼", "½"])
        axis.minorticks_off()
    for axis, (kind, cells) in zip(axes[1] if tuned else (), everything.items(), strict=False):
        for row in cells.rows if kind in tuned else ():
            _line(axis, [(e, cells.accuracies(row, 4, e)) for e in (0, 1, 3, 6)], row, cells)
        axis.set(xlabel="epochs of fine-tuning at ¼ of the widths", visible=kind in tuned)
    for axis in axes[:, 0]:
        axis.set_ylabel("test accuracy, %")
    figure.legend(*axes[-1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    for suffix in (".png", ".svg"):
        figure.savefig(stem.with_suffix(suffix), dpi=150)
    plt.close(figure)
    return stem.with_suffix(".png")


def _line(axis: Any, points: list[tuple[float, list[float]]], row: str, cells: Cells) -> None:
    known = [(x, 100 * statistics.mean(values)) for x, values in points if values]
    axis.axhline(100 * statistics.mean(cells.base() or [0.0]), color="0.8", zorder=0)
    if known:
        colour = next(c for start, c in COLOURS.items() if row.startswith(start))
        dash = next((mark for part, mark in MARKS.items() if part in row), "-")
        axis.plot(*zip(*known, strict=True), color=colour, linestyle=dash, marker=".", label=row)
