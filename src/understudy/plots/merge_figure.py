"""The figure of a merge: which neurons are aligned, how many are left, and how much the function changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.networks import Deep, TwoLayer
from understudy.plots.style import COLOURS, given_axes, house_style, new_figure
from understudy.surgery.merge import LayerMerge, Merged

MOST_TICKS = 30


def merge(before: TwoLayer | Deep, merged: Merged, activation: str, axes: Any = None) -> Any:
    """Alignments, counts and outputs before and after a merge, on three axes; returns the figure."""
    layers = merged.report.layers
    chosen = max(layers, key=lambda layer: layer.before - layer.after)
    with house_style():
        if axes is None:
            figure = new_figure(11, 4.4)
            figure.suptitle(
                f"{activation}: {merged.report.before} neurons → {merged.report.after}, squared norm "
                f"{merged.report.norm_before:.4g} → {merged.report.norm_after:.4g}",
                fontsize=12,
            )
            axes = figure.subplots(1, 3, width_ratios=[1.2, 0.8, 1])
        left, middle, right = given_axes(axes, 3)
        _alignments(left, before, chosen)
        _counts(middle, layers)
        _outputs(right, before, merged, activation)
        return left.figure


def _alignments(axes: Any, network: TwoLayer | Deep, layer: LayerMerge) -> None:
    """Cosines between the neurons of the layer that lost most; groups are adjacent, and removed neurons come last."""
    rows = network.hidden(layer.layer - 1).rows
    joined = [i for group in layer.groups for i in group]
    single = [i for i in range(layer.before) if i not in joined and i not in layer.removed]
    order = [*joined, *single, *(i for i in layer.removed if i not in joined)]
    lengths = np.linalg.norm(rows, axis=1)
    unit = rows / np.where(lengths > 0, lengths, 1.0)[:, None]
    image = axes.imshow((unit @ unit.T)[np.ix_(order, order)], cmap="PuOr_r", vmin=-1, vmax=1)
    axes.grid(False)
    if len(order) <= MOST_TICKS:
        axes.set_xticks(range(len(order)), order, fontsize=7, rotation=90)
        axes.set_yticks(range(len(order)), order, fontsize=7)
    start = 0
    for group in layer.groups:
        low, size = start - 0.5, len(group)
        axes.plot(
            [low, low + size, low + size, low, low], [low, low, low + size, low + size, low], color="black", lw=1.2
        )
        start += size
    axes.set(xlabel="neuron, in order of groups", ylabel="neuron", title=f"Layer {layer.layer}: cosines, groups framed")
    axes.figure.colorbar(image, ax=axes, shrink=0.85)


def _counts(axes: Any, layers: tuple[LayerMerge, ...]) -> None:
    place = np.arange(len(layers))
    for shift, values, colour, name in (
        (-0.2, [layer.before for layer in layers], COLOURS[4], "before"),
        (0.2, [layer.after for layer in layers], COLOURS[0], "after"),
    ):
        bars = axes.bar(place + shift, values, 0.4, color=colour, label=name)
        axes.bar_label(bars, fontsize=9)
    axes.set_xticks(place, [str(layer.layer) for layer in layers])
    axes.margins(y=0.25)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="x", visible=False)
    axes.set(xlabel="hidden layer", ylabel="neurons", title="Neurons")
    axes.legend(fontsize=9, loc="upper right", ncols=2)


def _outputs(axes: Any, before: TwoLayer | Deep, merged: Merged, activation: str) -> None:
    """Outputs of both networks on standard normal inputs, whatever kind of merge it was."""
    import jax.numpy as jnp

    x = jnp.asarray(np.random.default_rng(1).normal(size=(400, before.hidden(0).incoming.shape[1])))
    f, g = (np.asarray(n(x, activation)).ravel() for n in (before, merged.network))
    ends = [min(f.min(), g.min()), max(f.max(), g.max())]
    axes.plot(ends, ends, color="black", lw=1)
    axes.plot(f, g, ".", ms=4, alpha=0.5, color=COLOURS[1])
    title = "Outputs" if merged.report.inputs == "probes" else "Outputs off the data"
    axes.set(xlabel="before", ylabel="after", title=f"{title}, standard normal inputs")
