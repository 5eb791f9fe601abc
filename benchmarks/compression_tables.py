"""Tables of the compression benchmark in Markdown, from measured cells."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from benchmarks.cells import (
    BATCH,
    CONTROLS,
    DECAYS,
    FRESH,
    GROWTH,
    PARTS,
    REFIT_INPUTS,
    TAYLOR_INPUTS,
    TUNED,
    Cells,
    Record,
    pruned,
)

SIGNS = {2: "½", 4: "¼", 8: "⅛"}
TITLES = {
    "mlp": "MNIST, 784-256-128-10",
    "plain": "CIFAR-10, four convolutions",
    "residual": "CIFAR-10, residual with BatchNorm",
}
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182}
"""Student's t at 97.5 %, by the number of seeds."""


def mean_of(values: Iterable[float], scale: float = 100.0, digits: int = 1) -> str:
    """The mean, and the 95 % interval of the mean over seeds by Student's t.

    >>> mean_of([0.5, 0.52, 0.51]), mean_of([0.5]), mean_of([])
    ('51.0 ± 2.5', '50.0', '')
    """
    found = [scale * value for value in values]
    if not found:
        return ""
    text = f"{statistics.mean(found):.{digits}f}"
    if len(found) < 2:
        return text
    spread = STUDENT[len(found)] * statistics.stdev(found) / math.sqrt(len(found))
    return f"{text} ± {spread:.{digits}f}"


def counted(values: list[float], seeds: int) -> str:
    """The mean, and how many seeds it has where not all are measured."""
    return mean_of(values) + (f" ({len(values)} of {seeds})" if 0 < len(values) < seeds else "")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; rows and columns without any entry are left out."""
    rows = [row for row in rows if any(row[1:])]
    if not rows:
        return "Not measured yet."
    used = [0, *(i for i in range(1, len(heads)) if any(row[i] for row in rows))]
    lines = [[heads[i] for i in used], ["---"] * len(used), *([row[i] for i in used] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def label(row: str) -> str:
    """A row's name with the inputs that it sees."""
    if row in CONTROLS:
        return f"{row}, {REFIT_INPUTS:,} inputs"
    return f"{row}, {TAYLOR_INPUTS:,} labelled inputs" if "Taylor" in row else row


def untuned(cells: Cells) -> str:
    """Accuracy without fine-tuning at every width; what changed at ¼."""
    heads = ["method", *(f"{SIGNS[part]} width" for part in PARTS)]
    heads += ["change of outputs at ¼", "same class at ¼", "seconds"]
    rows = []
    for row in pruned(cells.kind):
        seconds = cells.numbers(row, None, "seconds")
        rows.append([
            label(row), *(counted(cells.accuracies(row, part, 0), cells.seeds) for part in PARTS),
            mean_of(cells.numbers(row, 4, "change"), 1.0, 2), mean_of(cells.numbers(row, 4, "agreement")),
            f"{statistics.median(seconds):.2g}" if seconds else "",
        ])  # fmt: skip
    return markdown(heads, rows)


def tuned(cells: Cells) -> str:
    """Accuracy after epochs of fine-tuning."""
    columns = [(part, epochs) for part in PARTS for epochs in TUNED]
    heads = ["method", *(f"{SIGNS[part]}, {epochs} ep." for part, epochs in columns)]
    rows = [[label(row), *(counted(cells.accuracies(row, *c), cells.seeds) for c in columns)] for row in cells.rows]
    return markdown(heads, rows)


def decays(records: list[Record]) -> str:
    """Accuracy at ¼ of the width by the weight decay of the original; after the slash: six epochs."""
    by_decay = {f"decay {decay:g}": Cells(records, "mlp", decay) for decay in DECAYS["mlp"]}
    return _by_original(by_decay)


def penalties(records: list[Record]) -> str:
    """The same for originals with an L2 penalty, without fine-tuning."""
    return _by_original({f"penalty {value:g}": Cells(records, "penalised", value) for value in DECAYS["penalised"]})


def _by_original(columns: dict[str, Cells]) -> str:
    rows = [["original", *(mean_of(cells.base()) for cells in columns.values())]]
    for row in (*pruned("mlp"), *FRESH):
        entries = []
        for cells in columns.values():
            start = "" if row in FRESH else counted(cells.accuracies(row, 4, 0), cells.seeds)
            end = counted(cells.accuracies(row, 4, 6), cells.seeds)
            entries.append(" / ".join(part for part in (start, end) if part))
        rows.append([label(row), *entries])
    return markdown(["method", *columns], rows)


def growth(records: list[Record]) -> str:
    """Accuracy after growing and training on."""
    cells = Cells(records, "growth")
    rows = []
    for row in GROWTH:
        seconds = [] if row in ("not grown", "from scratch") else cells.numbers(row, 1, "seconds")
        reached = (counted(cells.accuracies(row, 1, epochs), cells.seeds) for epochs in (0, *TUNED))
        rows.append([row, *reached, f"{statistics.median(seconds):.2g}" if seconds else ""])
    return markdown(["method", "before", *(f"{e} epoch{'s' * (e > 1)}" for e in TUNED), "seconds to grow"], rows)


def latency(records: list[Record], kind: str) -> str:
    """Milliseconds of a batch, the least of all runs."""
    found = {r["part"]: r["milliseconds"] for r in records if r["kind"] == "latency" and r["row"] == kind}
    if 1 not in found:
        return "Its latency is not measured yet."
    told = ", ".join(f"{found[part]:.2g} ms at {SIGNS[part]}" for part in PARTS if part in found)
    return f"A batch of {BATCH[kind]} takes {found[1]:.2g} ms before, {told} (one core)."
