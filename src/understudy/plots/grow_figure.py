"""The figure of a growing student: loss, norms, outgoing weights and correlations against its width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from understudy.plots.style import COLOURS, given_axes, house_style, new_figure, show_as_equal


def grow(stages: Sequence[Mapping[str, Any]], about: Mapping[str, Any], axes: Any = None) -> Any:
    """Loss, norms, outgoing weights and correlations against the width, on four axes; returns the figure.

    `stages` are those of a growth in JSON types; `about` has `activation`, and `teacher` if there is one.
    """
    with house_style():
        if axes is None:
            figure = new_figure(11.5, 3.4)
            teachers = f", {about['teacher']} teachers" if "teacher" in about else ""
            figure.suptitle(f"{about['activation']}{teachers}: growing by splitting the averaging neuron", fontsize=12)
            axes = figure.subplots(1, 4)
        loss, norm, weight, correlation = given_axes(axes, 4)
        widths = [s["width"] for s in stages]
        loss.plot(widths, [s["loss"] for s in stages], "o-", color="black")
        loss.set(ylabel="loss")
        for ax, key, name in ((norm, "norms", "norm"), (weight, "outgoing", "outgoing weight")):
            ax.plot(widths, [_size(s[key][s["averaging"]]) for s in stages], "o-", color=COLOURS[0], label="averaging")
            others = [(s["width"], _size(s[key][i])) for s in stages for i in range(s["width"]) if i != s["averaging"]]
            if others:
                ax.plot(*zip(*others, strict=True), "s", color=COLOURS[1], ms=4.5, label="others")
            ax.set(ylabel=name)
        norm.legend(fontsize=8)
        pairs = [
            (s["width"], u)
            for s in stages
            for i, u in enumerate(s["correlations_with_averaging"])
            if i != s["averaging"]
        ]
        if pairs:
            correlation.plot(*zip(*pairs, strict=True), "s", color=COLOURS[1], ms=4.5)
        correlation.set(ylabel="correlation with the average")
        for ax in (loss, norm, weight, correlation):
            ax.set_xlabel("neurons")
            ax.set_xticks(widths)
            show_as_equal(ax, [y for line in ax.lines for y in line.get_ydata()] or [0.0])
        return loss.figure


def _size(value: float | Sequence[float]) -> float:
    """A number, or the norm of the outgoing weights to several outputs."""
    return math.hypot(*value) if isinstance(value, Sequence) else value
