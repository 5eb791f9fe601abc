"""A user's model made ready: checked, copied, in evaluation mode, with an example input and its graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from understudy.torch.batches import Inputs, home, is_finite, place, stream
from understudy.torch.edit import check_spaces, duplicate
from understudy.torch.graph import Graph, Space
from understudy.torch.trace import trace

UNSHAPED = (nn.parameter.UninitializedParameter, nn.parameter.UninitializedBuffer)
EXAMPLES = 3
"""Inputs in an example: more than one, so that the batch is not mistaken for another axis; few, for speed."""


def check_model(model: Any) -> nn.Module:
    """The module itself; says what is wrong with anything else."""
    if isinstance(model, torch.jit.ScriptModule):
        raise TypeError("model is a TorchScript module, which cannot be changed. Give the nn.Module it was made from.")
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"model is a torch.nn.Module; received {type(model).__name__}. Files are read by understudy.torch.load."
        )
    model = getattr(model, "_orig_mod", model)  # the module inside torch.compile
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if isinstance(tensor, UNSHAPED):
            raise ValueError(f"model: {name} has no shape yet. Run the model once on an input, then try again.")
        if tensor.is_floating_point() and not is_finite(tensor):
            raise ValueError(f"model: {name} has values that are not finite (NaN or infinity). Was training stable?")
    return model


@contextmanager
def evaluating(model: nn.Module) -> Iterator[nn.Module]:
    """Evaluation mode inside, each module's own mode after."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield model
    finally:
        for module, mode in modes:
            module.training = mode


def find_example(model: nn.Module, data: Any, example: Any) -> Inputs:
    """A few inputs: those given, the first of the data, or random ones where the first layer says their size."""
    if example is not None:
        return tuple(place(p, model) for p in (example if isinstance(example, tuple | list) else (example,)))
    if data is not None:
        inputs, _ = next(iter(stream(data, model)))
        return tuple(torch.cat([x] * EXAMPLES)[:EXAMPLES] if len(x) < EXAMPLES else x[:EXAMPLES] for x in inputs)
    first = next((m for m in model.modules() if isinstance(m, nn.Linear | nn.modules.conv._ConvNd)), None)
    if isinstance(first, nn.Linear):
        device, dtype = home(model)
        return (torch.randn(EXAMPLES, first.in_features, generator=torch.Generator().manual_seed(0)).to(device, dtype),)
    raise ValueError(
        "Without data the shape of an input is not known. Give example=, a tensor with a few inputs, such as "
        "torch.randn(3, 3, 32, 32)."
    )


def prepare(model: Any, data: Any = None, example: Any = None) -> tuple[nn.Module, Graph, Inputs]:
    """A copy of the model in evaluation mode, its checked graph and an example input."""
    ready = duplicate(check_model(model)).eval()
    inputs = find_example(ready, data, example)
    try:
        graph = trace(ready, inputs)
    except Exception as error:
        shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
        several = (
            " Give data of a model with several inputs as ((x1, x2), labels)." if "positional arg" in str(error) else ""
        )
        raise ValueError(
            f"model fails on an example input of shape {shapes}: {str(error).splitlines()[0]}{several}"
        ) from error
    check_spaces(ready, graph, inputs)
    return ready, graph, inputs


def free_spaces(graph: Graph) -> list[Space]:
    """Spaces that can change, or an error that names every one that cannot and why."""
    found = graph.free
    if not found:
        reasons = [*((space.path, space.frozen) for space in graph.spaces.values()), *graph.left.items()]
        told = (
            "; ".join(f"{path or 'the model'}: {why}" for path, why in reasons) or "no Linear or Conv layer was called"
        )
        raise ValueError(f"model has no layer whose width can change. {told}.")
    return found
