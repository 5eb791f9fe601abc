"""The figure of a growing student: loss, norms, outgoing weights and correlations against its width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from understudy.plots.style import COLOURS, house_style


def grow(stages: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> Any:
    """Loss, norms, outgoing weights and correlations against the width; returns the figure.

    `stages` are those of a growth in JSON types; `about` names `activation` and `teacher`.
    """
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=(11.5, 3.4), layout="constrained")
        figure.suptitle(
            f"{about['activation']}, {about['teacher']} teachers: growing by splitting the averaging neuron",
            fontsize=12,
        )
        loss, norm, weight, correlation = figure.subplots(1, 4)
        widths = [s["width"] for s in stages]
        loss.plot(widths, [s["loss"] for s in stages], "o-", color="black")
        loss.set(ylabel="loss")
        for ax, key, name in ((norm, "norms", "norm"), (weight, "outgoing", "outgoing weight")):
            ax.plot(widths, [s[key][s["averaging"]] for s in stages], "o-", color=COLOURS[0], label="averaging")
            others = [(s["width"], s[key][i]) for s in stages for i in range(s["width"]) if i != s["averaging"]]
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
        return figure
