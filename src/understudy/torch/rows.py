"""What makes each neuron, as one row: the weights and bias of its layer, with a BatchNorm that follows at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from understudy.torch.edit import get_reading, get_tensor
from understudy.torch.graph import Call, Graph, Slot, Space
from understudy.torch.rules import HOMOGENEOUS, ONE_TO_ONE


@dataclass
class Pieces:
    """The rows that make each neuron, and whether parallel rows give proportional neurons."""

    rows: np.ndarray
    homogeneous: bool

    def compared(self, among: Sequence[int] | slice = slice(None)) -> np.ndarray:
        """Rows that are parallel where neurons are one: as they are, or with their lengths counted as one more entry.

        `among`: the neurons whose longest row sets the size of that entry.
        """
        if self.homogeneous:
            return self.rows
        size = np.max(np.linalg.norm(self.rows[among], axis=1), initial=1e-300)
        return np.concatenate([self.rows, np.full((len(self.rows), 1), size)], axis=1)


def norm_scale(model: nn.Module, call: Call) -> tuple[torch.Tensor, torch.Tensor] | None:
    """γ / √(v + ε) and β of the BatchNorm that follows a call at once, or None."""
    if call.mean is None:
        return None
    path = call.mean.rpartition(".")[0]
    module = model.get_submodule(path)
    variance = get_tensor(model, f"{path}.running_var").double()
    gamma = getattr(module, "weight", None)
    beta = getattr(module, "bias", None)
    scale = (torch.ones_like(variance) if gamma is None else gamma.double()) / (
        variance + getattr(module, "eps", 1e-5)
    ).sqrt()
    return scale.detach(), (torch.zeros_like(variance) if beta is None else beta.double()).detach()


def maker_rows(model: nn.Module, call: Call) -> torch.Tensor:
    """(w, b) of each neuron that a call makes, a BatchNorm that follows at once included: (n, d + 1)."""
    weight = get_reading(model, call).flatten(1).double()
    bias = torch.zeros(len(weight), dtype=torch.float64, device=weight.device)
    if call.bias is not None:
        bias = get_tensor(model, call.bias).detach().double()
    if (norm := norm_scale(model, call)) is not None:
        assert call.mean is not None
        weight = weight * norm[0][:, None]
        bias = norm[0] * (bias - get_tensor(model, call.mean).double()) + norm[1]
    return torch.cat([weight, bias[:, None]], dim=1).cpu()


def hidden_slots(graph: Graph, space: Space) -> list[Slot]:
    """Values per neuron that the rows do not show: a depthwise convolution, a BatchNorm further on, slopes, scales."""
    shown = {name for call in graph.calls for name in (call.weight, call.bias) if name}
    norms = {call.mean.rpartition(".")[0] for call in graph.makers(space.index) if call.mean is not None}
    return [
        slot
        for slot in graph.slots
        if slot.name not in shown
        and slot.name.rpartition(".")[0] not in norms
        and any(part == space.index for part, _ in slot.layout)
    ]


def pieces_of(model: nn.Module, graph: Graph, space: Space) -> Pieces | None:
    """The rows of all layers that make this space side by side; None if equal rows need not give equal neurons.

    Values per neuron that rows do not show are appended to them: equal neurons have equal values there too.
    """
    rows = [maker_rows(model, call) for call in graph.makers(space.index)]
    hidden = hidden_slots(graph, space)
    functions = graph.functions.get(space.index, set())
    if functions - HOMOGENEOUS - ONE_TO_ONE:
        return None
    for slot in hidden:
        owners = graph.owners(slot.layout, space.index)
        mine = torch.argsort(owners, stable=True)[int((owners < 0).sum()) :]
        values = get_tensor(model, slot.name).detach().double().cpu().movedim(slot.axis, 0)
        rows.append(values[mine].reshape(space.size, -1))
    return Pieces(torch.cat(rows, dim=1).numpy(), not hidden and functions <= HOMOGENEOUS)
