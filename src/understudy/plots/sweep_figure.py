"""The figure of a sweep: which solutions win, and at which loss, against the number of teachers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from understudy.plots.style import COLOURS, given_axes, house_style, new_figure

MOST_LABELS = 6
MOST_COLUMNS = 6
OTHER = "#BBBBBB"


def sweep(rows: Sequence[dict[str, Any]], axes: Any = None) -> Any:
    """Shares of runs by solution (top) and losses (bottom) against k; one column for all cells that differ only in k.

    `rows` are summaries of cells, see `understudy.results.cells.summarise_cell`. `axes` are those of the top row, then
    those of the bottom row, one per column of `group_by_column`. Returns the figure.
    """
    from matplotlib.ticker import MaxNLocator

    columns = group_by_column(rows)
    shown = dict(list(columns.items())[: None if axes is not None else MOST_COLUMNS])
    colours = _colours(rows)
    with house_style():
        figure = new_figure(1.5 + 4.2 * len(shown), 7) if axes is None else None
        made = figure.subplots(2, len(shown), squeeze=False, sharex="col") if figure else axes
        panels = np.reshape(np.array(given_axes(made, 2 * len(shown)), object), (2, len(shown)))
        for (above, below), (title, chosen) in zip(panels.T, shown.items(), strict=True):
            _shares(above, chosen, colours)
            _losses(below, chosen, colours)
            below.xaxis.set_major_locator(MaxNLocator(integer=True))
            above.set_title(title)
        panels[0, 0].set_ylabel("share of runs")
        panels[1, 0].set_ylabel("loss")
        handles = _handles(rows, colours)
        if figure is None:
            panels[0, 0].legend(handles=handles, fontsize=8)
            return panels[0, 0].figure
        figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=9)
        if len(columns) > len(shown):
            first = list(columns)[MOST_COLUMNS].replace("\n", ", ")
            left = len(columns) - MOST_COLUMNS
            words = f"{left} of {len(columns)} columns are left out, from “{first}” on; --json has them all."
            figure.supxlabel(words, fontsize=9)
        return figure


def _families(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Names of all solutions, the most frequent first."""
    totals: dict[str, int] = {}
    for row in rows:
        for p in row["points"]:
            name = _family(p["label"], row["student"])
            totals[name] = totals.get(name, 0) + p["count"]
    return sorted(totals, key=lambda x: -totals[x])


def _colours(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    return dict(zip(_families(rows)[:MOST_LABELS], COLOURS, strict=False))


def _handles(rows: Sequence[dict[str, Any]], colours: dict[str, str]) -> list[Any]:
    from matplotlib.patches import Patch

    others = len(_families(rows)) - MOST_LABELS
    handles = [Patch(color=colour, label=name) for name, colour in colours.items()]
    return handles if others <= 0 else [*handles, Patch(color=OTHER, label=f"{others} others")]


def group_by_column(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Cells that differ only in k, in ascending order, under a title that says how the cells of this sweep differ."""
    titles = [
        {
            "activation": row["activation"],
            "student": f"{row['student']} students",
            "dim": _dimension(row, rows),
            "outgoing": f"outgoing {row['outgoing']}",
            "bias": "with biases" if row.get("bias") else "",
            "init": row["init"],
            "init_std": "" if row["init_std"] is None else f"std {row['init_std']:g}",
        }
        for row in rows
    ]
    varying = [name for name in ("dim", "outgoing", "bias", "init", "init_std") if len({t[name] for t in titles}) > 1]
    columns: dict[str, list[dict[str, Any]]] = {}
    for row, words in zip(rows, titles, strict=True):
        first = f"{words['activation']}, {words['student']}"
        second = ", ".join(words[name] for name in varying if words[name])
        columns.setdefault(f"{first}\n{second}".strip(), []).append(row)
    return {title: sorted(chosen, key=lambda r: r["teacher"]) for title, chosen in columns.items()}


def _dimension(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """The input dimension as a number or as k + a number, whichever takes fewer values in this sweep."""
    beyond = {r["dim"] - r["teacher"] for r in rows}
    if len(beyond) < len({r["dim"] for r in rows}):
        return f"d = k + {row['dim'] - row['teacher']}"
    return f"d = {row['dim']}"


def _family(label: str, student: int) -> str:
    """Labels with the width written as n, so that columns of different widths share their colours."""
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
        axes.bar(k, rest, bottom=bottom, color=OTHER, width=0.8)
    axes.set_ylim(0, 1)


def _losses(axes: Any, rows: list[dict[str, Any]], colours: dict[str, str]) -> None:
    theory: dict[int, float] = {}
    for row in rows:
        for p in row["points"]:
            name = _family(p["label"], row["student"])
            marker = "o" if p["kind"] == "minimum" else "X"
            axes.plot(row["teacher"], p["loss"], marker, color=colours.get(name, OTHER), ms=5)
            if p["theory"] is not None:
                theory[row["teacher"]] = p["theory"]
    if theory:
        axes.plot(sorted(theory), [theory[k] for k in sorted(theory)], "k--", lw=0.9, label="theory")
        axes.legend(fontsize=8.5)
    axes.set_xlabel("teachers k")
