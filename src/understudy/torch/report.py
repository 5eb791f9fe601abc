"""`report`: what is redundant in a trained network, layer by layer, from one pass over data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from understudy.rays import aligned_groups, groups_of_cosines
from understudy.tables import Printed
from understudy.torch.batches import Inputs, stream
from understudy.torch.edit import get_tensor, tensors_in
from understudy.torch.graph import Call, Graph, Space
from understudy.torch.model import free_spaces, prepare
from understudy.torch.moments import Moments, collect
from understudy.torch.progress import ProgressBar
from understudy.torch.rows import pieces_of
from understudy.torch.select import EXACT, EXACT_RIDGE, Reader
from understudy.torch.shrink import error_curve, readers_of
from understudy.torch.symmetric import part_of, pivots_of, unit_sized

NOISE = 0.01
EIGENVALUES = 1000
"""Neurons up to which the rank of a layer is counted by eigenvalues."""


@dataclass(frozen=True)
class LayerReport:
    """One layer whose width can change.

    **Attributes**

    - `path`, `neurons`: where, and how many.
    - `dead`: neurons that are zero on all inputs; `constant`: those with one other value on all inputs.
    - `copies`: groups of neurons that are proportional (or equal) for every input, by their weights; `rays`: those that
      are proportional on the data.
    - `rank`: directions that carry more than 1e-6 of the largest singular value s of the activations;
      `effective_rank`: (Σ s²)² / Σ s⁴.
    - `free_width`: fewest neurons with the same outputs on these inputs, after a refit of what follows.
    - `curve`: entry k - 1 is the error with k neurons and a refit, as a share of the scatter of what follows.
    - `sensitivity`: relative change of the model's outputs per relative change of what follows this layer.
    - `step`: widths are multiples of it, the number of groups of a convolution that makes or reads the neurons.
    """

    path: str
    neurons: int
    dead: tuple[int, ...]
    constant: tuple[int, ...]
    copies: tuple[tuple[int, ...], ...]
    rays: tuple[tuple[int, ...], ...]
    rank: int
    effective_rank: float
    free_width: int
    curve: tuple[float, ...]
    sensitivity: float
    step: int = 1

    def width_for(self, error: float) -> int:
        """The least width whose error is at most `error`."""
        least = next(k for k, value in enumerate(self.curve, start=1) if value <= error)
        return -(-least // self.step) * self.step


@dataclass(frozen=True)
class Report(Printed):
    """All layers whose width can change, and why others cannot. Prints as a table; `figure` draws the curves."""

    layers: tuple[LayerReport, ...]
    inputs: int
    notes: tuple[str, ...] = ()
    error: float = 0.01

    def suggest(self, error: float = 0.01) -> dict[str, int]:
        """Widths for `compress(model, data, widths=…)` at which no layer makes a larger error."""
        if not error >= 0:
            raise ValueError(f"error is a share, at least 0; received {error}.")
        return {layer.path: layer.width_for(error) for layer in self.layers}

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        shown = f"{self.error:.0%}"
        heads = ["layer", "neurons", "dead", "const", "copies", "rays", "rank", "eff.", "free", shown, "sens."]
        rows = [
            [
                layer.path,
                str(layer.neurons),
                str(len(layer.dead)),
                str(len(layer.constant)),
                str(sum(len(group) - 1 for group in layer.copies)),
                str(sum(len(group) - 1 for group in layer.rays)),
                str(layer.rank),
                f"{layer.effective_rank:.1f}",
                str(layer.free_width),
                str(layer.width_for(self.error)),
                f"{layer.sensitivity:.2g}",
            ]
            for layer in self.layers
        ]
        return heads, rows

    def words(self) -> list[str]:
        """What the columns mean, and which layers are left out."""
        return [
            f"{self.inputs:,} inputs. copies, rays: neurons beyond the first that are proportional for every input, on "
            f"these inputs. rank, eff.: of the activations. free, {self.error:.0%}: width with the same outputs here, "
            "and with that error, after a refit. sens.: relative change of outputs per relative change of what follows "
            "the layer.",
            *self.notes,
        ]

    def figure(self, stem: str | Path | None = None, ax: Any = None) -> Any:
        """Error against width, one line per layer; on your own axes, and saved as `stem`.png and .svg, if given."""
        from understudy import plots

        drawn = plots.curves([(layer.path, layer.curve) for layer in self.layers], ax)
        if stem is not None:
            plots.save(drawn, stem)
        return drawn


def report(model: nn.Module, data: Any, *, error: float = 0.01, progress: bool | None = None) -> Report:
    """What is redundant in a network, from one pass over `data`; nothing is changed.

    **Arguments**

    - `model`: any `torch.nn.Module`.
    - `data`: a tensor, array, pair (inputs, labels), Dataset or DataLoader; all of it is read once, batch by batch.
    - `error`: the error for which the table suggests a width.
    - `progress`: show a progress bar; by default in terminals only.

    >>> _ = torch.manual_seed(0)
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> with torch.no_grad():
    ...     _ = net[0].bias[3].fill_(-100.0)
    >>> report(net, torch.randn(100, 4)).layers[0].dead
    (3,)
    """
    ready, graph, _ = prepare(model, data)
    free = free_spaces(graph)
    calls = {call.weight: call for space in free for call in graph.readers(space.index)}
    extremes = Extremes(graph)
    count, first = 0, None

    total = _length(data)
    with ProgressBar("reading inputs", total, progress) as bar:

        def batches() -> Any:
            nonlocal count, first
            for x, _ in stream(data, ready):
                first = tuple(part[:256] for part in x) if first is None else first
                count += len(x[0])
                bar.tick(steps=len(x[0]))
                yield x

        moments = collect(ready, ready, list(calls.values()), batches(), total=total, also=extremes.add)
    assert first is not None
    layers = []
    with ProgressBar("layers", len(free), progress) as bar:
        for space in free:
            layers.append(_layer(ready, graph, space, moments, extremes, first))
            bar.tick()
    return Report(tuple(layers), count, graph.notes("not examined"), error)


def _length(data: Any) -> int:
    """About how many inputs there are."""
    sized: Any = getattr(data, "dataset", data)
    while isinstance(sized, tuple):  # (inputs, labels), ((x1, x2), labels)
        sized = sized[0]
    try:
        return max(len(sized), 1)
    except TypeError:
        return 10_000


class Extremes:
    """Least and largest value of every neuron as the layers that follow read it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.low = {s.index: torch.full((s.size,), torch.inf, dtype=torch.float64) for s in graph.free}
        self.high = {s.index: torch.full((s.size,), -torch.inf, dtype=torch.float64) for s in graph.free}

    def add(self, call: Call, x: torch.Tensor) -> None:
        """Count one batch in."""
        assert call.inputs is not None
        flat = x.movedim(x.ndim - 1 if call.kind == "linear" else 1, 0).flatten(1)
        low, high = flat.amin(1).double().cpu(), flat.amax(1).double().cpu()
        for space in {s for s, _ in call.inputs} & set(self.low):
            owners = self.graph.owners(call.inputs, space)
            mine = owners >= 0
            self.low[space].scatter_reduce_(0, owners[mine], low[mine], "amin")
            self.high[space].scatter_reduce_(0, owners[mine], high[mine], "amax")


