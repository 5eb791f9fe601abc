"""Figures of reports on networks: error against width."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from understudy.plots.style import colours, house_style, save


def draw_curves(curves: Sequence[tuple[str, Sequence[float]]], stem: str | Path | None = None) -> Any:
    """Error against the share of neurons kept, one line per layer; returns the figure. `stem` saves it there."""
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.subplots()
        for (name, curve), colour in zip(curves, colours(len(curves)), strict=True):
            share = np.arange(1, len(curve) + 1) / len(curve)
            axes.semilogy(share, np.maximum(curve, 1e-9), color=colour, label=f"{name} ({len(curve)})")
        axes.set(xlabel="share of neurons that stay", ylabel="error after a refit", ylim=(1e-9, None))
        axes.legend(title="layer")
        if stem is not None:
            save(figure, Path(stem))
    return figure
