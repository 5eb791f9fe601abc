"""Figures of aligned students: recovery against polarity or time, evaluation loss, and correlation against fan-out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.plots.style import COLOURS, colours, given_axes, house_style, new_figure

if TYPE_CHECKING:
    import xarray as xr

    from understudy.experiments.aligning import Experiment

DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))


def align(
    cells: Sequence[Experiment], results: Sequence[xr.Dataset], threshold: float, ax: Any = None, axes: Any = None
) -> Any:
    """Recovery of the lowest layer, loss, and the final state of every student; returns the figure.

    With `axes` (three) all of it is drawn there; with `ax` only the recovery.
    """
    recovery = recovery_by_polarity if len({c.polarity for c in cells}) > 1 else recovery_by_epoch
    with house_style():
        if ax is not None:
            recovery(ax, cells, results, threshold)
            return ax.figure
        figure = new_figure(12.5, 4.2) if axes is None else None
        left, middle, right = given_axes(figure.subplots(1, 3) if figure else axes, 3)
        recovery(left, cells, results, threshold)
        losses(middle, cells, results)
        l_shape(right, cells[-1], results[-1])
        return left.figure


def _coloured(cells: Sequence[Experiment]) -> list[tuple[Any, float]]:
    """The degrees of over-parameterisation in ascending order, each with its own colour."""
    overs = sorted({c.over for c in cells})
    return list(zip(colours(len(overs)), overs, strict=True))


def recovery_by_polarity(
    axes: Any, cells: Sequence[Experiment], results: Sequence[xr.Dataset], threshold: float
) -> None:
    """Fig. 10 of Tian 2020: dotted after 5 epochs, solid at the end, with 95 % intervals over seeds."""
    from understudy.alignment import recovery_interval

    for colour, over in _coloured(cells):
        mine = sorted((c.polarity, i) for i, c in enumerate(cells) if c.over == over)
        p = [polarity for polarity, _ in mine]
        rows = [results[i] for _, i in mine]
        last = np.array([recovery_interval(r["best_of_teacher_1"].values[:, -1] > threshold) for r in rows])
        axes.plot(p, 100 * last[:, 0], "o-", color=colour, label=f"{over:g}x", ms=4)
        axes.fill_between(p, 100 * last[:, 1], 100 * last[:, 2], color=colour, alpha=0.15, lw=0)
        if all(5.0 in r["epoch"].values and r["epoch"].values[-1] > 5 for r in rows):
            early = [100 * float((r["best_of_teacher_1"].sel(epoch=5.0).values > threshold).mean()) for r in rows]
            axes.plot(p, early, ":", color=colour)
    axes.set(xlabel="polarity p", ylabel="teachers recovered (%)", title="Recovery: dotted 5 epochs, solid at the end")
    axes.legend(title="students")


def recovery_by_epoch(axes: Any, cells: Sequence[Experiment], results: Sequence[xr.Dataset], threshold: float) -> None:
    """Share of teachers recovered against time, one curve per cell."""
    for colour, over in _coloured(cells):
        for cell, rows in zip(cells, results, strict=True):
            if cell.over == over:
                share = 100 * (rows["best_of_teacher_1"].values > threshold).mean(axis=(0, 2))
                axes.plot(rows["epoch"].values, share, "o-", color=colour, ms=3, label=f"{over:g}x")
    axes.set(xlabel="epoch", ylabel="teachers recovered (%)", title=f"Recovery, p = {cells[0].polarity:g}")
    axes.legend(title="students")


def losses(axes: Any, cells: Sequence[Experiment], results: Sequence[xr.Dataset]) -> None:
    """Median evaluation loss against time: colours for the width, dashes for the polarity."""
    polarities = sorted({c.polarity for c in cells})
    for colour, over in _coloured(cells):
        for cell, rows in zip(cells, results, strict=True):
            if cell.over == over:
                dash = DASHES[polarities.index(cell.polarity) % len(DASHES)]
                axes.semilogy(
                    rows["epoch"].values, np.median(rows["loss"].values, axis=0), color=colour, ls=dash, lw=1.3
                )
    for i, polarity in enumerate(polarities if len(polarities) > 1 else []):
        axes.plot([], [], color="0.3", ls=DASHES[i % len(DASHES)], lw=1.3, label=f"p = {polarity:g}")
    axes.set(xlabel="epoch", ylabel="½ mean ‖f* - f‖²", title="Evaluation loss, median over seeds")
    if len(polarities) > 1:
        axes.legend(fontsize=8)


def l_shape(axes: Any, cell: Experiment, rows: xr.Dataset) -> None:
    """Fig. 7 of Tian 2020: every student's best correlation and fan-out norm at the end; seeds in colours."""
    best, norms = rows["best_of_student_1"].values[:, -1], rows["fan_out_1"].values[:, -1]
    for i, (x, y) in enumerate(zip(best, norms, strict=True)):
        axes.plot(x, y, ".", color=COLOURS[i % len(COLOURS)], ms=4, alpha=0.6, mew=0)
    axes.set(
        xlabel="best correlation with a teacher",
        ylabel="fan-out norm",
        title=f"Students, {cell.over:g}x, p = {cell.polarity:g}",
    )
    axes.set_xlim(min(0.0, float(best.min())) - 0.02, 1.03)
