"""`compress`: a smaller network that computes nearly the same, without labels and without training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from understudy.torch.batches import Inputs, Sample, gather
from understudy.torch.budget import ErrorBudget, Widths, check_target, count_after, given_widths, share_of
from understudy.torch.curvature import Loss
from understudy.torch.edit import same_modes
from understudy.torch.graph import Graph
from understudy.torch.measure import change, cost, outputs_of
from understudy.torch.model import free_spaces, prepare
from understudy.torch.progress import ProgressBar
from understudy.torch.result import Compressed, CompressionReport, LayerWidth
from understudy.torch.shrink import CHOOSERS, shrink
from understudy.torch.synthetic import normal_inputs
from understudy.torch.tune import distill, finetune

SYNTHETIC, SYNTHETIC_IMAGES = 4000, 400
"""Synthetic inputs: vectors, and images or sequences, each of which gives many patches."""
HELD_OUT = 10
"""One input in ten is kept apart for the report."""


def compress(
    model: nn.Module,
    data: Any = None,
    *,
    widths: Sequence[int] | Mapping[str, int] | None = None,
    keep: float | None = None,
    params: float | None = None,
    macs: float | None = None,
    loss_increase: float | None = None,
    example: Any = None,
    samples: int | None = None,
    select: str = "elimination",
    epochs: int = 0,
    seconds: float | None = None,
    loss: Loss | None = None,
    progress: bool | None = None,
) -> Compressed:
    """A narrower copy of a trained network, of the same layer classes.

    Neurons are chosen by backward elimination on second moments of the activations. The weights of the layers that read
    them are refitted by least squares to the original's outputs. Coupled layers (residual sums) are narrowed together.
    The given model is not changed.

    **Arguments**

    - `model`: any `torch.nn.Module`. Layers that cannot be narrowed are left alone; `report.notes` says which and why.
    - `data`: inputs without labels, as a tensor, array, pair (inputs, labels), Dataset or DataLoader. A model with
      several inputs takes ((x1, x2), labels), or ((x1, x2), None). Labels are used for the report, and for `loss`.
      Without data, normal inputs are drawn (for images and sequences: noise at all scales). This works less well, and
      the report says so.
    - exactly one of `widths` (per layer that can change, in order, or a dict by path), `keep` (share of neurons of
      every layer), `params` or `macs` (a number, or a share below 1; one error for all layers decides the widths),
      `loss_increase` (the largest increase of the cross-entropy on held-out inputs for class labels, otherwise the
      largest relative mean squared change of outputs).
    - `example`: a few inputs, needed where there are no data and the first layer is a convolution.
    - `samples`: how many inputs the selection and the refit use; 10,000, or 1,000 for networks with convolutions,
      unless given.
    - `select`: `"elimination"`, or `"qr"` (QR with pivots of the activations). QR is faster for very wide layers, and
      loses more accuracy at small widths.
    - `epochs`, `seconds`: train the result on all data for this long, or until held-out inputs stop improving; not at
      all unless given. It learns the original's outputs, or the labels if `loss` is given, a function of outputs and
      labels.
    - `progress`: show a progress bar; by default in terminals only.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> smaller = compress(net, torch.randn(100, 4), widths=[6])
    >>> smaller.model[0].out_features
    6
    """
    targets = {"widths": widths, "keep": keep, "params": params, "macs": macs, "loss_increase": loss_increase}
    if sum(value is not None for value in targets.values()) != 1:
        given = [name for name, value in targets.items() if value is not None]
        raise ValueError(f"Give exactly one of {', '.join(targets)}; received {', '.join(given) or 'none'}.")
    if select not in CHOOSERS:
        raise ValueError(f"select is one of {', '.join(CHOOSERS)}; received {select!r}.")
    original, graph, inputs = prepare(model, data, example)
    free_spaces(graph)
    sample, held_out, kind = _split(original, graph, data, inputs, samples)
    with ProgressBar("choosing widths", len(graph.calls), progress) as bar:
        chosen = _widths(original, graph, sample, held_out, targets)
        bar.tick("narrowing and refitting layers", 0)
        small, after, kept = shrink(original, graph, sample, chosen, choose=CHOOSERS[select], tick=bar.tick)
    if epochs or seconds:
        more = sample if data is None else _not_held_out(data, original, len(sample) + len(held_out))
        small = _tune(small, original, more, loss, epochs or math.inf, seconds, progress)
    layers = tuple(
        LayerWidth(
            space.path,
            space.size,
            after.spaces[space.index].size,
            tuple(kept.get(space.index, torch.arange(space.size)).tolist()),
        )
        for space in graph.free
    )
    report = CompressionReport(
        layers,
        cost(original, inputs),
        cost(small, inputs),
        change(original, small, held_out, kind),
        graph.notes("not narrowed"),
    )
    return Compressed(same_modes(small, model), report, inputs)


def _not_held_out(data: Any, model: nn.Module, split: int) -> Sample:
    """All data except the tenth that `_split` holds out among its first `split` inputs."""
    everything = gather(data, model)
    count = torch.arange(len(everything))
    return everything.take((count % HELD_OUT != HELD_OUT - 1) | (count >= split))


def _tune(
    small: nn.Module,
    original: nn.Module,
    sample: Sample,
    loss: Loss | None,
    epochs: float,
    seconds: float | None,
    progress: bool | None,
) -> nn.Module:
    """Train the narrowed network on the original's outputs, or on labels."""
    if loss is None:
        return distill(small, original, sample, epochs=epochs, seconds=seconds, progress=progress)
    return finetune(small, loss, sample, epochs=epochs, seconds=seconds, progress=progress)


