"""The figure of a fit: losses by seed, the structure of each distinct solution, and the flow of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.plots.neurons import order_of_neurons
from understudy.plots.style import COLOURS, colours, house_style, new_figure, show_as_equal
from understudy.results import Runs
from understudy.results.table import Line

if TYPE_CHECKING:
    import xarray as xr

MOST_SOLUTIONS = 3


def fit(runs: Runs, ax: Any = None, *, rows: xr.Dataset | None = None) -> Any:
    """Losses by seed, the correlations of each distinct solution, and the flow of one run; returns the figure.

    With `ax` only the losses are drawn, on these axes, because the number of the other panels depends on the runs.
    Tasks without students and teachers have losses only. `rows`: `runs.to_dataset()`, if it is there already.
    """
    rows, lines = runs.to_dataset() if rows is None else rows, runs.lines
    with house_style():
        if ax is not None or "student_teacher" not in rows:
            figure = ax.figure if ax is not None else new_figure(5.5, 4)
            _losses(figure.subplots() if ax is None else ax, rows, lines)
            return figure
        shown = lines[:MOST_SOLUTIONS]
        followed = np.isfinite(rows["loss_along"].values[lines[0].first]).sum() > 1
        figure = new_figure(11, 7.2 if followed else 3.8)
        figure.suptitle(_title(runs), fontsize=13)
        halves: Any = figure.subfigures(1 + followed, 1, squeeze=False)[:, 0]
        top = halves[0]
        panels = top.subplots(1, 1 + len(shown), width_ratios=[1.25, *[1] * len(shown)], squeeze=False)[0]
        _losses(panels[0], rows, lines)
        for panel, line, colour in zip(panels[1:], shown, colours(len(lines))[: len(shown)], strict=True):
            image = _correlations(panel, rows, line, colour)
        top.colorbar(image, ax=list(panels[1:]), label="correlation of student and teacher", shrink=0.9)
        if followed:
            _trajectories(halves[1], rows, lines[0])
        return figure


def _title(runs: Runs) -> str:
    about = dict(runs.about)
    head = f"{about.get('activation', '')}: {about.get('students')} students, {about.get('teachers')} teachers"
    return f"{head}, d = {about.get('dim')}, {len(runs)} seed{'s' * (len(runs) != 1)}"


def _losses(axes: Any, rows: xr.Dataset, lines: list[Line]) -> None:
    for line, colour in zip(lines, colours(len(lines)), strict=True):
        seeds = rows["seed"].values[list(line.rows)]
        losses = rows["loss"].values[list(line.rows)]
        marker = "o" if line.kind == "minimum" else "X"
        axes.plot(seeds, losses, marker, color=colour, label=f"{line.label}, {line.kind} ({line.count})")
        if line.predicted_loss is not None:
            axes.axhline(line.predicted_loss, color=colour, lw=0.8, ls="--")
    axes.set(xlabel="seed", ylabel="loss at the end", title="Where the seeds end (dashed: theory)")
    axes.xaxis.get_major_locator().set_params(integer=True)
    if rows.sizes["seed"] == 1:
        axes.set_xlim(rows["seed"].values[0] - 1, rows["seed"].values[0] + 1)
    show_as_equal(axes, rows["loss"].values)
    axes.legend(loc="best", fontsize=8.5)


def _correlations(axes: Any, rows: xr.Dataset, line: Line, colour: Any) -> Any:
    correlation = rows["student_teacher"].values[line.first]
    sign = np.sign(correlation[np.arange(len(correlation)), np.abs(correlation).argmax(axis=1)])
    students, teachers = order_of_neurons(correlation)
    shown = (sign[:, None] * correlation)[np.ix_(students, teachers)]
    image = axes.imshow(shown, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
    axes.grid(False)
    outgoing = rows["outgoing"].values[line.first].reshape(len(students), -1)[students]
    norms = rows["norm"].values[line.first][students]
    if outgoing.shape[1] == 1 and len(students) <= 16:
        names = [f"a {abs(a):.2f}, r {r:.2f}" for a, r in zip(outgoing[:, 0], norms, strict=True)]
        axes.set_yticks(range(len(students)), names, fontsize=8)
    else:
        axes.set_yticks([])
    axes.set(xlabel="teacher (reordered)", xticks=[])
    axes.set_title(
        f"{line.label}\nloss {line.loss:.6g}, {line.count} of {rows.sizes['seed']}", color=colour, fontsize=10
    )
    return image


def _trajectories(figure: Any, rows: xr.Dataset, line: Line) -> None:
    """Loss, norms, outgoing weights and correlations of the run that represents the most frequent solution."""
    left, middle, right = figure.subplots(1, 3)
    times = rows["time"].values
    end = float(rows["flow_time"].values[line.first])
    inside = (times <= end) & np.isfinite(rows["loss_along"].values[line.first])
    t = times[inside]
    seed = int(rows["seed"].values[line.first])
    figure.suptitle(f"The flow of seed {seed} to {line.label}", fontsize=11)
    left.loglog(t, np.maximum(rows["loss_along"].values[line.first][inside], 1e-16), color="black")
    left.set(xlabel="time", ylabel="loss")
    norms = rows["norm_along"].values[line.first][inside]
    outgoing = rows["outgoing_along"].values[line.first][inside].reshape(len(t), norms.shape[1], -1)
    for i in range(norms.shape[1]):
        colour = COLOURS[i % len(COLOURS)]
        middle.semilogx(t, norms[:, i], color=colour, label=r"$\|w_i\|$" if i == 0 else None)
        middle.semilogx(t, np.abs(outgoing[:, i, 0]), color=colour, ls=":", label="$|a_i|$" if i == 0 else None)
    middle.set(xlabel="time", ylabel="norm and outgoing weight")
    middle.legend(fontsize=9)
    u = rows["student_teacher_along"].values[line.first][inside]
    for i in range(u.shape[1]):
        for j in range(u.shape[2]):
            right.semilogx(t, u[:, i, j], color=COLOURS[i % len(COLOURS)], lw=1.0, alpha=0.8)
    right.set(xlabel="time", ylabel="student-teacher correlations", ylim=(-1.05, 1.05))
    right.set_title("one colour per student, one line per teacher", fontsize=9)
