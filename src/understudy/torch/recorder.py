"""Record the functions a model calls, and follow spaces of neurons through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import lcm
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from understudy.torch.edit import tensors_in
from understudy.torch.graph import Call, Graph, Layout, Slot, Space
from understudy.torch.rules import ELEMENTWISE, LAYERS, POINTWISE, POOLING, READS_VALUES, plain_name

Value = tuple[int, Layout]
"""The axis of a tensor that is indexed by neurons, and its layout."""


class Recorder(TorchFunctionMode):
    """Follows spaces through the functions that are called."""

    def __init__(self, model: nn.Module, rules: Mapping[str, Callable[..., Value | None]]) -> None:
        super().__init__()
        self.rules = rules
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
        self.touched: set[str] = set()  # parameters and buffers that some function was given
        self.left: dict[str, str] = {}  # path of a layer whose width stays → why
        self.reads: Counter[int] = Counter()  # call → functions that were given its result as it is
        self.branches: list[tuple[str, str, int]] = []  # module, function that read values, calls before it

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
        given = tensors_in((args, kwargs))
        self.touched |= {self.names[id(t)] for t in given if id(t) in self.names}
        read = [t for t in given if id(t) in self.values]
        out = tensors_in(result)
        if not out:
            if name in READS_VALUES and any(id(t) not in self.names for t in given):
                self.branches.append((self.stack[-1] if self.stack else "", name, len(self.calls)))
                for tensor in read:
                    self.freeze(tensor, f"their values decide what the code does ({name}{self.where()})")
            return result
        self.reads.update({self.made_by[id(t)] for t in given if id(t) in self.made_by})
        rule: Callable[..., Value | None] | None = self.rules.get(name)
        value = None
        if rule is not None and len(out) == 1:
            value = rule(self, result, *args, **kwargs)
        elif (name in POINTWISE or name in POOLING) and isinstance(result, torch.Tensor):
            value = self.carry(name, result, args)
        else:
            for tensor in read:
                self.freeze(tensor, f"{name}{self.where()} is not supported")
            for tensor in given:
                self.leave(tensor, f"{name} is not supported")
        if value is not None and name not in LAYERS:
            for space, _ in value[1]:
                self.functions[space].add(self.describe(name, args))
        for tensor in out:
            self.alive.append(tensor)
            self.values.pop(id(tensor), None)
            if name not in LAYERS:
                self.made_by.pop(id(tensor), None)
        if value is not None and isinstance(result, torch.Tensor):
            self.values[id(result)] = value
        return result

    def describe(self, name: str, args: Any) -> str:
        """The function's name; sums and products of two sets of neurons are named apart from those with constants."""
        if name in ELEMENTWISE:
            kind = "product" if name in ("mul", "rmul", "multiply", "div", "true_divide") else "sum"
            both = sum(id(t) in self.values for t in tensors_in(args)) == 2
            return kind if both else f"{kind} with a constant"
        return name

    def where(self) -> str:
        """` in path`, the module whose code is running."""
        return f" in {self.stack[-1]}" if self.stack and self.stack[-1] else ""

    # Spaces

    def new_space(self, size: int, path: str, blocks: int = 1) -> int:
        """A new set of neurons, named by the layer that makes them."""
        self.spaces.append(Space(len(self.spaces), size, path, blocks=blocks))
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
        read = [t for t in tensors_in(args) if id(t) in self.values]
        if len(read) != 1 or result.ndim != read[0].ndim:
            for tensor in read:
                self.freeze(tensor, f"{name}{self.where()} mixes tensors")
            return None
        axis, layout = self.values[id(read[0])]
        if name in POOLING and axis >= result.ndim - POOLING[name]:
            self.freeze_layout(layout, f"{name}{self.where()} pools over neurons")
            return None
        return axis, layout

    def parameter(self, tensor: Any) -> str | None:
        """The name of a parameter or buffer; a second use of one is noted as sharing."""
        return self.names.get(id(tensor)) if isinstance(tensor, torch.Tensor) else None

    def per_neuron(self, tensor: torch.Tensor, axis: int, layout: Layout) -> bool:
        """Carry along a stored vector with one number per neuron on that axis (from the end); False if it is none."""
        name, axis = self.parameter(tensor), tensor.ndim + axis
        fits = axis >= 0 and tensor.shape[axis] == tensor.numel() == self.length(layout)
        if name is None or not fits or any(slot.name == name for slot in self.slots):
            return False
        self.slots.append(Slot(name, axis, layout))
        return True

    def leave(self, tensor: Any, reason: str) -> None:
        """The width of the layer with this weight matrix stays."""
        name = self.parameter(tensor)
        if name is not None and tensor.ndim >= 2:
            path = layer_of(name)
            if type(self.model.get_submodule(path)).__module__.startswith("torch.nn"):
                self.left.setdefault(path, reason)

    def freeze_branches(self) -> None:
        """Leave layers alone that code after a branch on values may use in another way for other inputs.

        These are the layers of the module that branches, from the branch on. If the module has parameters that the
        example did not reach, another branch may use them on any of its values: then all its layers are left alone.
        """
        for path, name, before in self.branches:
            inside = f"{path}." if path else ""
            unseen = any(key.startswith(inside) for key, _ in self.model.named_parameters() if key not in self.touched)
            where = f"in {path}" if path else "of the model"
            for call in self.calls[0 if unseen else before :]:
                if f"{call.path}.".startswith(inside):
                    reason = f"the code {where} may take another way for other values ({name})"
                    self.freeze_layout((*(call.inputs or ()), *call.outputs), reason)

    def without_width(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Layers whose width stays, with the reason, outermost first; and paths of layers that were not reached."""
        weights = [name for name, p in self.model.named_parameters() if p.ndim >= 2]
        unseen = dict.fromkeys(layer_of(name) for name in weights if name not in self.touched)
        left = self.left | dict.fromkeys(unseen, "the example does not reach it")
        for slot in self.slots:
            left.pop(layer_of(slot.name), None)
        inner = [path for path in left if any(f"{path}.".startswith(f"{other}.") for other in left if other != path)]
        return {path: reason for path, reason in left.items() if path not in inner}, tuple(unseen)

    def finish(self) -> Graph:
        """The graph, with coupled spaces joined."""
        self.freeze_branches()

        def resolve(layout: Layout) -> Layout:
            return tuple((self.root(space), repeats) for space, repeats in layout)

        calls = [
            replace(
                c,
                inputs=resolve(c.inputs) if c.inputs else None,
                outputs=resolve(c.outputs),
                mean=c.mean if self.reads[i] == 1 else None,  # a BatchNorm is part of a layer that only it reads
            )
            for i, c in enumerate(self.calls)
        ]
        slots = [replace(slot, layout=resolve(slot.layout)) for slot in self.slots]
        spaces = {space.index: space for space in self.spaces if self.root(space.index) == space.index}
        functions: dict[int, set[str]] = {index: set() for index in spaces}
        for index, names in enumerate(self.functions):
            functions[self.root(index)] |= names
            whole = spaces[self.root(index)]
            whole.blocks = lcm(whole.blocks, self.spaces[index].blocks)
        graph = Graph(spaces, slots, calls, functions, *self.without_width())
        for space in graph.free:
            if not graph.readers(space.index):
                space.frozen = "no Linear or Conv layer reads them"
            elif space.blocks > 1 and (space.size % space.blocks or space.size == space.blocks):
                space.frozen = "the groups of a convolution that makes or reads them leave no equal parts to remove"
        return graph


def path_of(weight: str) -> str:
    """The name of the layer that a weight belongs to; the weight's own name if it is not called `weight` or has no
    layer.

    >>> path_of("block.fc.weight"), path_of("block.matrices.0"), path_of("weight")
    ('block.fc', 'block.matrices.0', 'weight')
    """
    path, _, leaf = weight.rpartition(".")
    return path if path and leaf == "weight" else weight


def layer_of(name: str) -> str:
    """The path of the layer to which a parameter belongs.

    >>> layer_of("block.fc.weight"), layer_of("fc.parametrizations.weight.original0")
    ('block.fc', 'fc')
    """
    return name.rpartition(".")[0].partition(".parametrizations")[0]
