"""The hypotheses of the compression benchmark beside what was measured, by rules that read numbers only.

The hypotheses stand at the top of `benchmarks/compression.py`. They were written before the first run. Some of their
words need a number to be decided ("come close", "as good as"): these rules say which.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence

from benchmarks.cells import CONTROLS, DECAYS, MAIN, PARTS, PEERS, Cells, Record, ours, pruned
from benchmarks.compression_tables import SIGNS, markdown

Verdict = tuple[str, str, str]
"""What is claimed, what was measured, and whether it holds."""


def mean(values: Sequence[float]) -> float | None:
    """In per cent, or None if nothing is measured."""
    return 100 * statistics.mean(values) if values else None


def decided(outcomes: Sequence[bool]) -> str:
    """Whether all hold, some or none."""
    if not outcomes:
        return "not measured"
    if all(outcomes):
        return "yes"
    return f"in {sum(outcomes)} of {len(outcomes)}" if any(outcomes) else "no"


def table(records: list[Record]) -> str:
    """All hypotheses as a table."""
    found = [*floors(records), ahead(records), *refit(records), *warm(records), *decay(records), grown(records)]
    return markdown(["hypothesis", "measured", "holds"], found)


def floors(records: list[Record]) -> Iterator[Verdict]:
    """1: accuracies of the MLP at ¼, and the distance to Torch-Pruning on the CNNs at ½."""
    cells = Cells(records, "mlp")
    found = [mean(cells.accuracies(row, 4, 0)) for row in reversed(ours("mlp"))]
    pairs = [(value, least) for value, least in zip(found, (96.5, 96.0, 89.0), strict=True) if value is not None]
    told = " / ".join(f"{value:.1f}" for value, _ in pairs)
    yield (
        "1. MLP at ¼: at least 96.5 / 96 / 89 % with 10,000 / 300 / no inputs",
        told,
        decided([v >= m for v, m in pairs]),
    )
    gaps = {}
    for kind in ("plain", "residual"):
        cells = Cells(records, kind)
        mine = [m for row in ours(kind)[1:] if (m := mean(cells.accuracies(row, 2, 0))) is not None]
        peers = [m for row in PEERS if (m := mean(cells.accuracies(row, 2, 0))) is not None]
        if mine and peers:
            gaps[kind] = max(mine) - max(peers)
    told = ", ".join(f"{kind} {gap:+.1f}" for kind, gap in gaps.items())
    claim = "1. CNNs at ½: at least 5 points above the best Torch-Pruning row"
    yield claim, told, decided([gap >= 5 for gap in gaps.values()])


def ahead(records: list[Record]) -> Verdict:
    """1: every row with a refit on data is above every row without, at each width."""
    outcomes = []
    for kind in MAIN:
        cells = Cells(records, kind)
        for part in PARTS:
            with_refit = [mean(cells.accuracies(row, part, 0)) for row in (*ours(kind)[1:], *CONTROLS)]
            without = [mean(cells.accuracies(row, part, 0)) for row in PEERS]
            known = [[v for v in values if v is not None] for values in (with_refit, without)]
            if all(known):
                outcomes.append(min(known[0]) > max(known[1]))
    claim = "1. Each row with a refit on inputs is above each without (networks × widths)"
    return claim, f"{sum(outcomes)} of {len(outcomes)}" if outcomes else "", decided(outcomes)


def refit(records: list[Record]) -> Iterator[Verdict]:
    """2: the gap between ours and random neurons with the refit is smaller at ½ than at ⅛."""
    for kind in MAIN:
        cells = Cells(records, kind)
        gaps = {}
        for part in (2, 8):
            pair = [mean(cells.accuracies(row, part, 0)) for row in (ours(kind)[2], "random + refit")]
            if pair[0] is not None and pair[1] is not None:
                gaps[part] = pair[0] - pair[1]
        told = ", ".join(f"{gap:+.1f} at {SIGNS[part]}" for part, gap in gaps.items())
        claim = f"2. {kind}: random neurons with the refit are closer to ours at ½ than at ⅛"
        yield claim, told, decided([gaps[2] < gaps[8]] if len(gaps) == 2 else [])


def warm(records: list[Record]) -> Iterator[Verdict]:
    """3: one epoch from ours against six from scratch; all pruners within a point after six."""
    for kind in MAIN:
        cells = Cells(records, kind)
        leads, spreads = {}, {}
        for part in PARTS:
            one, six = mean(cells.accuracies(ours(kind)[2], part, 1)), mean(cells.accuracies("from scratch", part, 6))
            if one is not None and six is not None:
                leads[part] = one - six
            ends = [m for row in pruned(kind) if (m := mean(cells.accuracies(row, part, 6))) is not None]
            if len(ends) == len(pruned(kind)):
                spreads[part] = max(ends) - min(ends)
        told = ", ".join(f"{lead:+.1f} at {SIGNS[part]}" for part, lead in leads.items())
        yield f"3. {kind}: one epoch from ours beats six from scratch", told, decided([v > 0 for v in leads.values()])
        told = ", ".join(f"{spread:.1f} at {SIGNS[part]}" for part, spread in spreads.items())
        claim = f"3. {kind}: after six epochs all pruners are within a point"
        yield claim, told, decided([v <= 1 for v in spreads.values()])


def decay(records: list[Record]) -> Iterator[Verdict]:
    """4: what ours (10,000 inputs) loses at ¼ falls from each weight decay to the next larger one."""
    arms = {"AdamW": [("mlp", value) for value in DECAYS["mlp"]]}
    arms["L2 penalty"] = [("mlp", 0.0), *(("penalised", value) for value in DECAYS["penalised"])]
    for name, networks in arms.items():
        lost = {}
        for kind, value in networks:
            cells = Cells(records, kind, value)
            before, after = mean(cells.base()), mean(cells.accuracies(ours("mlp")[2], 4, 0))
            if before is not None and after is not None:
                lost[value] = before - after
        told = ", ".join(f"{points:.2f} at {value:g}" for value, points in lost.items())
        claim = f"4. Weight decay ({name}) makes compression easier: points lost at ¼ with 10,000 inputs fall with it"
        yield claim, told, decided([b < a for a, b in itertools.pairwise(lost.values())])


def grown(records: list[Record]) -> Verdict:
    """5: random new neurons are at most 0.2 points behind the best chosen ones after 1, 3 and 6 epochs."""
    cells = Cells(records, "growth")
    gaps = {}
    for epochs in (1, 3, 6):
        random = mean(cells.accuracies("ours, random", 1, epochs))
        chosen = [m for row in ("ours, gradmax", "gromo") if (m := mean(cells.accuracies(row, 1, epochs))) is not None]
        if random is not None and chosen:
            gaps[epochs] = random - max(chosen)
    told = ", ".join(f"{gap:+.1f} after {epochs}" for epochs, gap in gaps.items())
    claim = "5. Growth: random neurons are as good as chosen ones (at most 0.2 points behind gradmax and gromo)"
    return claim, told, decided([gap >= -0.2 for gap in gaps.values()])
