"""The bifurcation diagram of a continuation: branches over the parameter, stable or not, and the special points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from understudy.branches.result import Branch, Continuation
from understudy.plots.style import colours, house_style

MARKERS = {"fold": "s", "pitchfork": "D", "transcritical": "X", "multiple": "P", "undecided": "$?$"}

Measure = Callable[[np.ndarray], float]


def branches(result: Continuation, ax: Any = None, *, measure: Measure | None = None, label: str | None = None) -> Any:
    """Draw each branch over the parameter: solid where it is a minimum, dashed where it is a saddle; returns the
    figure.

    `measure`: a function from a flat point to the number that is drawn. Default: the loss. `label`: the name of that
    number. `ax`: the axes to draw on.
    """
    from matplotlib.figure import Figure

    with house_style():
        figure = ax.figure if ax is not None else Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.subplots() if ax is None else ax
        for number, colour in enumerate(colours(len(result.branches))):
            _draw(axes, result.branches[number], colour, measure, number)
        seen = set()
        for special in result.special_points:
            height = special.loss if measure is None else measure(special.point)
            name = special.kind if special.kind not in seen else None
            seen.add(special.kind)
            axes.plot(
                special.parameter, height, MARKERS[special.kind], color="black", ms=7, mew=0, zorder=4, label=name
            )
        axes.plot([], [], "-", color="grey", label="minimum")
        axes.plot([], [], "--", color="grey", label="saddle")
        axes.set(xlabel=result.parameter, ylabel=label or ("loss" if measure is None else "measure"))
        axes.legend(fontsize=8)
        return figure


def _draw(axes: Any, branch: Branch, colour: Any, measure: Measure | None, number: int) -> None:
    heights = branch.losses if measure is None else np.array([measure(point) for point in branch.points])
    for i, (rows, stable) in enumerate(_pieces(branch)):
        axes.plot(
            branch.parameters[rows],
            heights[rows],
            "-" if stable else "--",
            color=colour,
            label=None if i else f"branch {number}",
        )


def _pieces(branch: Branch) -> Iterator[tuple[slice, bool]]:
    """Runs of rows with one stability. A piece ends on the first row of the next one, so that there are no gaps."""
    stable = branch.index == 0
    begin = 0
    for i in range(1, len(stable)):
        if stable[i] != stable[begin]:
            # The row before a change is the special point, so the new piece begins there.
            yield slice(begin, i), bool(stable[begin])
            begin = i - 1 if i - 1 > begin else i
            stable = stable.copy()
            stable[begin] = stable[i]
    yield slice(begin, len(stable)), bool(stable[-1])