def _layer(
    model: nn.Module, graph: Graph, space: Space, moments: dict[str, Moments], extremes: Extremes, inputs: Inputs
) -> LayerReport:
    low, high = extremes.low[space.index], extremes.high[space.index]
    dead = (low == 0) & (high == 0)
    still = ~dead & (high - low <= 1e-7 * torch.maximum(low.abs(), high.abs()))
    reader = graph.readers(space.index)[0]
    assert reader.inputs is not None
    owners = graph.owners(reader.inputs, space.index)
    gram_of = moments[reader.weight].gram
    patch = (len(gram_of) - 1) // len(owners)
    places = torch.tensor([int((owners == i).nonzero()[0]) for i in range(space.size)]) * patch + patch // 2
    gram = part_of(gram_of, places)
    alive = (~dead & ~still).numpy()
    cosines = unit_sized(gram, gram.diagonal().clamp(min=1e-300).sqrt()).numpy()
    readers = readers_of(graph, space, moments)
    rank = rank_of(
        gram, readers[0] if reader.groups == 1 else None
    )  # before the curve, which need not ask again whether neurons are independent
    curve = error_curve(space, readers)
    return LayerReport(
        space.path, space.size, tuple(dead.nonzero().flatten().tolist()), tuple(still.nonzero().flatten().tolist()),
        tuple(_copies(model, graph, space)),
        tuple(g for g in groups_of_cosines(cosines, 1 - 5e-11, alive) if len(g) > 1),
        rank, float(gram.trace() ** 2 / (gram.norm() ** 2).clamp(min=1e-300)),
        space.at_least(next(k for k, e in enumerate(curve, start=1) if e <= EXACT * space.size)), tuple(curve),
        sensitivity(model, graph.readers(space.index), inputs), space.blocks,
    )  # fmt: skip


def rank_of(gram: torch.Tensor, reader: Reader | None = None) -> int:
    """Directions that carry more than 1e-6 of the largest singular value of the activations.

    Above EIGENVALUES neurons, Cholesky factorisations replace the eigenvalues, in a tenth of the time. The first may
    show that none is below the limit: the reader's G holds the same moments for neurons of unit size, and its least
    eigenvalue is at most that of `gram` over the least square of these sizes. The second counts pivots. It gives the
    same number unless eigenvalues lie near the limit.
    """
    if len(gram) <= EIGENVALUES:
        values = torch.linalg.eigvalsh(gram)
        return int((values > 1e-12 * values.max()).sum()) if float(values.max()) > 0 else 0
    least, smallest = 1e-12 * float(gram.norm()), float(gram.diagonal().min())
    if reader is not None and smallest > 0 and reader.exceeds(max(least / smallest, EXACT_RIDGE)):
        return len(gram)
    return pivots_of(gram, least)[1]


def _copies(model: nn.Module, graph: Graph, space: Space) -> list[tuple[int, ...]]:
    pieces = pieces_of(model, graph, space)
    if pieces is None:
        return []
    return [group for group in aligned_groups(pieces.compared(), tolerance=1e-6) if len(group) > 1]


class _Disturb(TorchFunctionMode):
    """Add noise of 1 % of the root mean square to what some calls compute."""

    def __init__(self, weights: set[int]) -> None:
        super().__init__()
        self.weights, self.draw = weights, torch.Generator().manual_seed(0)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        weight = args[1] if len(args) > 1 else (kwargs or {}).get("weight")
        if isinstance(weight, torch.Tensor) and id(weight) in self.weights and isinstance(result, torch.Tensor):
            noise = torch.randn(result.shape, generator=self.draw).to(result)
            return result + NOISE * result.square().mean().sqrt() * noise
        return result


def sensitivity(model: nn.Module, calls: list[Call], inputs: Inputs) -> float:
    """Relative change of the outputs over the relative size of a disturbance of what these calls compute."""
    with torch.no_grad():
        before = model(*inputs)
        with _Disturb({id(get_tensor(model, call.weight)) for call in calls}):
            after = model(*inputs)
    one, other = tensors_in(before)[0], tensors_in(after)[0]
    return float((one - other).norm() / one.norm().clamp(min=1e-30)) / NOISE
