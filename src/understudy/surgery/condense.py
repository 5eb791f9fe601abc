"""A regularised network with one neuron per ray of every hidden layer, as a smaller problem to settle.

Gradient descent moves the neurons of a layer close to a few rays (Jacot et al. 2022, Section 3.1, item 4). Merging
neurons that are only roughly aligned on the data changes the outputs a little. The result is small enough for a
second-order method, which can then find the minimum.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.surgery.merge import merge_layer
from understudy.surgery.parts import require_homogeneous
from understudy.tasks.regularised import Regularised


def condense(task: Regularised, parameters: Any, *, tolerance: float) -> tuple[Regularised, Array]:
    """The task with fewer hidden neurons, and the network in it. Merges activations up to `tolerance` apart (unit
    vectors).

    If the activations of a group are proportional, the outputs stay the same and the norm does not rise.
    """
    sigma = require_homogeneous(task.activation)
    weights = [np.array(w) for w in task.unflatten(task.flatten(parameters))]
    active = np.asarray(task.entry)
    for layer in range(task.depth - 1):
        after = np.asarray(task.activate(jnp.asarray(weights[layer] @ active)))
        count = len(weights[layer])
        out, bias = weights[layer + 1][:, :count], weights[layer + 1][:, count:]
        _, weights[layer], out = merge_layer(weights[layer], out, sigma, after[:count].T, tolerance)
        weights[layer + 1] = np.concatenate([out, bias], axis=1)
        active = np.asarray(task.activate(jnp.asarray(weights[layer] @ active)))
    smaller = task.with_hidden([len(w) for w in weights[:-1]])
    return smaller, smaller.flatten(tuple(weights))
