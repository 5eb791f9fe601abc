"""`python -m benchmarks.compression_page`: tables and figure of docs/how-to/pytorch.md from the measured cells.

Cells that are stored on this machine are first written to `benchmarks/compression.csv`, if there are at least as many
as in it. The tables and the figure are made from that file alone.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks import compression_tables as tables
from benchmarks import hypotheses
from benchmarks.cells import (
    FILE,
    MAIN,
    MLPS,
    PARTS,
    TUNED,
    VERSION,
    Cells,
    Record,
    every,
    from_text,
    gather,
    pruned,
    to_text,
)
from benchmarks.kept import Kept

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "how-to" / "pytorch.md"
FIGURE = DOCS / "images" / "compression.png"
BEGIN, END = "<!-- measured: begin (python -m benchmarks.compression_page) -->", "<!-- measured: end -->"


def main() -> None:
    found = gather(Kept("compression", VERSION))
    if not FILE.is_file() or len(found) >= len(from_text(FILE.read_text())):
        FILE.write_text(to_text(found))
    records = from_text(FILE.read_text())
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    PAGE.write_text(f"{before}{BEGIN}\n\n{rendered(records)}\n\n{after}")
    draw(records, FIGURE)
    print(f"{len(records)} cells. {missing(records)}\nWritten: {FILE}, {PAGE}, {FIGURE}")


def missing(records: list[Record]) -> str:
    """How many cells and fine-tunings are not measured, by network."""
    left: dict[str, list[int]] = {}
    have = {(r["kind"], r.get("decay", 0.0), r["seed"], r["row"], r["part"]): r for r in records}
    for key in every():
        kind = f"{key[0]} {key[1]:g}" if key[0] in MLPS else key[0]
        counts = left.setdefault(kind, [0, 0, 0])
        counts[0] += 1
        counts[1] += key not in have
        counts[2] += key[0] not in ("penalised", "latency") and f"after {TUNED[-1]}" not in have.get(key, {})
    told = [f"{kind}: {a} of {n} cells, {b} fine-tunings" for kind, (n, a, b) in left.items() if a or b]
    return fill(f"Not measured yet: {'; '.join(told)}." if told else "Everything is measured.", 120)


def rendered(records: list[Record]) -> str:
    """The measured part of the page."""
    parts = ["### Hypotheses", hypotheses.table(records), missing(records)]
    for kind in MAIN:
        cells = Cells(records, kind)
        base, images = tables.mean_of(cells.base()), "10,000" if kind == "mlp" else "2,000"
        intro = f"Accuracy of the originals {base} % ({len(cells.base())} networks, {images} test images)."
        parts += [f"### {tables.TITLES[kind]}", f"{intro} No fine-tuning:", tables.untuned(cells)]
        parts += ["After epochs of fine-tuning on labels; new networks start at random:", tables.tuned(cells)]
        parts += [tables.latency(records, kind)]
    parts += ["### Weight decay", "MNIST at ¼ of the widths by the decay of AdamW: no fine-tuning / six epochs."]
    parts += [tables.decays(records), SHRINKS, tables.penalties(records)]
    parts += ["### Growth", "784-16-16-10 on MNIST, trained for 3 epochs, then widened to 64-64 and trained further:"]
    parts += [tables.growth(records)]
    return "\n\n".join(part for part in parts if part)


SHRINKS = """AdamW shrinks weights apart from the loss. At a rate of 1e-3 that falls to zero, six epochs with a decay of
1e-2 shrink them by 1.4 %: these networks hardly differ. So the same was measured for an L2 penalty (the decay of Adam,
which is part of the gradient), without fine-tuning. This was added after the first table was seen."""


COLOURS = {
    "ours": "C0",
    "random": "C2",
    "L2 + refit": "C8",
    "Torch-Pruning": "C1",
    "from": "0.3",
    "distillation": "0.6",
}
MARKS = {"no data": ":", "300": "--", "Taylor": "--", "FPGM": ":"}


def draw(records: list[Record], file: Path) -> None:
    """Above: accuracy against width without fine-tuning. Below: against epochs at ¼ of the widths."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(MAIN), figsize=(4 * len(MAIN), 7.2), layout="constrained")
    for (top, below), kind in zip(axes.T, MAIN, strict=True):
        cells = Cells(records, kind)
        for axis in (top, below):
            axis.axhline(100 * statistics.mean(cells.base() or [0.0]), color="0.8", zorder=0)
        for row in pruned(kind):
            _line(top, [(1 / part, cells.accuracies(row, part, 0)) for part in PARTS], row)
        top.set(
            title=tables.TITLES[kind], xscale="log", xlim=(0.11, 0.57), xlabel="share of the widths, no fine-tuning"
        )
        top.set_xticks([1 / part for part in PARTS], [tables.SIGNS[part] for part in PARTS])
        top.minorticks_off()
        for row in cells.rows:
            _line(below, [(epochs, cells.accuracies(row, 4, epochs)) for epochs in TUNED], row)
        below.set(xlabel="epochs of fine-tuning at ¼ of the widths", xticks=TUNED)
        if len(below.lines) == 1:  # only the original
            below.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("test accuracy, %")
    lines = {line.get_label(): line for axis in axes.flat for line in axis.lines if line.get_label()[0] != "_"}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _line(axis: Any, points: list[tuple[float, list[float]]], row: str) -> None:
    known = [(x, 100 * statistics.mean(values)) for x, values in points if values]
    if known:
        colour = next(c for start, c in COLOURS.items() if row.startswith(start))
        dash = next((mark for part, mark in MARKS.items() if part in row), "-")
        name = "ours, 10,000 digits or 2,000 photographs" if "000" in row else row
        axis.plot(*zip(*known, strict=True), color=colour, linestyle=dash, marker=".", label=name)


if __name__ == "__main__":
    main()
