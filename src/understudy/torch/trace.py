"""Find the spaces of neurons of a network by recording one forward pass.

Every PyTorch function that the model's own code calls is seen with its tensors (a `TorchFunctionMode`), so any Python in `forward` is allowed.
Functions that treat neurons one by one carry a space along; those not known here freeze the spaces they read. No rule is trusted blindly:
`understudy.torch.edit.check_spaces` removes a neuron of every space on trial and compares outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from understudy.torch.graph import Call, Graph, Layout, Slot, Space
from understudy.torch.rules import POINTWISE, POOLING, READS_VALUES, plain_name, reshaped_axis

Value = tuple[int, Layout]
"""The axis of a tensor that is indexed by neurons, and its layout."""


def trace(model: nn.Module, example: tuple[Any, ...]) -> Graph:
    """The graph of a model, from one forward pass on `example` (a tuple of arguments) in evaluation mode."""
    recorder = Recorder(model)
    with torch.no_grad(), recorder.watch_modules(), recorder:
        outputs = model(*example)
    for tensor in _tensors(outputs):
        recorder.freeze(tensor, "they are the model's outputs")
    return recorder.finish()


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Recorder(TorchFunctionMode):
    """Follows spaces through the functions that are called."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.names = {id(p): name for name, p in (*model.named_parameters(), *model.named_buffers())}
        self.paths = {id(module): path for path, module in model.named_modules()}
        self.stack: list[str] = []
        self.values: dict[int, Value] = {}
        self.made_by: dict[int, int] = {}  # tensor → index of the call that made it, until something else changes it
        self.alive: list[torch.Tensor] = []  # ids stay unique while tensors live
        self.spaces: list[Space] = []
        self.parents: list[int] = []
        self.slots: list[Slot] = []
        self.calls: list[Call] = []
        self.used: dict[str, str] = {}
        self.functions: list[set[str]] = []

    @contextmanager
    def watch_modules(self) -> Iterator[None]:
        """Know the path of the module whose code is running."""
        enter = register_module_forward_pre_hook(lambda m, _: self.stack.append(self.paths.get(id(m), "")))
        leave = register_module_forward_hook(lambda m, _, __: (self.stack.pop(), None)[1], always_call=True)
        try:
            yield
        finally:
            enter.remove()
            leave.remove()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = plain_name(func)
        read = [t for t in _tensors((args, kwargs)) if id(t) in self.values]
        out = _tensors(result)
        if not out:
            if name in READS_VALUES:
                for tensor in read:
                    self.freeze(tensor, f"their values decide what the code does ({name}{self._where()})")
            return result
        rule: Callable[..., Value | None] | None = RULES.get(name)
        value = None
        if rule is not None and len(out) == 1:
            value = rule(self, result, *args, **kwargs)
        elif (name in POINTWISE or name in POOLING) and isinstance(result, torch.Tensor):
            value = self.carry(name, result, args)
        elif read:
            for tensor in read:
                self.freeze(tensor, f"{name}{self._where()} is not supported")
        if value is not None and rule is not layer_call:
            for space, _ in value[1]:
                self.functions[space].add(self.describe(name, args))
        for tensor in out:
            self.alive.append(tensor)
            self.values.pop(id(tensor), None)
            if rule is not layer_call:
                self.made_by.pop(id(tensor), None)
        if value is not None and isinstance(result, torch.Tensor):
            self.values[id(result)] = value
        return result

    def describe(self, name: str, args: Any) -> str:
        """The function's name; sums and products of two sets of neurons are named apart from those with a number."""
        if RULES.get(name) is elementwise:
            kind = "product" if name in ("mul", "rmul", "multiply", "div", "true_divide") else "sum"
            return kind if len(_tensors(args)) == 2 else f"{kind} with a number"
        return name

    def _where(self) -> str:
        return f" in {self.stack[-1]}" if self.stack and self.stack[-1] else ""

    # Spaces

    def new_space(self, size: int) -> int:
        """A new set of neurons."""
        path = self.stack[-1] if self.stack else ""
        self.spaces.append(Space(len(self.spaces), size, path))
        self.parents.append(len(self.parents))
        self.functions.append(set())
        return len(self.parents) - 1

    def root(self, space: int) -> int:
        """The space that stands for all that are coupled with this one."""
        while self.parents[space] != space:
            space = self.parents[space]
        return space

    def freeze_layout(self, layout: Layout, reason: str) -> None:
        """These neurons cannot be removed."""
        for space, _ in layout:
            known = self.spaces[self.root(space)]
            known.frozen = known.frozen or reason

    def freeze(self, tensor: torch.Tensor, reason: str) -> None:
        """The neurons on this tensor's axis cannot be removed."""
        if id(tensor) in self.values:
            self.freeze_layout(self.values[id(tensor)][1], reason)

    def couple(self, one: Layout, other: Layout) -> bool:
        """Make the spaces of two layouts one, part by part; False if they do not fit."""
        sizes = [[(self.spaces[space].size, repeats) for space, repeats in layout] for layout in (one, other)]
        if sizes[0] != sizes[1]:
            return False
        for (a, _), (b, _) in zip(one, other, strict=True):
            first, second = sorted((self.root(a), self.root(b)))
            if first != second:
                self.parents[second] = first
                self.spaces[first].frozen = self.spaces[first].frozen or self.spaces[second].frozen
        return True

    def length(self, layout: Layout) -> int:
        """Entries of an axis with this layout."""
        return sum(self.spaces[space].size * repeats for space, repeats in layout)

    def carry(self, name: str, result: torch.Tensor, args: Any) -> Value | None:
        """Neurons one by one: the first tensor's value, if there is no other tensor that has one."""
        read = [t for t in _tensors(args) if id(t) in self.values]
        if len(read) != 1 or result.ndim != read[0].ndim:
            for tensor in read:
                self.freeze(tensor, f"{name}{self._where()} mixes tensors")
            return None
        axis, layout = self.values[id(read[0])]
        if name in POOLING and axis >= result.ndim - POOLING[name]:
            self.freeze_layout(layout, f"{name}{self._where()} pools over neurons")
            return None
        return axis, layout

    def parameter(self, tensor: Any) -> str | None:
        """The name of a parameter or buffer; a second use of one is noted as sharing."""
        return self.names.get(id(tensor)) if isinstance(tensor, torch.Tensor) else None

    def finish(self) -> Graph:
        """The graph, with coupled spaces joined."""

        def resolve(layout: Layout) -> Layout:
            return tuple((self.root(space), repeats) for space, repeats in layout)

        calls = [
            replace(c, inputs=resolve(c.inputs) if c.inputs else None, outputs=resolve(c.outputs)) for c in self.calls
        ]
        slots = [replace(slot, layout=resolve(slot.layout)) for slot in self.slots]
        spaces = {space.index: space for space in self.spaces if self.root(space.index) == space.index}
        functions: dict[int, set[str]] = {index: set() for index in spaces}
        for index, names in enumerate(self.functions):
            functions[self.root(index)] |= names
        graph = Graph(spaces, slots, calls, functions)
        for space in graph.free:
            if not graph.readers(space.index):
                space.frozen = "no Linear or Conv layer reads them"
        return graph


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
    where = rec._where()
    if name is None or (bias is not None and bias_name is None):
        rec.freeze(x, f"the weights{where} are computed, not stored")
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
        return grouped_call(rec, result, x, weight, name, bias_name, groups, axis, known)
    space = rec.new_space(weight.shape[0])
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
        Call(kind, name.rpartition(".")[0], name, bias_name, known[1] if known else None, made, tuple(x.shape), tuple(result.shape), *tuples)
    )  # fmt: skip
    rec.made_by[id(result)] = len(rec.calls) - 1
    return axis, made


