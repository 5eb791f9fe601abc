"""The figure of a split: the least eigenvalues along the line of split points, one panel a neuron."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from understudy.plots.style import COLOURS, house_style, save

MARKERS = {"minimum": "o", "strict saddle": "v", "non-strict saddle": "D"}


def draw_split(lines: Sequence[Mapping[str, Any]], stem: Path, report: Mapping[str, Any]) -> list[Path]:
    """Five least eigenvalues against μ, the upper bound of Lemma 4.2, and the certified points."""
    from matplotlib.figure import Figure

    columns = min(len(lines), 4)
    rows = -(-len(lines) // columns)
    with house_style():
        figure = Figure(figsize=(3.1 * columns + 0.8, 3.1 * rows + 0.6), layout="constrained")
        point = report["point"]
        figure.suptitle(f"Splitting each neuron of a {point['kind']} with loss {point['loss']:.6g}", fontsize=12)
        axes = figure.subplots(rows, columns, squeeze=False)
        for spare in axes.ravel()[len(lines) :]:
            spare.axis("off")
        for number, (line, ax) in enumerate(zip(lines, axes.ravel(), strict=False)):
            _panel(ax, line, first=number == 0)
        return save(figure, Path(stem))


def _panel(ax: Any, line: Mapping[str, Any], first: bool) -> None:
    row, mu = line["row"], line["mu"]
    for mode in range(line["five"].shape[1]):
        ax.plot(mu, line["five"][:, mode], color=COLOURS[4], lw=1.2, label="five least" if mode == 0 else None)
    ax.plot(mu, line["upper"], "--", color=COLOURS[1], lw=1.4, label="upper bound")
    size = max(float(np.abs(line["upper"]).max()), float(np.abs(line["five"][:, 0]).max()), 1e-300)
    for kind, marker in MARKERS.items():
        chosen = [s for s in row["splits"] if s["kind"] == kind and mu[0] <= s["mu"] <= mu[-1]]
        if chosen:
            ax.plot(
                [s["mu"] for s in chosen],
                [s["least_eigenvalue"] for s in chosen],
                marker,
                color="black",
                ms=5,
                label=kind,
            )
    ax.axhline(0, color="grey", lw=0.6)
    ax.set_ylim(-1.15 * size, 1.15 * size)
    ax.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)
    ax.set_title(f"neuron {row['neuron']}: a = {row['outgoing']:.3g}, scenario {row['scenario']}", fontsize=9.5)
    ax.set(xlabel="share μ of the first part")
    if first:
        ax.set_ylabel("eigenvalues of the Hessian")
    ax.legend(fontsize=7, loc="best")
