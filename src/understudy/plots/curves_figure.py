"""Figures of reports on networks: error against width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from understudy.plots.style import colours, house_style, new_figure


def curves(curves: Sequence[tuple[str, Sequence[float]]], ax: Any = None) -> Any:
    """Error against the share of neurons kept, one line per layer (name, errors); returns the figure."""
    with house_style():
        axes = new_figure(6.4, 4.2).subplots() if ax is None else ax
        for (name, curve), colour in zip(curves, colours(len(curves)), strict=True):
            share = np.arange(1, len(curve) + 1) / len(curve)
            axes.semilogy(share, np.maximum(curve, 1e-9), color=colour, label=f"{name} ({len(curve)})")
        axes.set(xlabel="share of neurons that stay", ylabel="error after a refit", ylim=(1e-9, None))
        axes.legend(title="layer")
        return axes.figure
