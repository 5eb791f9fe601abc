"""The figure of a split: least eigenvalues along the line of split points and both bounds, two panels per neuron."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from understudy.plots.style import COLOURS, given_axes, house_style, new_figure

MARKERS = {"minimum": "o", "strict saddle": "v", "non-strict saddle": "D"}
COLUMNS = 4


def split(lines: Sequence[Mapping[str, Any]], report: Mapping[str, Any], axes: Any = None) -> Any:
    """Five least eigenvalues against μ with the bounds of Lemma 4.2 and App. D.2.1, and the certified points.

    The upper bound has the size of the eigenvalues. The lower bound does not, so it has its own panel. `axes` are two
    per neuron: its eigenvalues, then its lower bound. Returns the figure.
    """
    columns = min(len(lines), COLUMNS)
    with house_style():
        if axes is not None:
            panels = given_axes(axes, 2 * len(lines))
            for number, line in enumerate(lines):
                _eigenvalues(panels[2 * number], line, first=True)
                _lower_bound(panels[2 * number + 1], line, first=True)
                panels[2 * number].legend(fontsize=8)
            return panels[0].figure
        rows = -(-len(lines) // columns)
        figure = new_figure(3.1 * columns + 0.9, 4.6 * rows + 1.1)
        point = report["point"]
        figure.suptitle(f"Splitting each neuron of a {point['kind']} with loss {point['loss']:.6g}", fontsize=12)
        grid = figure.subplots(2 * rows, columns, squeeze=False, height_ratios=[1.9, 1] * rows, sharex="col")
        for number in range(rows * columns):
            row, column = divmod(number, columns)
            above, below = grid[2 * row, column], grid[2 * row + 1, column]
            if number < len(lines):
                _eigenvalues(above, lines[number], first=column == 0)
                _lower_bound(below, lines[number], first=column == 0)
            else:
                above.axis("off")
                below.axis("off")
        _common_legend(figure, grid.ravel(), 2 * columns)
        return figure


def _common_legend(figure: Any, panels: Any, most: int) -> None:
    handles: dict[str, Any] = {}
    for ax in panels:
        handles |= {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True) if label}
    ncols = min(len(handles), most)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=ncols, fontsize=8)


def _eigenvalues(ax: Any, line: Mapping[str, Any], first: bool) -> None:
    row, mu = line["row"], line["mu"]
    for mode in range(line["five"].shape[1]):
        ax.plot(
            mu, line["five"][:, mode], color=COLOURS[4], lw=1.2, label="five least eigenvalues" if mode == 0 else None
        )
    ax.plot(mu, line["upper"], "--", color=COLOURS[1], lw=1.4, label="upper bound")
    known = np.nan_to_num(np.asarray(line["upper"], float))  # there is no bound with several outputs
    size = max(float(np.abs(known).max()), float(np.abs(line["five"][:, 0]).max()), 1e-300)
    for kind, marker in MARKERS.items():
        chosen = [s for s in row["splits"] if s["kind"] == kind and mu[0] <= s["mu"] <= mu[-1]]
        if chosen:
            x, y = [s["mu"] for s in chosen], [s["least_eigenvalue"] for s in chosen]
            ax.plot(x, y, marker, color="black", ms=5, label=kind)
    ax.axhline(0, color="grey", lw=0.6)
    ax.set_ylim(-1.15 * size, 1.15 * size)
    ax.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)
    weight = np.linalg.norm(row["outgoing"]) if isinstance(row["outgoing"], list) else row["outgoing"]
    ax.set_title(f"neuron {row['neuron']}: a = {weight:.3g}, scenario {row['scenario']}", fontsize=9.5)
    if first:
        ax.set_ylabel("eigenvalues of the Hessian")


def _lower_bound(ax: Any, line: Mapping[str, Any], first: bool) -> None:
    mu, least, lower = line["mu"], line["five"][:, 0], line["lower"]
    ax.plot(mu, least, color=COLOURS[4], lw=1.2)
    ax.plot(mu, lower, "-.", color=COLOURS[2], lw=1.4, label="lower bound")
    ax.axhline(0, color="grey", lw=0.6)
    ax.margins(y=0.12)
    ax.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)
    ax.set(xlabel="share μ of the first part")
    if first:
        ax.set_ylabel("the least one")