def grouped_call(
    rec: Recorder, result: torch.Tensor, x: Any, weight: Any, name: str, bias: str | None, groups: int, axis: int,
    known: Value | None,
) -> Value | None:  # fmt: skip
    """A depthwise convolution keeps its space; other groups keep their widths."""
    if known is not None and groups == weight.shape[0] == x.shape[axis] and all(r == 1 for _, r in known[1]):
        rec.slots.append(Slot(name, 0, known[1]))
        if bias:
            rec.slots.append(Slot(bias, 0, known[1]))
        return known
    rec.freeze(x, f"the convolution{rec._where()} has {groups} groups")
    return None


def batch_norm(rec: Recorder, result: torch.Tensor, x: Any, mean: Any, variance: Any, weight: Any = None, bias: Any = None, *_: Any, **__: Any) -> Value | None:  # fmt: skip
    """Carried along: its parameters are indexed by the same neurons."""
    value = rec.values.get(id(x))
    if value is None:
        return None
    if value[0] != 1 or mean is None:
        rec.freeze(x, f"batch_norm{rec._where()} has no stored statistics")
        return None
    for tensor in (mean, variance, weight, bias):
        if tensor is not None:
            name = rec.parameter(tensor)
            if name is None or any(slot.name == name for slot in rec.slots):
                rec.freeze(x, f"the parameters of batch_norm{rec._where()} are shared or computed")
                return None
            rec.slots.append(Slot(name, 0, value[1]))
    maker = rec.made_by.get(id(x))
    if maker is not None:
        rec.calls[maker] = replace(rec.calls[maker], mean=rec.parameter(mean))
    return value


