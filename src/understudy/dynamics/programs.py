"""Compiled functions of tasks that are called many times.

Tasks are flattened once rather than at each call, which would cost as much as a gradient.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from understudy.tasks.task import Task

Kind = tuple[Any, tuple[Any, ...]]
"""What a compiled function depends on: the structure of a task, and its leaves with None in place of arrays."""


def taken_apart(task: Task) -> tuple[list[Any], Kind]:
    """The arrays of a task, and its kind."""
    leaves, structure = jax.tree.flatten(task)
    given = [isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves]
    arrays = [leaf for leaf, is_array in zip(leaves, given, strict=True) if is_array]
    return arrays, (structure, tuple(None if is_array else x for x, is_array in zip(leaves, given, strict=True)))


def put_together(kind: Kind, arrays: list[Any]) -> Task:
    """The inverse of `taken_apart`, traceable."""
    structure, fixed = kind
    left = iter(arrays)
    return jax.tree.unflatten(structure, [next(left) if leaf is None else leaf for leaf in fixed])
