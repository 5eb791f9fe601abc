"""Random numbers for starts: a seed gives the same start whatever the other seeds are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def seed_numbers(seeds: int | Sequence[int]) -> list[int]:
    """The seeds 0 … seeds - 1, or the given ones."""
    if isinstance(seeds, (int, np.integer)):
        if seeds < 1:
            raise ValueError(f"At least one seed is needed; received seeds={seeds}.")
        return list(range(int(seeds)))
    received: Any = seeds
    if isinstance(received, str) or not isinstance(received, Iterable):
        raise TypeError(f"seeds is a number of seeds or a list of them; received {received!r}.")
    given = list(received)
    numbers = [int(s) for s in given]
    if numbers != given or not numbers or len(set(numbers)) != len(numbers) or min(numbers) < 0:
        raise ValueError(f"Seeds are distinct non-negative whole numbers; received {given!r}.")
    return numbers


def check_init(init: str, init_std: float) -> None:
    """Raise if a kind of start or its standard deviation is not known."""
    if init not in ("gaussian", "glorot"):
        raise ValueError(f"init is 'gaussian', 'glorot' or a batch of parameters; received {init!r}.")
    if init == "gaussian" and not (np.isfinite(init_std) and init_std > 0):
        raise ValueError(f"The standard deviation of a random start must be positive; received {init_std!r}.")


def two_layer(
    seeds: int | Sequence[int], width: int, dim: int, outputs: tuple[int, ...], init: str, init_std: float
) -> tuple[np.ndarray, np.ndarray]:
    """Incoming (seeds, n, d) and outgoing (seeds, n, *m) weights.

    `"gaussian"`: every weight N(0, init_std²). `"glorot"`: variance 2/(fan in + fan out) for each of the two layers
    (Glorot and Bengio 2010).
    """
    check_init(init, init_std)
    incoming = outgoing = init_std
    if init == "glorot":
        fan_out = int(np.prod(outputs, dtype=int))
        incoming, outgoing = np.sqrt(2 / (dim + width)), np.sqrt(2 / (width + fan_out))
    numbers = seed_numbers(seeds)
    w, a = np.empty((len(numbers), width, dim)), np.empty((len(numbers), width, *outputs))
    for i, seed in enumerate(numbers):
        rng = np.random.default_rng(seed)
        rng.standard_normal(out=w[i])
        rng.standard_normal(out=a[i])
        w[i] *= incoming
        a[i] *= outgoing
    return w, a


def biases(seeds: int | Sequence[int], width: int, init: str, init_std: float) -> np.ndarray:
    """Biases (seeds, n) of hidden neurons: N(0, init_std²), from a separate random stream; zero with Glorot's rule."""
    numbers = seed_numbers(seeds)
    if init == "glorot":
        return np.zeros((len(numbers), width))
    return np.stack([init_std * np.random.default_rng([1, seed]).standard_normal(width) for seed in numbers])


def gaussian(seeds: int | Sequence[int], size: int, std: float) -> np.ndarray:
    """Flat vectors (seeds, size) with entries N(0, std²)."""
    check_init("gaussian", std)
    return np.stack([std * np.random.default_rng(s).standard_normal(size) for s in seed_numbers(seeds)])


def unit_rows(seeds: int | Sequence[int], width: int, dim: int) -> np.ndarray:
    """Rows (seeds, width, dim), independent and uniform on the unit sphere."""
    rows = np.stack([np.random.default_rng(s).normal(size=(width, dim)) for s in seed_numbers(seeds)])
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def glorot(seed: int, shapes: Sequence[tuple[int, ...]], scale: float = 1.0) -> np.ndarray:
    """A flat vector of arrays of these shapes: matrices (out, in) N(0, scale² · 2/(in + out)), other arrays zero."""
    rng = np.random.default_rng(seed)
    parts = [
        scale * np.sqrt(2 / sum(shape)) * rng.normal(size=shape) if len(shape) == 2 else np.zeros(shape)
        for shape in shapes
    ]
    return np.concatenate([p.ravel() for p in parts])
