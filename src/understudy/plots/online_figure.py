"""Figures of one-pass SGD: order parameters and simulations, error against time, asymptotic error over (η, width)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.plots.style import COLOURS, colours, given_axes, house_style, new_figure

if TYPE_CHECKING:
    from understudy.online import OnlineResult, Phases, Plateau, Simulation


def online(
    result: OnlineResult,
    *,
    simulation: Simulation | None = None,
    plateaus: Sequence[Plateau] = (),
    axes: Any = None,
) -> Any:
    """Overlaps with the teacher, overlaps of students and the loss, on three axes; returns the figure."""
    with house_style():
        made = new_figure(11.5, 3.6).subplots(1, 3) if axes is None else axes
        first, second, third = given_axes(made, 3)
        overlaps(result, "teacher", first, simulation)
        overlaps(result, "student", second, simulation)
        error(result, third, simulation, plateaus)
        return first.figure


def overlaps(result: OnlineResult, which: str, ax: Any, simulation: Simulation | None = None) -> Any:
    """R_ij (`which="teacher"`) or Q_ij (`"student"`) against α; each simulated seed as points beneath."""
    name, letter = (f"{which}_overlaps", "R" if which == "teacher" else "Q")
    values = getattr(result, name)
    _, rows, columns = values.shape
    entries = [(i, j) for i in range(rows) for j in range(columns) if which == "teacher" or j >= i]
    for (i, j), colour in zip(entries, colours(len(entries)), strict=True):
        if simulation is not None:
            for seed in getattr(simulation, name):
                ax.plot(simulation.times, seed[:, i, j], ".", color=colour, alpha=0.35, ms=3, zorder=1)
        ax.plot(result.times, values[:, i, j], color=colour, label=f"{letter}$_{{{i + 1}{j + 1}}}$", zorder=2)
    with_what = "teachers" if which == "teacher" else "students"
    ax.set(xlabel="α = steps / d", ylabel=f"overlap with {with_what}")
    if len(entries) <= 10:
        ax.legend(fontsize=8, ncol=2)
    return ax


def error(result: OnlineResult, ax: Any, simulation: Simulation | None = None, plateaus: Sequence[Plateau] = ()) -> Any:
    """E(f - f*)² against α, on a logarithmic scale, with plateaus shaded and their predicted ends marked."""
    if simulation is not None:
        for seed in simulation.loss:
            ax.plot(simulation.times, np.maximum(seed, 1e-300), ".", color=COLOURS[4], alpha=0.5, ms=3, zorder=1)
    positive = np.maximum(result.loss, 1e-16)
    ax.semilogy(result.times, positive, color="black", zorder=2, label="equations")
    for i, plateau in enumerate(plateaus):
        ax.axvspan(plateau.begin, plateau.end, color=COLOURS[5], alpha=0.2, lw=0, label="" if i else "plateau")
        if np.isfinite(plateau.predicted_leaving):
            ax.axvline(
                plateau.predicted_leaving, color=COLOURS[1], ls="--", lw=1.2, label="" if i else "predicted to leave"
            )
    ax.set(xlabel="α = steps / d", ylabel="E(f - f*)²", ylim=(max(positive.min() / 2, 1e-15), 2 * positive.max()))
    if plateaus:
        ax.legend(fontsize=8)
    return ax


def phases(phases: Phases, ax: Any = None) -> Any:
    """Asymptotic error over (η, students) on a logarithmic colour scale; grey where the perfect student is unstable.

    Returns the figure.
    """
    with house_style():
        if ax is None:
            wide, high = 2.6 + 0.62 * len(phases.rates), 1.9 + 0.45 * len(phases.widths)
            ax = new_figure(max(wide, 5.6), max(high, 3.0)).subplots()
        _phase_diagram(phases, ax)
        return ax.figure


def _phase_diagram(phases: Phases, ax: Any) -> None:
    from matplotlib.colors import LogNorm

    shown = np.ma.masked_invalid(phases.errors.T)
    columns, rows = np.arange(len(phases.rates) + 1), np.arange(len(phases.widths) + 1)
    ax.set_facecolor("lightgrey")
    ax.grid(visible=False)
    ax.set(xlim=(0, columns[-1]), ylim=(0, rows[-1]), xlabel="learning rate η", ylabel="students")
    ax.set_xticks(columns[:-1] + 0.5, [f"{rate:g}" for rate in phases.rates])
    ax.set_yticks(rows[:-1] + 0.5, [str(width) for width in phases.widths])
    ax.set_title(f"label noise {phases.noise:g}; grey: the perfect student is not stable")
    if shown.count():
        low, high = float(shown.min()), float(shown.max())
        norm = LogNorm(low, high if high > low else 2 * low)
        mesh = ax.pcolormesh(columns, rows, shown, norm=norm, cmap="viridis")
        ax.figure.colorbar(mesh, ax=ax, label="E(f - f*)² for α → ∞")
