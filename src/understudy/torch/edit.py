"""Narrow and check a model in place: parameters are cut along the axes that a space indexes; attributes follow."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.utils import _pytree as pytree

from understudy.torch.graph import Call, Graph, Slot
from understudy.torch.groups import packed, spread


def duplicate(model: nn.Module) -> nn.Module:
    """A copy that shares nothing. Copying exported programs makes PyTorch warn about itself; that is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return copy.deepcopy(model)


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """All tensors in nested lists, tuples and dicts, such as a model's outputs."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def same_modes(model: nn.Module, like: nn.Module) -> nn.Module:
    """Give every module the training or evaluation mode of its counterpart."""
    for module, other in zip(model.modules(), like.modules(), strict=False):
        module.training = other.training
    return model


def get_tensor(model: nn.Module, name: str) -> torch.Tensor:
    """A parameter or buffer by its name."""
    path, _, leaf = name.rpartition(".")
    return getattr(model.get_submodule(path), leaf)


def set_tensor(model: nn.Module, name: str, value: torch.Tensor) -> None:
    """Replace a parameter or buffer by another of any shape, and let the layer's attributes follow.

    Type, device and order in memory (channels last) stay.
    """
    path, _, leaf = name.rpartition(".")
    module = model.get_submodule(path)
    old = getattr(module, leaf)
    last = old.ndim == 4 and not old.is_contiguous() and old.is_contiguous(memory_format=torch.channels_last)
    order = torch.channels_last if last else torch.contiguous_format
    value = value.detach().to(old.dtype).to(old.device).contiguous(memory_format=order)
    if isinstance(old, nn.Parameter):
        setattr(module, leaf, nn.Parameter(value, requires_grad=old.requires_grad))
    else:
        module._buffers[leaf] = value
    follow_shape(module)


def follow_shape(module: nn.Module) -> None:
    """Attributes such as `in_features` say what the weights are."""
    if isinstance(module, nn.Linear):
        module.out_features, module.in_features = module.weight.shape
    elif isinstance(module, _ConvNd):
        if 1 < module.groups == module.in_channels == module.out_channels:  # depthwise: one channel per group stays
            module.groups = module.weight.shape[0]
        module.out_channels, module.in_channels = module.weight.shape[0], module.weight.shape[1] * module.groups
        if module.transposed:
            module.in_channels, module.out_channels = module.out_channels, module.in_channels
    elif isinstance(module, _BatchNorm) and module.running_mean is not None:
        module.num_features = module.running_mean.shape[0]
    elif isinstance(module, nn.PReLU):
        module.num_parameters = module.weight.shape[0]


def get_reading(model: nn.Module, call: Call) -> torch.Tensor:
    """The weights with which a layer reads, one column per input; zeros between the groups of a convolution."""
    return spread(get_tensor(model, call.weight).detach(), call.groups)


def set_reading(model: nn.Module, call: Call, weight: torch.Tensor) -> None:
    """Replace the weights with which a layer reads, given as by `get_reading`."""
    set_tensor(model, call.weight, packed(weight, call.groups))


def cut(model: nn.Module, graph: Graph, kept: Mapping[int, torch.Tensor]) -> None:
    """Keep only these neurons (space → indices, some perhaps several times) in `model`, in place."""
    groups = {call.weight: call.groups for call in graph.calls}
    touched: dict[str, list[Slot]] = {}
    for slot in graph.slots:
        if any(space in kept for space, _ in slot.layout):
            touched.setdefault(slot.name, []).append(slot)
    for name, slots in touched.items():
        value = spread(get_tensor(model, name), groups.get(name, 1))
        for slot in slots:
            value = value.index_select(slot.axis, graph.entries(slot.layout, kept).to(value.device))
        set_tensor(model, name, packed(value, groups.get(name, 1)))


def check_spaces(model: nn.Module, graph: Graph, example: tuple[Any, ...]) -> None:
    """Remove a neuron of every space (of each of its blocks) on trial; freeze those whose outputs are not as expected.

    Silencing sets the weights to zero with which the following layers read the neuron. Removing it must give the same
    outputs. If not, the model's own code depends on the width in a way that the trace has not understood. If some
    layers were not reached, the narrower model must also run in training mode, which may use them. `model` is changed
    and restored.
    """
    tensors = {slot.name: get_tensor(model, slot.name) for slot in graph.slots}
    channels = {
        module: (module.groups, module.in_channels, module.out_channels)
        for module in model.modules()
        if isinstance(module, _ConvNd)
    }
    trained = _runs_in_training(model, example) if graph.unseen else False
    for space in graph.free:
        size = space.size // space.blocks
        if size < 2:
            continue
        gone = torch.arange(space.blocks) * size + size // 2
        reason = None
        try:
            for call in graph.readers(space.index):
                assert call.inputs is not None
                weight = get_reading(model, call).clone()
                weight[:, torch.isin(graph.owners(call.inputs, space.index), gone).to(weight.device)] = 0
                set_reading(model, call, weight)
            wanted = _run(model, example)
            _restore(model, tensors, channels)
            stay = torch.arange(space.size)
            cut(model, graph, {space.index: stay[~torch.isin(stay, gone)]})
            found = _run(model, example)
            if not _close(wanted, found):
                reason = "the model's code uses their number in a way that was not understood"
            elif trained and not _runs_in_training(model, example):
                reason = f"training mode uses layers ({', '.join(graph.unseen)}) that need this width"
        except FAILURES as error:
            reason = f"the model's code fails with another width: {str(error).splitlines()[0][:120]}"
        finally:
            _restore(model, tensors, channels)
        space.frozen = reason


FAILURES = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)
"""What a model's code raises when shapes do not fit."""


def _runs_in_training(model: nn.Module, example: tuple[Any, ...]) -> bool:
    """Whether a copy runs in training mode; a copy, because BatchNorm changes its statistics there."""
    try:
        _run(duplicate(model).train(), example)
    except FAILURES:
        return False
    return True


def _run(model: nn.Module, example: tuple[Any, ...]) -> list[torch.Tensor]:
    with torch.no_grad():
        return tensors_in(model(*example))


def _restore(
    model: nn.Module, tensors: Mapping[str, torch.Tensor], channels: Mapping[_ConvNd, tuple[int, int, int]]
) -> None:
    for name, tensor in tensors.items():
        path, _, leaf = name.rpartition(".")
        module = model.get_submodule(path)
        held: dict[str, Any] = module._parameters if isinstance(tensor, nn.Parameter) else module._buffers
        held[leaf] = tensor
        follow_shape(module)
    for layer, counts in channels.items():  # with one channel per group, shapes do not say what a convolution was
        layer.groups, layer.in_channels, layer.out_channels = counts


def _close(one: Iterable[torch.Tensor], other: Iterable[torch.Tensor]) -> bool:
    one, other = list(one), list(other)
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if a.shape != b.shape:
            return False
        if a.is_floating_point() and (a - b).abs().max() > 1e-3 * a.abs().max() + 1e-6:
            return False
    return True
