"""Find the spaces of neurons of a network by recording one forward pass.

Every PyTorch function that the model's own code calls is seen with its tensors (a `TorchFunctionMode`), so any Python
in `forward` is allowed. Functions that treat neurons one by one carry a space along. Functions that are not known here
freeze the spaces they read. No rule is trusted blindly: `understudy.torch.edit.check_spaces` removes a neuron of every
space on trial and compares outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import lcm
from typing import Any

import torch
from torch import nn

from understudy.torch.edit import tensors_in
from understudy.torch.graph import FOREIGN, OUTPUTS, Call, Graph, Layout, Slot
from understudy.torch.recorder import Recorder, Value, path_of
from understudy.torch.rules import ELEMENTWISE, LAYERS, reshaped_axis


def trace(model: nn.Module, example: tuple[Any, ...]) -> Graph:
    """The graph of a model, from one forward pass on `example` (a tuple of arguments) in evaluation mode."""
    recorder = Recorder(model, RULES)
    with torch.no_grad(), recorder.watch_modules(), recorder:
        outputs = model(*example)
    for tensor in tensors_in(outputs):
        recorder.freeze(tensor, OUTPUTS)
    return recorder.finish()


# Rules: one per function that is not pointwise. Each gets the recorder, the result and the function's arguments.


def layer_call(
    rec: Recorder, result: torch.Tensor, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Value | None:  # fmt: skip
    """Linear, Conv1d, Conv2d: read one layout, make another."""
    spatial = weight.ndim - 2
    axis = x.ndim - 1 if spatial == 0 else x.ndim - 1 - spatial
    known = rec.values.get(id(x))
    name, bias_name = rec.parameter(weight), rec.parameter(bias)
    where = rec.where()
    if name is None or (bias is not None and bias_name is None):
        rec.freeze(x, f"the weights{where} are computed, not stored")
        rec.left.setdefault(rec.stack[-1] if rec.stack else "", "its weights are computed, not stored")
        return None
    if name in rec.used:
        both = f"the weights {name} are used twice"
        rec.freeze(x, both)
        for call in rec.calls:
            if call.weight == name:
                rec.freeze_layout((*(call.inputs or ()), *call.outputs), both)
    rec.used[name] = where
    if known is not None and (known[0] != axis or rec.length(known[1]) != x.shape[axis]):
        rec.freeze(x, f"the layer{where} acts along another axis")
        known = None
    if groups > 1:
        if known is not None and groups == weight.shape[0] == x.shape[axis] and all(r == 1 for _, r in known[1]):
            return depthwise(rec, name, bias_name, known)
        known = grouped(rec, x, groups, known)
    space = rec.new_space(weight.shape[0], path_of(name), groups)
    if name in [call.weight for call in rec.calls]:
        rec.spaces[space].frozen = f"the weights {name} are used twice"
    made: Layout = ((space, 1),)
    rec.slots.append(Slot(name, 0, made))
    if bias_name:
        rec.slots.append(Slot(bias_name, 0, made))
    if known is not None:
        rec.slots.append(Slot(name, 1, known[1]))
    kind = ("linear", "conv1d", "conv2d")[spatial]
    tuples: list[Any] = [
        (v,) * spatial if isinstance(v, int) else v if isinstance(v, str) else tuple(v)
        for v in (stride, padding, dilation)
    ]
    rec.calls.append(
        Call(
            kind, name.rpartition(".")[0], name, bias_name, known[1] if known else None, made,
            tuple(result.shape), tuples[0], tuples[1], tuples[2], groups,
        )
    )  # fmt: skip
    rec.made_by[id(result)] = len(rec.calls) - 1
    return axis, made


def depthwise(rec: Recorder, name: str, bias: str | None, known: Value) -> Value:
    """One group per neuron, with one output each: the space is kept."""
    for parameter in filter(None, (name, bias)):
        rec.slots.append(Slot(parameter, 0, known[1]))
    return known


def grouped(rec: Recorder, x: Any, groups: int, known: Value | None) -> Value | None:
    """What a convolution with groups reads: one space, of which each group reads an equal part."""
    if known is None:
        return None
    if len(known[1]) != 1 or known[1][0][1] != 1:
        rec.freeze(x, f"the {groups} groups of the convolution{rec.where()} read several layers side by side")
        return None
    space = rec.spaces[known[1][0][0]]
    space.blocks = lcm(space.blocks, groups)
    return known


def batch_norm(
    rec: Recorder,
    result: torch.Tensor,
    x: Any,
    mean: Any,
    variance: Any,
    weight: Any = None,
    bias: Any = None,
    *_: Any,
    **__: Any,
) -> Value | None:
    """Carried along: its parameters are indexed by the same neurons."""
    value = rec.values.get(id(x))
    if value is None:
        return None
    if value[0] != 1 or mean is None:
        rec.freeze(x, f"batch_norm{rec.where()} has no stored statistics")
        return None
    for tensor in (mean, variance, weight, bias):
        if tensor is not None:
            name = rec.parameter(tensor)
            if name is None or any(slot.name == name for slot in rec.slots):
                rec.freeze(x, f"the parameters of batch_norm{rec.where()} are shared or computed")
                return None
            rec.slots.append(Slot(name, 0, value[1]))
    maker = rec.made_by.get(id(x))
    if maker is not None:
        rec.calls[maker] = replace(rec.calls[maker], mean=rec.parameter(mean))
    return value


def aten_batch_norm(
    rec: Recorder,
    result: torch.Tensor,
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    *_: Any,
    **__: Any,
) -> Value | None:
    """The same function with the order of arguments of exported programs."""
    return batch_norm(rec, result, x, mean, variance, weight, bias)


def prelu(rec: Recorder, result: torch.Tensor, x: Any, weight: Any) -> Value | None:
    """One slope for all neurons, or one per neuron, which is carried along."""
    value = rec.values.get(id(x))
    if value is None or weight.numel() == 1:
        return value
    name = rec.parameter(weight)
    if name is None or value[0] != 1:
        rec.freeze(x, f"prelu{rec.where()} is not supported here")
        return None
    rec.slots.append(Slot(name, 0, value[1]))
    return value


def elementwise(rec: Recorder, result: torch.Tensor, one: Any, other: Any = None, *_: Any, **__: Any) -> Value | None:
    """Sums and products: of two tensors with the same neurons, or of one with numbers or a stored vector."""
    pair = [t for t in (one, other) if isinstance(t, torch.Tensor)]
    known = [t for t in pair if id(t) in rec.values]
    if len(known) == 2:
        (a, left), (b, right) = (rec.values[id(t)] for t in known)
        ends = a - known[0].ndim, b - known[1].ndim
        if ends[0] == ends[1] and rec.couple(left, right):
            return result.ndim + ends[0], left
    elif len(known) == 1:
        axis, layout = rec.values[id(known[0])]
        constant = [t for t in pair if t is not known[0] and t.numel() > 1]
        carried = not constant or rec.per_neuron(constant[0], axis - known[0].ndim, layout)
        if carried and result.shape == known[0].shape:
            return axis, layout
    for tensor in known:
        rec.freeze(tensor, f"a sum or product{rec.where()} joins them with something else than such neurons")
    return None


def concatenate(rec: Recorder, result: torch.Tensor, tensors: Any, dim: int = 0, **_: Any) -> Value | None:
    """Side by side along the axis of neurons; what is not known becomes a frozen space."""
    dim = dim % result.ndim
    known = [rec.values.get(id(t)) for t in tensors]
    if all(value is None for value in known):
        return None
    if any(value is not None and value[0] != dim for value in known):
        for tensor in tensors:
            rec.freeze(tensor, f"cat{rec.where()} is along another axis")
        return None
    layout: Layout = ()
    for tensor, value in zip(tensors, known, strict=True):
        if value is None:
            space = rec.new_space(tensor.shape[dim], rec.stack[-1] if rec.stack else "")
            rec.spaces[space].frozen = FOREIGN
            layout += ((space, 1),)
        else:
            layout += value[1]
    return dim, layout


def reshape(rec: Recorder, result: torch.Tensor, x: Any, *_: Any, **__: Any) -> Value | None:
    """Flattening what comes after the axis of neurons repeats each of them; other reshapes freeze."""
    if id(x) not in rec.values:
        return None
    axis, layout = rec.values[id(x)]
    found = reshaped_axis(tuple(x.shape), tuple(result.shape), axis)
    if found is None:
        rec.freeze(x, f"a reshape{rec.where()} mixes neurons")
        return None
    axis, repeats = found
    return axis, tuple((space, r * repeats) for space, r in layout)


def reduce(
    rec: Recorder, result: torch.Tensor, x: Any, dim: Any = None, keepdim: bool = False, **_: Any
) -> Value | None:
    """Means and sums over positions."""
    if id(x) not in rec.values:
        return None
    axis, layout = rec.values[id(x)]
    dims = {d % x.ndim for d in ((dim,) if isinstance(dim, int) else dim or range(x.ndim))}
    if axis in dims:
        rec.freeze(x, f"a mean or sum{rec.where()} is over the neurons")
        return None
    return (axis if keepdim else axis - sum(d < axis for d in dims)), layout


def transpose(rec: Recorder, result: torch.Tensor, x: Any, *dims: Any, **_: Any) -> Value | None:
    """Two axes change places."""
    if id(x) not in rec.values or len(dims) != 2:
        return None
    axis, layout = rec.values[id(x)]
    a, b = (int(d) % x.ndim for d in dims)
    return {a: b, b: a}.get(axis, axis), layout


def permute(rec: Recorder, result: torch.Tensor, x: Any, *dims: Any, **_: Any) -> Value | None:
    """Axes change places."""
    if id(x) not in rec.values:
        return None
    axis, layout = rec.values[id(x)]
    order = [int(d) % x.ndim for d in (dims[0] if isinstance(dims[0], tuple | list) else dims)]
    return order.index(axis), layout


RULES: dict[str, Callable[..., Value | None]] = {
    **dict.fromkeys(LAYERS, layer_call),
    "batch_norm": batch_norm,
    "aten.batch_norm": aten_batch_norm,
    "prelu": prelu,
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(("cat", "concat", "concatenate"), concatenate),
    **dict.fromkeys(("flatten", "view", "reshape", "squeeze", "unsqueeze"), reshape),
    **dict.fromkeys(("mean", "sum", "amax"), reduce),
    **dict.fromkeys(("transpose", "swapaxes"), transpose),
    "permute": permute,
}  # fmt: skip