def aten_batch_norm(rec: Recorder, result: torch.Tensor, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, *_: Any, **__: Any) -> Value | None:  # fmt: skip
    """The same function with the order of arguments of exported programs."""
    return batch_norm(rec, result, x, mean, variance, weight, bias)


def prelu(rec: Recorder, result: torch.Tensor, x: Any, weight: Any) -> Value | None:
    """One slope for all neurons, or one per neuron, which is carried along."""
    value = rec.values.get(id(x))
    if value is None or weight.numel() == 1:
        return value
    name = rec.parameter(weight)
    if name is None or value[0] != 1:
        rec.freeze(x, f"prelu{rec._where()} is not supported here")
        return None
    rec.slots.append(Slot(name, 0, value[1]))
    return value


def elementwise(rec: Recorder, result: torch.Tensor, one: Any, other: Any = None, *_: Any, **__: Any) -> Value | None:
    """Sums and products: of one tensor and numbers, or of two with the same neurons."""
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
        if not constant and result.shape == known[0].shape:
            return axis, layout
    for tensor in known:
        rec.freeze(tensor, f"a sum or product{rec._where()} joins them with something of another shape")
    return None


def concatenate(rec: Recorder, result: torch.Tensor, tensors: Any, dim: int = 0, **_: Any) -> Value | None:
    """Side by side along the axis of neurons; what is not known becomes a frozen space."""
    dim = dim % result.ndim
    known = [rec.values.get(id(t)) for t in tensors]
    if all(value is None for value in known):
        return None
    if any(value is not None and value[0] != dim for value in known):
        for tensor in tensors:
            rec.freeze(tensor, f"cat{rec._where()} is along another axis")
        return None
    layout: Layout = ()
    for tensor, value in zip(tensors, known, strict=True):
        if value is None:
            space = rec.new_space(tensor.shape[dim])
            rec.spaces[space].frozen = "they are inputs, or outputs of something that is not supported"
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
        rec.freeze(x, f"a reshape{rec._where()} mixes neurons")
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
        rec.freeze(x, f"a mean or sum{rec._where()} is over the neurons")
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
    **dict.fromkeys(("linear", "conv1d", "conv2d"), layer_call),
    "batch_norm": batch_norm,
    "aten.batch_norm": aten_batch_norm,
    "prelu": prelu,
    **dict.fromkeys(("add", "sub", "mul", "div", "true_divide", "radd", "rsub", "rmul", "multiply", "subtract"), elementwise),
    **dict.fromkeys(("cat", "concat", "concatenate"), concatenate),
    **dict.fromkeys(("flatten", "view", "reshape", "squeeze", "unsqueeze"), reshape),
    **dict.fromkeys(("mean", "sum", "amax"), reduce),
    **dict.fromkeys(("transpose", "swapaxes"), transpose),
    "permute": permute,
}  # fmt: skip
