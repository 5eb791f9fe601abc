"""Neurons on rays: which neurons of a hidden layer have proportional pre-activations, and the network with one neuron a ray.

For a positively homogeneous σ neurons with z_k = c_k z, c_k > 0, feel proportional forces and can be joined: incoming weights
√(Σc²) w, outgoing weights Σ c_k a_k / √(Σc²). Outputs stay the same, and the norm does not rise (attraction-repulsion, Sec. 3.1,
item 4).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.layers.representation import to_representations
from understudy.tasks.regularised import Regularised


def rays(rows: np.ndarray, *, cosine: float = 0.999, dead: float = 1e-6) -> list[np.ndarray]:
    """Groups of rows that point the same way (largest first); rows shorter than `dead` times the longest are in none.

    Greedy: the longest row that is in no group yet leads the next one.
    """
    lengths = np.linalg.norm(rows, axis=1)
    left = [int(i) for i in np.argsort(-lengths, kind="stable") if lengths[i] > dead * lengths.max(initial=0.0)]
    groups = []
    while left:
        leader = rows[left[0]] / lengths[left[0]]
        same = [i for i in left if rows[i] @ leader >= cosine * lengths[i]]
        groups.append(np.array(same))
        left = [i for i in left if i not in set(same)]
    return sorted(groups, key=lambda g: -float(np.sum(lengths[g] ** 2)))


def condensed(task: Regularised, parameters: Any, *, cosine: float = 0.999) -> tuple[Regularised, Array]:
    """The network with every ray of every hidden layer joined to one neuron, and its task.

    Where neurons are aligned only to `cosine`, so are the outputs: settle the result.
    """
    if task.activation.homogeneity != 1:
        raise ValueError(f"Neurons are joined by homogeneity of degree one, which {task.activation.name} has not.")
    weights = [np.array(w) for w in task.unflatten(task.flatten(parameters))]
    layers = to_representations(task, parameters)
    kept = []
    for layer in range(task.depth - 1):
        leaders = []
        for group in rays(layers[layer], cosine=cosine):
            first = group[0]
            direction = layers[layer][first] / np.linalg.norm(layers[layer][first])
            shares = layers[layer][group] @ direction
            shares = shares / shares[0]
            size = float(np.sqrt(np.sum(shares**2)))
            outgoing = weights[layer + 1][:, group] @ shares / size
            weights[layer][first] *= size
            weights[layer + 1][:, first] = outgoing
            leaders.append(int(first))
        kept.append(np.array(sorted(leaders)))
    return task.narrowed(tuple(jnp.asarray(w) for w in weights), kept)
