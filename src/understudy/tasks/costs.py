"""Costs of one prediction, by name or as a function, and the targets that go with them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

Cost = Callable[[Array, Array], Array]


def squared(prediction: Array, target: Array) -> Array:
    """Σ_o (f_o - y_o)², without a factor ½."""
    return jnp.sum((prediction - target) ** 2)


def cross_entropy(prediction: Array, target: Array) -> Array:
    """log Σ_o exp f_o - Σ_o y_o f_o for one sample; `target` holds probabilities (one-hot for a class)."""
    return jax.nn.logsumexp(prediction) - jnp.dot(target, prediction)


def logistic(prediction: Array, target: Array) -> Array:
    """Σ_o log(1 + exp(-y_o f_o)) with targets y = ±1."""
    return jnp.sum(jax.nn.softplus(-target * prediction))


COSTS: dict[str, Cost] = {"squared": squared, "cross-entropy": cross_entropy, "logistic": logistic}


def get(cost: str | Cost) -> Cost:
    """The cost with this name; a function is returned unchanged."""
    if isinstance(cost, str) and cost not in COSTS:
        names = ", ".join(f"'{name}'" for name in COSTS)
        raise ValueError(f"cost is {names} or a function; received {cost!r}.")
    return COSTS[cost] if isinstance(cost, str) else cost


def is_bounded(cost: Cost) -> bool:
    """Whether the cost is known to be at least zero everywhere."""
    return cost in COSTS.values()


MOST_CLASSES = 100_000
"""A larger label is an identifier, not the number of a class: one column per number would not fit in memory."""


def class_count(labels: ArrayLike) -> int:
    """Number of classes 0 … m - 1 for these labels; raises if they are not whole numbers from 0 to MOST_CLASSES - 1."""
    values = np.asarray(labels)
    numbers = values.dtype.kind in "biuf"
    whole = np.asarray(values, float) if numbers else np.full(values.shape, np.nan)
    fine = values.ndim == 1 and values.size and np.all(np.isfinite(whole)) and np.all(whole == np.round(whole))
    if not (fine and whole.min() >= 0 and whole.max() < MOST_CLASSES):
        shown = np.unique(values)[:6].tolist()
        raise ValueError(
            f"Class labels are whole numbers 0, 1, …; received {shown}{' …' if values.size > 6 else ''}. Renumber them "
            "with np.unique(labels, return_inverse=True)[1], or pass probabilities (N, classes)."
        )
    return int(whole.max()) + 1


def one_hot(labels: ArrayLike, classes: int | None = None) -> np.ndarray:
    """Rows with a 1 in the column of their label, (N, classes); by default with as many classes as the labels need.

    >>> one_hot([1, 0]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    needed = class_count(labels)
    chosen = np.asarray(labels).astype(int)
    rows = np.zeros((len(chosen), needed if classes is None else classes))
    rows[np.arange(len(chosen)), chosen] = 1.0
    return rows


def targets_for(cost: Cost, targets: ArrayLike, output: tuple[int, ...]) -> np.ndarray:
    """Targets in the shape and meaning that the cost needs, for a network whose outputs have shape `output` (N, …).

    Class labels (N,) of the cross-entropy become one-hot rows; labels 0 and 1 of the logistic cost become ±1; targets
    (N,) of a network with one output in a column become a column.
    """
    y = np.asarray(targets)
    if cost is cross_entropy and y.ndim == 1 and len(output) == 2:
        classes = class_count(y)
        if classes > output[1]:
            raise ValueError(f"Class labels go up to {classes - 1}, but the network has only {output[1]} outputs.")
        return one_hot(y, output[1])
    y = np.asarray(y, float)
    if cost is cross_entropy and len(output) == 1:
        raise ValueError(
            "The cross-entropy needs a network with one output per class; received one with a single output. Give it "
            "outgoing weights of shape (width, classes), or use cost='logistic' for two classes."
        )
    if y.shape != output and len(output) == 2 and y.shape == (output[0],) and output[1] == 1:
        y = y[:, None]
    if y.shape != output:
        raise ValueError(
            f"The network's outputs have shape {output} where the targets have {y.shape}."
            + (" For class labels use cost='cross-entropy'." if y.ndim == 1 and len(output) == 2 else "")
        )
    if cost is cross_entropy and (y.ndim != 2 or np.any(y < 0) or np.abs(y.sum(axis=1) - 1).max() > 1e-9):
        raise ValueError(
            "Targets of the cross-entropy are class labels (N,), or probabilities (N, classes): not negative, with "
            f"rows that sum to 1. Received shape {y.shape}, entries from {y.min():.6g} to {y.max():.6g}."
        )
    if cost is logistic:
        if not np.all(np.isin(y, (0, 1)) | np.isin(y, (-1, 1))) or (np.any(y == 0) and np.any(y == -1)):
            raise ValueError(
                f"Targets of the logistic cost are 0 and 1, or -1 and 1; received {np.unique(y)[:6].tolist()}."
            )
        y = np.where(y == 0, -1.0, y) if np.any(y == 0) else y
    return y
