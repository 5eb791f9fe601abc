"""The figure of a sweep: which solutions win, and at which loss, against the number of teachers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from understudy.plots.style import COLOURS, house_style, save

MOST_LABELS = 6


def draw_sweep(rows: Sequence[dict[str, Any]], out: Path) -> list[Path]:
    """One column a pair (activation, width): share of runs by solution above, losses below; both against k."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    panels = sorted({(r["activation"], r["student"], r["outgoing"], r["init"], r["init_std"]) for r in rows})[:6]
    totals: dict[str, int] = {}
    for row in rows:
        for p in row["points"]:
            name = _family(p["label"], row["student"])
            totals[name] = totals.get(name, 0) + p["count"]
    names = sorted(totals, key=lambda x: -totals[x])[:MOST_LABELS]
    colours = dict(zip(names, COLOURS, strict=False))
    with house_style():
        figure = Figure(figsize=(1.5 + 4.2 * len(panels), 7), layout="constrained")
        axes = figure.subplots(2, len(panels), squeeze=False, sharex="col")
        for column, key in enumerate(panels):
            chosen = [
                r for r in rows if (r["activation"], r["student"], r["outgoing"], r["init"], r["init_std"]) == key
            ]
            chosen.sort(key=lambda r: (r["teacher"], r["dim"]))
            _shares(axes[0, column], chosen, colours)
            _losses(axes[1, column], chosen, colours)
            axes[1, column].xaxis.set_major_locator(MaxNLocator(integer=True))
            axes[0, column].set_title(f"{key[0]}, {key[1]} students")
        axes[0, 0].set_ylabel("share of runs")
        axes[1, 0].set_ylabel("loss")
        handles = [Patch(color=colour, label=name) for name, colour in colours.items()]
        figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=9)
        return save(figure, Path(out) / "sweep")


def _family(label: str, student: int) -> str:
    """Labels with the width written as n, so that columns of different width share their colours."""
    for number, text in ((student, "n"), (student - 1, "(n-1)")):
        label = label.replace(f"{number}-copy", f"{text}-copy")
    return label


def _shares(axes: Any, rows: list[dict[str, Any]], colours: dict[str, str]) -> None:
    k = np.array([r["teacher"] for r in rows], float)
    bottom = np.zeros(len(rows))
    for name, colour in colours.items():
        share = np.array(
            [
                sum(p["count"] for p in r["points"] if _family(p["label"], r["student"]) == name) / r["runs"]
                for r in rows
            ]
        )
        if share.any():
            axes.bar(k, share, bottom=bottom, color=colour, width=0.8)
            bottom += share
    rest = 1 - bottom
    if np.any(rest > 1e-9):
        axes.bar(k, rest, bottom=bottom, color="#BBBBBB", width=0.8)
    axes.set_ylim(0, 1)


def _losses(axes: Any, rows: list[dict[str, Any]], colours: dict[str, str]) -> None:
    theory: dict[int, float] = {}
    for row in rows:
        for p in row["points"]:
            name = _family(p["label"], row["student"])
            marker = "o" if p["kind"] == "minimum" else "X"
            axes.plot(row["teacher"], p["loss"], marker, color=colours.get(name, "#BBBBBB"), ms=5)
            if p["theory"] is not None:
                theory[row["teacher"]] = p["theory"]
    if theory:
        axes.plot(sorted(theory), [theory[k] for k in sorted(theory)], "k--", lw=0.9, label="theory")
        axes.legend(fontsize=8.5)
    axes.set_xlabel("teachers k")
