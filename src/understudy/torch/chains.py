"""A plain chain of Linear layers from a bare state_dict."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import nn


def chain_of(state: Mapping[str, torch.Tensor], source: str) -> nn.Sequential:
    """Linear layers with ReLU between them, if names and shapes allow it; otherwise an error that asks for the module.

    >>> chain_of({"fc1.weight": torch.ones(3, 2), "fc2.weight": torch.ones(1, 3)}, "a file")[2].in_features
    3
    """
    weights = [name for name in state if name.endswith("weight")]
    plain = all(state[name].ndim == 2 for name in weights) and all(
        name.endswith("weight") or (name.endswith("bias") and name[:-4] + "weight" in state) for name in state
    )
    wrong = [(a, b) for a, b in pairwise(weights if plain else ()) if state[b].shape[1] != state[a].shape[0]]
    if not weights or not plain or wrong:
        told = [f" ({b} reads {state[b].shape[1]} numbers and {a} makes {state[a].shape[0]})" for a, b in wrong[:1]]
        raise ValueError(
            f"{source} is not a plain chain of Linear layers{''.join(told)}, so its tensors do not say how the network "
            "computes. Give the module too: load(path, into=MyNetwork()), or --module file:Class in the shell."
        )
    layers: list[nn.Module] = []
    for name in weights:
        bias = state.get(name[:-6] + "bias")
        layer = nn.Linear(state[name].shape[1], state[name].shape[0], bias=bias is not None, dtype=state[name].dtype)
        with torch.no_grad():
            layer.weight.copy_(state[name])
            if bias is not None:
                if bias.shape != layer.bias.shape:
                    raise ValueError(
                        f"{source}: {name} has {len(state[name])} rows and its bias has shape {tuple(bias.shape)}."
                    )
                layer.bias.copy_(bias)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
