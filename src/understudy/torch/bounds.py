"""How much outputs can change, from the weights alone: products of norms along a chain."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from understudy.torch.edit import get_tensor
from understudy.torch.graph import Call, Graph
from understudy.torch.rows import hidden_slots, maker_rows
from understudy.torch.rules import LIPSCHITZ

EXACT_NORM = 1024
"""Rows or columns up to which the largest singular value is computed. Above, √(‖W‖₁ ‖W‖_∞) or the Frobenius norm
bounds it."""


def output_bound(model: nn.Module, graph: Graph, steps: Sequence[tuple[Call, float]], after: nn.Module) -> float | None:
    """A number B with ‖f_before(x) - f_after(x)‖ ≤ B max(‖x‖, 1), or None if the network is not a known chain.

    Let layer l have operator norm at most N_l and bias b_l, and let everything between layers have Lipschitz constant
    at most 1 and fix zero. Then ‖h_l‖ ≤ N_l ‖h_{l-1}‖ + ‖b_l‖. A merge in layer l moves what its reader computes by at
    most gap_l · (‖h_{l-1}‖ + 1), where gap_l is the sum over merged neurons of ‖reading weights‖ · ‖row_j - α row_i‖.
    The layers after the reader multiply this by their norms.
    """
    if not is_chain(graph):
        return None
    gaps = {call.weight: gap for call, gap in steps}
    if not any(gaps.values()):
        return 0.0
    total, size = 0.0, 1.0
    for place, call in enumerate(graph.calls):
        gap = gaps.get(call.weight, 0.0)
        if gap:
            spread = math.sqrt(
                _patch(model, call) * math.prod(call.output_shape[2:])
            )  # norm of all patches; one constant per output
            later = math.prod(max(_norm(m, c) for m in (model, after)) for c in graph.calls[place + 2 :])
            reader = graph.calls[place + 1]
            total += gap * spread * math.sqrt(_patch(model, reader)) * (size + 1.0) * later
        size = max(_norm(m, call) * size + _bias(m, call) for m in (model, after))
    return total


def is_chain(graph: Graph) -> bool:
    """Each layer reads what the previous layer makes, with functions of Lipschitz constant 1 between."""
    for before, call in zip(graph.calls[:-1], graph.calls[1:], strict=True):
        if call.inputs is None or len(call.inputs) != 1 or call.inputs[0][0] != before.outputs[0][0]:
            return False
        space = graph.spaces[call.inputs[0][0]]
        if not graph.functions.get(space.index, set()) <= LIPSCHITZ or hidden_slots(graph, space):
            return False
    return bool(graph.calls) and len({call.weight for call in graph.calls}) == len(graph.calls)


def _patch(model: nn.Module, call: Call) -> int:
    return math.prod(get_tensor(model, call.weight).shape[2:])


def _norm(model: nn.Module, call: Call) -> float:
    """At least the operator norm: every input entry is in at most `patch` patches."""
    rows = maker_rows(model, call)[:, :-1]
    if min(rows.shape) <= EXACT_NORM:
        size = float(torch.linalg.matrix_norm(rows, 2))
    else:
        size = min(float(rows.norm()), float((rows.abs().sum(0).max() * rows.abs().sum(1).max()).sqrt()))
    return size * math.sqrt(_patch(model, call))


def _bias(model: nn.Module, call: Call) -> float:
    return float(maker_rows(model, call)[:, -1].norm()) * math.sqrt(math.prod(call.output_shape[2:]))
