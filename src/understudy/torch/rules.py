"""Names of the functions that treat neurons one by one, and what a reshape does to an axis."""

from __future__ import annotations

from math import prod
from typing import Any

POINTWISE = frozenset([
    "relu", "relu6", "leaky_relu", "rrelu", "elu", "selu", "celu", "gelu", "silu", "mish", "sigmoid", "logsigmoid",
    "hardsigmoid", "tanh", "hardtanh", "hardswish", "tanhshrink", "softshrink", "hardshrink", "softplus", "softsign",
    "threshold", "erf", "exp", "expm1", "abs", "absolute", "neg", "negative", "square", "pow", "sqrt", "sin", "cos",
    "clamp", "clamp_min", "clamp_max", "clip", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout",
    "alpha_dropout", "feature_alpha_dropout", "clone", "contiguous", "detach", "to", "float", "double", "half",
    "bfloat16", "type_as", "requires_grad", "identity",
])  # fmt: skip
"""The result at a neuron depends on this neuron alone, and has the same shape."""

LAYERS = ("linear", "conv1d", "conv2d")
ELEMENTWISE = ("add", "sub", "mul", "div", "true_divide", "radd", "rsub", "rmul", "multiply", "subtract")
"""Sums and products of two tensors, or of one and a number."""

POOLING = {f"{kind}_pool{n}d": n for kind in ("max", "avg", "adaptive_avg", "adaptive_max", "lp") for n in (1, 2, 3)}
POOLING |= {"interpolate": 2, "pad": 2, "upsample": 2}
"""Functions of positions, and how many of the last axes are positions."""

HARMLESS = frozenset([
    "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout", "clone", "contiguous", "detach", "to",
    "float", "double", "identity", "flatten", "view", "reshape", "squeeze", "unsqueeze", "transpose", "permute",
])  # fmt: skip
"""In evaluation mode these change no value."""

HOMOGENEOUS = (
    HARMLESS
    | set(POOLING) - {"interpolate", "upsample"}
    | set(["relu", "leaky_relu", "mean", "sum", "amax", "batch_norm", "aten.batch_norm"])
)
"""f(αx) = α f(x) for α > 0, neuron by neuron. A BatchNorm is part of the layer before it, or is compared on its own."""

ONE_TO_ONE = POINTWISE | {
    "sum", "sum with a constant", "product", "product with a constant", "prelu", "cat", "concat", "concatenate",
    "interpolate", "upsample",
}  # fmt: skip
"""Equal neurons give equal results."""

LIPSCHITZ = HARMLESS | {
    "relu", "tanh", "abs", "batch_norm", "aten.batch_norm", "adaptive_avg_pool2d", "adaptive_avg_pool1d",
    "adaptive_max_pool2d", "mean", "amax"
}  # fmt: skip
"""Lipschitz constant 1, and zero at zero. Pooling windows may overlap elsewhere, so other pools are not here."""

READS_VALUES = frozenset(
    ["bool", "int", "float", "index", "item", "tolist", "numpy", "equal", "allclose", "array", "complex", "contains"]
)
"""Functions that turn tensors into Python values: what the code does may depend on them."""


def plain_name(func: Any) -> str:
    """`relu` for relu, relu_, Tensor.relu and aten.relu.default; `add` for __add__ and __iadd__.

    >>> import torch
    >>> plain_name(torch.Tensor.add_), plain_name(torch.ops.aten.relu.default)
    ('add', 'relu')
    """
    name = getattr(func, "__name__", str(func))
    exported = "." in name
    name = name.partition(".")[0]
    dunder = name.startswith("__") and name.endswith("__")
    name = name.strip("_")
    if dunder and name in ("iadd", "isub", "imul", "itruediv", "rtruediv", "truediv"):
        name = {"iadd": "add", "isub": "sub", "imul": "mul"}.get(name, "div")
    return f"aten.{name}" if exported and name == "batch_norm" else name


def reshaped_axis(before: tuple[int, ...], after: tuple[int, ...], axis: int) -> tuple[int, int] | None:
    """Where the axis of neurons is after a reshape and how many entries each neuron has there; None if they mix.

    Axes before the neurons must keep their total size, and what follows them may be joined to them.

    >>> reshaped_axis((8, 16, 4, 4), (8, 256), 1), reshaped_axis((8, 16, 1, 1), (8, 16), 1)
    ((1, 16), (1, 1))
    """
    ahead = prod(before[:axis])
    for place in range(len(after)):
        if prod(after[:place]) != ahead or after[place] % before[axis]:
            continue
        repeats = after[place] // before[axis]
        if after[place] == 1 and before[axis] != 1:
            continue
        if prod(after[place:]) == prod(before[axis:]) and prod(before[axis + 1 :]) % repeats == 0:
            return place, repeats
    return None