def _split(
    model: nn.Module, graph: Graph, data: Any, example: Inputs, samples: int | None
) -> tuple[Sample, Sample, str]:
    """Inputs to work with, inputs for the report, and what kind they are."""
    if data is None:
        vectors = all(x.ndim == 2 for x in example)
        return (
            normal_inputs(model, example, samples or (SYNTHETIC if vectors else SYNTHETIC_IMAGES)),
            normal_inputs(model, example, 200, seed=1),
            "synthetic",
        )
    limit = samples or (10_000 if all(call.kind == "linear" for call in graph.calls) else 1_000)
    sample = gather(data, model, limit)
    tenth = torch.arange(len(sample)) % HELD_OUT == HELD_OUT - 1
    if not bool(tenth.any()):
        return sample, sample, "the same"
    return sample.take(~tenth), sample.take(tenth), "held-out"


def _widths(model: nn.Module, graph: Graph, sample: Sample, held_out: Sample, targets: Mapping[str, Any]) -> Widths:
    """Widths from whichever target was given."""
    if targets["widths"] is not None:
        return given_widths(graph, targets["widths"])
    if targets["keep"] is not None:
        return share_of(graph, targets["keep"])
    budget = ErrorBudget(model, graph, sample)
    if targets["loss_increase"] is not None:
        most = targets["loss_increase"]
        if not most > 0:
            raise ValueError(f"loss_increase is positive; received {most}.")
        return budget.largest(lambda w: loss_gap(model, shrink(model, graph, sample, w)[0], held_out) <= most)
    name = "params" if targets["params"] is not None else "macs"
    place = 0 if name == "params" else 1
    least = count_after(model, graph, {space.index: space.blocks for space in graph.free})[place]
    wanted = check_target(name, targets[name], count_after(model, graph, {})[place], least)
    found = budget.smallest(lambda w: count_after(model, graph, w)[place] <= wanted)
    assert found is not None, "one neuron per layer fits"
    return found


def loss_gap(before: nn.Module, after: nn.Module, sample: Sample) -> float:
    """Increase of the cross-entropy for class labels; without them the relative mean squared change of outputs."""
    f, g = outputs_of(before, sample), outputs_of(after, sample)
    labels = sample.labels
    if labels is not None and not labels.is_floating_point() and f.ndim == 2 and labels.ndim == 1:
        labels = labels.cpu().long()
        return float(nn.functional.cross_entropy(g, labels) - nn.functional.cross_entropy(f, labels))
    return float(((f - g) ** 2).sum() / (f**2).sum().clamp(min=1e-300))
